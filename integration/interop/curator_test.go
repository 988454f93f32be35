package interop_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/integration/sessions"
	"github.com/docent-go/docent/recipes"
)

const sessionTimeout = 5 * time.Second

// soon is long enough for a lock that is free, and what a lock that is not is
// watched for.
const soon = 300 * time.Millisecond

func TestCuratorMutex(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t, harness.WithTickTime(500*time.Millisecond), harness.WithContainerInterval(time.Second))
	for _, c := range []struct {
		name string
		run  func(context.Context, *testing.T, *pair)
	}{
		{"Java first", javaFirst},
		{"Go first", goFirst},
		{"one line", oneLine},
		{"re-entrant on both sides", reentrant},
		{"sessions killed on both sides", killed},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(ctx, t, newPair(ctx, t, node)) })
	}
}

// pair is a Curator process and a Docent client with a mutex on one path.
type pair struct {
	node *harness.Node
	java *peers.Peer
	c    *client.Client
	m    *recipes.InterProcessMutex
	path string
}

var paths atomic.Int64

func newPair(ctx context.Context, t *testing.T, node *harness.Node) *pair {
	t.Helper()
	p := &pair{node: node, path: fmt.Sprintf("/interop/%d/lock", paths.Add(1))}
	p.java = p.peer(ctx, t)
	p.c, p.m = p.docent(ctx, t)
	return p
}

// peer starts another Curator process with a mutex called m on the path.
func (p *pair) peer(ctx context.Context, t *testing.T) *peers.Peer {
	t.Helper()
	j := peers.StartJava(ctx, t)
	_, err := j.Connect(ctx, "c", p.node.Addr(), sessionTimeout)
	check(t, err)
	check(t, j.Make(ctx, "m", "c", "mutex", p.path))
	return j
}

// docent makes another Docent client with a mutex on the path.
func (p *pair) docent(ctx context.Context, t *testing.T) (*client.Client, *recipes.InterProcessMutex) {
	t.Helper()
	c, err := client.Connect(ctx, p.node.Addr(), client.WithSessionTimeout(sessionTimeout),
		client.WithLogger(slog.New(slog.DiscardHandler)))
	check(t, err)
	t.Cleanup(func() {
		cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = c.CloseContext(cctx) // the case has looked at what matters to it
	})
	m, err := recipes.NewInterProcessMutex(c, p.path)
	check(t, err)
	return c, m
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wait acquires a lock in a thread of a peer's, however long it takes.
func wait(ctx context.Context, th *peers.Thread, lock string) error {
	_, err := th.Acquire(ctx, lock, 1, peers.Forever)
	return err
}

// enter acquires a lock that is free, or will be.
func enter(ctx context.Context, t *testing.T, th *peers.Thread, lock string) {
	t.Helper()
	check(t, wait(ctx, th, lock))
}

// excluded shows that Java cannot have the lock now.
func excluded(ctx context.Context, t *testing.T, j *peers.Peer) {
	t.Helper()
	if _, err := j.Thread("probe").Acquire(ctx, "m", 1, soon); !errors.Is(err, peers.ErrTimeUp) {
		t.Fatalf("Curator acquired a lock that is held: %v", err)
	}
}

// shut shows that Docent cannot have the lock now.
func shut(ctx context.Context, t *testing.T, m *recipes.InterProcessMutex) {
	t.Helper()
	short, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	if h, err := m.Acquire(short); err == nil {
		_ = h.Close()
		t.Fatal("Docent acquired a lock that is held")
	}
}

type outcome struct {
	hold *recipes.Hold
	err  error
}

func acquire(ctx context.Context, m *recipes.InterProcessMutex) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		h, err := m.Acquire(ctx)
		done <- outcome{h, err}
	}()
	return done
}

// queued waits until n contenders stand in line.
func (p *pair) queued(ctx context.Context, t *testing.T, n int) []recipes.Contender {
	t.Helper()
	return queued(ctx, t, p.m, n)
}

func queued(ctx context.Context, t *testing.T, m *recipes.InterProcessMutex, n int) []recipes.Contender {
	t.Helper()
	for {
		line, err := m.Queue(ctx)
		check(t, err)
		if len(line) == n {
			return line
		}
	}
}

