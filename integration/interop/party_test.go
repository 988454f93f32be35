package interop_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/integration/sessions"
)

// matrixTimeout is the session timeout in the matrix: the longest that the server
// grants. So only a kill ends a session, however busy the machine is.
const matrixTimeout = 10 * time.Second

// side says whose library a client uses.
type side string

const (
	nobody  side = ""
	docent  side = "Docent"
	curator side = "Curator"
	kazoo   side = "kazoo"
)

// party is one client with one session at a time.
type party struct {
	side side
	name string

	client *client.Client // of Docent
	peer   *peers.Peer    // of the others, in which the client has this party's name

	doomed atomic.Bool // its next holder kills the session in the middle of its work

	mu    sync.Mutex // guards the rest
	kills int
	epoch int       // grows at the beginning and at the end of each kill
	dying bool      // a kill has begun and not ended
	last  time.Time // the end of the last kill
}

func (p *party) session(ctx context.Context) (int64, error) {
	if p.side != docent {
		return p.peer.Session(ctx, p.name)
	}
	s, err := p.client.Session(ctx)
	if err != nil {
		return 0, err
	}
	return s.ID(), nil
}

// killed returns how often the session was killed.
func (p *party) killed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kills
}

// at returns the epoch, and whether no kill is going on.
func (p *party) at() (epoch int, calm bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.epoch, !p.dying
}

// calmSince reports whether the session has been left alone since epoch.
func (p *party) calmSince(epoch int, calm bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return calm && p.epoch == epoch
}

// recovering reports whether the client may still be busy with the end of a session.
// Curator's wait for a connection and its retries take some seconds.
func (p *party) recovering() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dying || time.Since(p.last) < 15*time.Second && !p.last.IsZero()
}

// sinceKill returns how long the last kill is over; 0 if one goes on.
func (p *party) sinceKill() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dying {
		return 0
	}
	return time.Since(p.last)
}

// kill ends the party's session as an administrator can. The witness hears of it first.
func (p *party) kill(ctx context.Context, w *witness, addr string) error {
	id, err := p.session(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.epoch++
	p.dying = true
	p.mu.Unlock()
	w.kill(id)
	err = killSession(ctx, addr, id)
	p.mu.Lock()
	p.epoch++
	p.kills++
	p.dying, p.last = false, time.Now()
	p.mu.Unlock()
	return err
}

// killSession tries more than once: a client that comes back in the middle may leave
// both connections without an answer.
func killSession(ctx context.Context, addr string, id int64) error {
	var err error
	for range 5 {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err = sessions.KillSession(attempt, addr, id)
		cancel()
		if err == nil || errors.Is(err, sessions.ErrUnknown) { // over, and the client may not know
			return nil
		}
	}
	return err
}

// arena is a server with a witness beside it and parties that meet there.
type arena struct {
	node     *harness.Node
	raw      *zk.Conn // looks, and takes no part
	witness  *witness
	path     string
	parties  []*party
	calm     time.Time     // from here on no session is killed
	holdless bool          // no contender holds anything
	work     time.Duration // of a holder, at most
	fewest   int           // turns that each contender must have had to mean anything
}

func newArena(ctx context.Context, t *testing.T, node *harness.Node) *arena {
	t.Helper()
	raw, events := harness.Dial(ctx, t, matrixTimeout, node.Addr())
	go func() { // ends with the connection, which the test closes
		for range events {
		}
	}()
	return &arena{node: node, raw: raw, witness: newWitness(), path: fmt.Sprintf("/matrix/%d", paths.Add(1)), work: 3 * time.Millisecond, fewest: 10}
}

// docents adds clients of Docent.
func (a *arena) docents(ctx context.Context, t *testing.T, n int) []*party {
	t.Helper()
	var added []*party
	for i := range n {
		c, err := client.Connect(ctx, a.node.Addr(), client.WithSessionTimeout(matrixTimeout),
			client.WithLogger(slog.New(slog.DiscardHandler)))
		check(t, err)
		t.Cleanup(func() {
			cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), matrixTimeout)
			defer cancel()
			_ = c.CloseContext(cctx) // what it has left is looked at before
		})
		added = append(added, &party{side: docent, name: fmt.Sprintf("docent%d", i), client: c})
	}
	a.parties = append(a.parties, added...)
	return added
}

// curators adds clients of Curator, in one process.
func (a *arena) curators(ctx context.Context, t *testing.T, n int) []*party {
	t.Helper()
	return a.foreigners(ctx, t, peers.StartJava(ctx, t), curator, n)
}

// kazoos adds clients of kazoo, in one process.
func (a *arena) kazoos(ctx context.Context, t *testing.T, n int) []*party {
	t.Helper()
	return a.foreigners(ctx, t, peers.StartKazoo(ctx, t), kazoo, n)
}

func (a *arena) foreigners(ctx context.Context, t *testing.T, peer *peers.Peer, of side, n int) []*party {
	t.Helper()
	var added []*party
	for i := range n {
		p := &party{side: of, name: fmt.Sprintf("%s%d", of, i), peer: peer}
		_, err := peer.Connect(ctx, p.name, a.node.Addr(), matrixTimeout)
		check(t, err)
		added = append(added, p)
	}
	a.parties = append(a.parties, added...)
	return added
}

// nodes is what is known of the nodes of a claim.
type nodes struct {
	session int64 // that owns them; 0 if one is not there or they have several
	czxid   int64 // the lowest
}

// look reads the nodes of a claim.
func (a *arena) look(paths []string) (nodes, error) {
	var found nodes
	for i, path := range paths {
		there, stat, err := a.raw.Exists(path)
		if err != nil {
			return nodes{}, fmt.Errorf("look at %s: %w", path, err)
		}
		if !there || i > 0 && stat.EphemeralOwner != found.session {
			return nodes{}, nil
		}
		found.session = stat.EphemeralOwner
		if i == 0 || stat.Czxid < found.czxid {
			found.czxid = stat.Czxid
		}
	}
	return found, nil
}
