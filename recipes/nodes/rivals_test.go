package nodes_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
)

// number is that of an environment variable, or n.
func number(t *testing.T, name string, n uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return n
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// Two clients keep a node each at one path, or are members of one group. A
// stranger's node is in the way now and then. Faults hit the clients, the server
// and the tree. Each node must stand again within a session timeout and two round
// trips, and never twice. No client writes into or deletes the node of another. A
// ghost's replacement leaves no moment without the node. Nothing is left at the
// end. DOCENT_NODES_SEED repeats one schedule.
func TestRivalSchedules(t *testing.T) {
	t.Parallel()
	playRivals(t, 1, number(t, "DOCENT_NODES_RIVAL_SEEDS", 25))
}

// The same on three servers: members lag, are cut off, halted and deposed.
func TestEnsembleRivalSchedules(t *testing.T) {
	t.Parallel()
	playRivals(t, 3, number(t, "DOCENT_NODES_ENSEMBLE_SEEDS", 12))
}

func playRivals(t *testing.T, servers int, last uint64) {
	t.Helper()
	first := uint64(1)
	if one := number(t, "DOCENT_NODES_SEED", 0); one != 0 {
		first, last = one, one
	}
	all, met := modes(), 0
	for seed := first; seed <= last && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed, servers)
			g := &game{world: w, group: seed%10 == 0}
			if tt := all[seed%uint64(len(all))]; !g.group {
				g.mode, g.opts = tt.mode, tt.opts
			}
			g.play()
			met += w.met
		})
		if t.Failed() {
			t.Logf("repeat with DOCENT_NODES_SEED=%d", seed)
		}
	}
	t.Logf("%d schedules; %d writes and deletions met a node of another client that had been made since the look", last-first+1, met)
}

// stranger is the client whose nodes are in the way.
const stranger = "stranger"

// game is one schedule.
type game struct {
	*world
	mode    nodes.Mode
	opts    []nodes.Option
	group   bool // of two members instead of two rivals
	rivals  []*rival
	passer  *client.Client // the stranger
	faults  []string
	written int
}

// rival is a client with its node.
type rival struct {
	name   string
	c      *client.Client
	node   *nodes.PersistentNode
	member *nodes.GroupMember // if the game is about a group
	data   string
	stop   context.CancelFunc // of following

	mu   sync.Mutex
	told string // the members, as last told
}

// ephemeral reports whether the nodes are.
func (g *game) ephemeral() bool { return g.mode <= nodes.EphemeralSequential }

// contested reports whether one node is all that can stand.
func (g *game) contested() bool { return !g.group && g.mode == nodes.Ephemeral && len(g.opts) == 0 }

func (g *game) play() {
	g.passer = g.connect(stranger)
	for _, name := range []string{"a", "b"} {
		v := &rival{name: name, c: g.connect(name), data: "one of " + name}
		g.rivals = append(g.rivals, v)
		g.start(v)
	}
	for range 6 {
		g.trouble()
		g.settle()
		if g.Failed() {
			return
		}
	}
	for _, v := range g.rivals {
		g.end(v)
	}
	time.Sleep(testrig.SessionTimeout)
	// If two clients share a persistent node, and both write, neither can tell
	// which of them made it.
	if left := g.tree().Children("/workers"); len(left) != 0 && (g.distinct() || g.ephemeral()) {
		g.Errorf("left behind: %v", left)
	}
	testrig.WantNoGoroutine(g.T, ourFrames)
	for _, s := range g.servers() {
		if n := s.WatchCount(); n != 0 {
			g.Errorf("%d watches left", n)
		}
	}
	g.kept()
}

// kept judges what the servers have done.
func (g *game) kept() {
	g.Helper()
	if err := g.broken(g.ephemeral()); err != nil {
		g.Fatalf("%v after faults %v: %v", g.mode, g.faults, err)
	}
}

// start makes the object of a rival.
func (g *game) start(v *rival) {
	g.Helper()
	g.close(v.name, false)
	var err error
	if g.group {
		if v.member, err = nodes.NewGroupMember(v.c, "/workers", v.name, []byte(v.data), nodes.WithLazyStart()); err == nil {
			v.node = v.member.PersistentNode
		}
	} else {
		v.node, err = nodes.NewPersistentNode(v.c, g.mode, nodePath, []byte(v.data), lazily(g.opts...)...)
	}
	if err == nil {
		err = v.node.Start(g.ctx)
	}
	if err != nil {
		g.Fatal(err)
	}
	if !g.group {
		return
	}
	ctx, cancel := context.WithCancel(g.ctx)
	v.stop = cancel
	go v.follow(ctx)
}

// follow keeps what MemberChanges tells. It begins again if a read was refused.
func (v *rival) follow(ctx context.Context) {
	for ctx.Err() == nil {
		for now, err := range v.member.MemberChanges(ctx) {
			if err == nil {
				v.mu.Lock()
				v.told = listed(now)
				v.mu.Unlock()
			}
		}
	}
}

// end closes the object of a rival, and waits until its node is gone.
func (g *game) end(v *rival) {
	g.Helper()
	g.close(v.name, true)
	if v.stop != nil {
		v.stop()
	}
	ctx, cancel := context.WithTimeout(g.ctx, time.Minute)
	defer cancel()
	if err := v.node.CloseContext(ctx); err != nil {
		g.Fatalf("%v after faults %v: close %s: %v", g.mode, g.faults, v.name, err)
	}
}

// trouble is one or two faults, and what clients do meanwhile.
func (g *game) trouble() {
	for range 1 + g.random.IntN(2) {
		g.faults = append(g.faults, g.fault())
		time.Sleep(g.within(2 * time.Second))
		v := g.rivals[g.random.IntN(len(g.rivals))]
		switch g.random.IntN(6) {
		case 0, 1:
			_ = g.set(v, g.within(2*time.Second)) // it is kept, and settle looks for it
		case 2: // its object is closed, and cannot always be
			g.close(v.name, true)
			ctx, cancel := context.WithTimeout(g.ctx, g.within(3*time.Second))
			_ = v.node.CloseContext(ctx) // settle waits for it
			cancel()
			g.faults = append(g.faults, "close "+v.name)
		case 3:
			g.pass()
		}
		time.Sleep(g.within(15 * time.Second))
	}
}

// set gives new data to a rival's node.
func (g *game) set(v *rival, limit time.Duration) error {
	g.written++
	v.data = fmt.Sprint("data ", g.written)
	ctx, cancel := context.WithTimeout(g.ctx, limit)
	defer cancel()
	return v.node.Set(ctx, []byte(v.data))
}

// pass puts the stranger's node where a rival's is to stand, deleting that before.
func (g *game) pass() {
	if !g.ephemeral() {
		return // it would be adopted
	}
	path := nodePath
	if g.group {
		path = "/workers/" + g.rivals[0].name
	} else if at := g.rivals[0].node.Status().Path; at != "" {
		path = at
	}
	_ = g.servers()[0].Delete(path) // it may not be there
	ctx, cancel := context.WithTimeout(g.ctx, 2*time.Second)
	defer cancel()
	_, err := g.passer.Create(ctx, path, []byte("stranger's"), client.Ephemeral())
	g.faults = append(g.faults, fmt.Sprint("stranger ", err == nil))
}