func javaFirst(ctx context.Context, t *testing.T, p *pair) {
	th := p.java.Thread("a")
	enter(ctx, t, th, "m")
	shut(ctx, t, p.m)
	p.queued(ctx, t, 1) // the waiter that gave up is gone
	done := acquire(ctx, p.m)
	line := p.queued(ctx, t, 2)
	names, err := p.java.Participants(ctx, "m")
	check(t, err)
	if !line[0].Holder || !slices.Equal(names, []string{line[0].Path, line[1].Path}) {
		t.Errorf("Curator sees %v, Docent %v", names, line)
	}
	if line[0].Family != recipes.FamilyCurator || line[1].Family != recipes.FamilyDocent {
		t.Errorf("a Curator before a Docent are %v", line)
	}
	check(t, th.Release(ctx, "m"))
	r := <-done
	check(t, r.err)
	excluded(ctx, t, p.java)
	check(t, r.hold.Release(ctx))
	p.queued(ctx, t, 0)
}

func goFirst(ctx context.Context, t *testing.T, p *pair) {
	h, err := p.m.Acquire(ctx)
	check(t, err)
	excluded(ctx, t, p.java)
	p.queued(ctx, t, 1)
	th := p.java.Thread("a")
	done := make(chan error, 1)
	go func() { done <- wait(ctx, th, "m") }()
	p.queued(ctx, t, 2)
	check(t, h.Release(ctx))
	check(t, <-done)
	shut(ctx, t, p.m)
	if _, err := p.m.TryAcquire(ctx); err == nil || !strings.Contains(err.Error(), "not free") {
		t.Errorf("TryAcquire: %v", err)
	}
	check(t, th.Release(ctx, "m"))
	h, err = p.m.TryAcquire(ctx)
	check(t, err)
	check(t, h.Release(ctx))
}

func oneLine(ctx context.Context, t *testing.T, p *pair) { inTurns(ctx, t, p.m, p.java, "m") }

// inTurns queues a peer and Docent in turns and lets them through: in the order in
// which they came, whatever they are written in.
func inTurns(ctx context.Context, t *testing.T, m *recipes.InterProcessMutex, peer *peers.Peer, lock string) {
	t.Helper()
	first, err := m.Acquire(ctx)
	check(t, err)
	const each = 4
	granted := make(chan int, 2*each)
	var all sync.WaitGroup
	for i := range 2 * each {
		if i%2 == 0 {
			th := peer.Thread(fmt.Sprintf("t%d", i))
			all.Go(func() {
				if _, err := th.Acquire(ctx, lock, 1, peers.Forever); err != nil {
					t.Error(err)
					return
				}
				granted <- i
				if err := th.Release(ctx, lock); err != nil {
					t.Error(err)
				}
			})
		} else {
			all.Go(func() {
				if err := m.Do(ctx, func(context.Context, *recipes.Hold) error { granted <- i; return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		queued(ctx, t, m, i+2)
	}
	check(t, first.Release(ctx))
	all.Wait()
	close(granted)
	var order []int
	for i := range granted {
		order = append(order, i)
	}
	if len(order) != 2*each || !slices.IsSorted(order) {
		t.Errorf("granted in the order %v", order)
	}
}

func reentrant(ctx context.Context, t *testing.T, p *pair) {
	th := p.java.Thread("a")
	enter(ctx, t, th, "m")
	enter(ctx, t, th, "m")
	check(t, th.Release(ctx, "m"))
	shut(ctx, t, p.m)
	check(t, th.Release(ctx, "m"))

	outer, err := p.m.Acquire(ctx)
	check(t, err)
	inner, err := p.m.Acquire(outer.Context())
	check(t, err)
	check(t, outer.Release(ctx))
	excluded(ctx, t, p.java)
	check(t, inner.Release(ctx))
	enter(ctx, t, th, "m")
	check(t, th.Release(ctx, "m"))
}

func killed(ctx context.Context, t *testing.T, p *pair) {
	enter(ctx, t, p.java.Thread("a"), "m")
	done := acquire(ctx, p.m)
	p.queued(ctx, t, 2)
	id, err := p.java.Session(ctx, "c")
	check(t, err)
	check(t, sessions.KillSession(ctx, p.node.Addr(), id))
	r := <-done
	check(t, r.err)

	waiting := make(chan error, 1)
	other := p.peer(ctx, t)
	go func() { waiting <- wait(ctx, other.Thread("b"), "m") }()
	p.queued(ctx, t, 2)
	s, err := p.c.Session(ctx)
	check(t, err)
	check(t, sessions.KillSession(ctx, p.node.Addr(), s.ID()))
	check(t, <-waiting)
	select {
	case <-r.hold.Context().Done():
	case <-ctx.Done():
		t.Fatal("the holder was not told")
	}
	check(t, other.Thread("b").Release(ctx, "m"))
}
