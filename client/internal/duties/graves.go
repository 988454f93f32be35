package duties

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// Graves are sessions that are over for this client, while a server may keep them for up to another
// timeout. Their ephemeral nodes are in the way of other clients until then. Either no
// answer came, or the server that refused the session was cut off from the ensemble.
type Graves struct {
	cfg GravesConfig

	mu   sync.Mutex // guards the rest; never held across I/O
	dead []Dead
}

// GravesConfig is what graves need.
type GravesConfig struct {
	Life

	// Server is the server that is reachable, and whether it makes sessions, which takes a quorum.
	Server func() (addr string, makes bool)
	Dial   func(ctx context.Context, addr string) (net.Conn, error)
	Login  func(ctx context.Context, addr string) (wire.Login, error) // nil: there is no login
	Pause  func(tried int) time.Duration                              // before the next try, after so many
}

// Dead is one such session.
type Dead struct {
	ID       int64
	Password []byte
	Timeout  time.Duration
	Unused   bool      // it is of a login that was refused, so it is ended without one
	Safe     time.Time // no other client may see it end before then: its holds were promised that
}

// NewGraves returns graves of no session.
func NewGraves(cfg GravesConfig) *Graves { return &Graves{cfg: cfg} }

// Remember notes a session that is to be ended on a server. Without an id there is none.
func (g *Graves) Remember(d Dead) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d.ID != 0 && !slices.ContainsFunc(g.dead, func(known Dead) bool { return known.ID == d.ID }) {
		g.dead = append(g.dead, d)
	}
}

// Len is how many sessions wait for a server.
func (g *Graves) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.dead)
}

// Bury starts to end dead sessions, now that a server is reachable. The first
// try comes after half of the pause before a second dial, and not before other
// clients may see the session end.
func (g *Graves) Bury() {
	g.mu.Lock()
	dead := g.dead
	g.dead = nil
	g.mu.Unlock()
	for _, d := range dead {
		pause := max(g.cfg.Pause(1)/2, time.Until(d.Safe))
		g.cfg.Go(func() { g.bury(d, pause) }) // ends when d has, or with the client
	}
}

// loginTries is how many tries may end with a refusal: with a login, without, and with one again.
const loginTries = 3

// bury ends d on a server. It tries until a server has said that d is over, or until
// d must have expired. Each try is a connection, with a pause before it. A server that refuses d
// may be behind the others. One that has made a session of this client had a quorum, so its
// refusal is final.
func (g *Graves) bury(d Dead, pause time.Duration) {
	ctx, cancel := context.WithTimeout(g.cfg.Context, pause+d.Timeout)
	defer cancel()
	refused, without := 0, d.Unused
	for tried := 1; ctxerr.Sleep(ctx, pause) == nil; tried++ {
		server, makes := g.cfg.Server()
		err := g.end(ctx, d, server, without)
		id := fmt.Sprintf("0x%x", uint64(d.ID)) //nolint:gosec // bits, not a quantity
		g.cfg.Journal.Say(slog.LevelDebug, "zookeeper: end a lost session", "session", id, "server", server, "error", err)
		switch {
		case err == nil, errors.Is(err, wire.ErrRefused) && makes, errors.Is(err, wire.ErrChanged): // it restores no sessions
			return
		case errors.Is(err, wire.ErrLoginWanted), errors.Is(err, wire.ErrAuthFailed):
			// Each try makes the server keep the session for longer.
			if refused++; g.cfg.Login == nil || d.Unused || refused == loginTries {
				return // it lets this client end nothing
			}
			without = !without // a server may do without a login, and a refusal may pass
		}
		pause = g.cfg.Pause(tried)
	}
}

// end shows d to a server and closes it.
func (g *Graves) end(ctx context.Context, d Dead, server string, without bool) error {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout/3)
	defer cancel()
	var login wire.Login
	if g.cfg.Login != nil && !without {
		var err error
		if login, err = g.cfg.Login(ctx, server); err != nil {
			return err
		}
	}
	conn, err := g.cfg.Dial(ctx, server)
	if err != nil {
		return err
	}
	return wire.EndSession(ctx, conn, d.ID, d.Password, d.Timeout, login)
}
