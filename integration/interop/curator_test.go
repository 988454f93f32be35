// Package interop_test lets Docent and Curator contend on the same paths.
package interop_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

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
		{"same nodes", sameNodes},
		{"sessions killed on both sides", killed},
		{"mixed load", mixedLoad},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(ctx, t, newPair(ctx, t, node)) })
	}
}

// pair is a Curator process and a Docent client with a mutex on one path.
type pair struct {
	node *harness.Node
	java *peers.Java
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
func (p *pair) peer(ctx context.Context, t *testing.T) *peers.Java {
	t.Helper()
	j := peers.StartJava(ctx, t)
	_, err := j.Connect(ctx, p.node.Addr(), sessionTimeout)
	check(t, err)
	check(t, j.Mutex(ctx, "m", p.path))
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
		_ = c.Close(cctx) // the case has looked at what matters to it
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

// excluded shows that Java cannot have the lock now.
func excluded(ctx context.Context, t *testing.T, j *peers.Java) {
	t.Helper()
	got, err := j.Thread("probe").TryAcquire(ctx, "m", soon)
	check(t, err)
	if got {
		t.Fatal("Curator acquired a lock that is held")
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
	for {
		line, err := p.m.Queue(ctx)
		check(t, err)
		if len(line) == n {
			return line
		}
	}
}

func javaFirst(ctx context.Context, t *testing.T, p *pair) {
	th := p.java.Thread("a")
	check(t, th.Acquire(ctx, "m"))
	shut(ctx, t, p.m)
	p.queued(ctx, t, 1) // the waiter that gave up is gone
	done := acquire(ctx, p.m)
	line := p.queued(ctx, t, 2)
	names, err := p.java.Participants(ctx, "m")
	check(t, err)
	if !line[0].Holder || !slices.Equal(names, []string{line[0].Path, line[1].Path}) {
		t.Errorf("Curator sees %v, Docent %v", names, line)
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
	go func() { done <- th.Acquire(ctx, "m") }()
	p.queued(ctx, t, 2)
	check(t, h.Release(ctx))
	check(t, <-done)
	shut(ctx, t, p.m)
	if _, err := p.m.TryAcquire(ctx); err == nil || !strings.Contains(err.Error(), "held by somebody else") {
		t.Errorf("TryAcquire: %v", err)
	}
	check(t, th.Release(ctx, "m"))
	h, err = p.m.TryAcquire(ctx)
	check(t, err)
	check(t, h.Release(ctx))
}

// oneLine queues Java and Go in turns and lets them through: in the order in
// which they came, whatever they are written in.
func oneLine(ctx context.Context, t *testing.T, p *pair) {
	first, err := p.m.Acquire(ctx)
	check(t, err)
	const each = 4
	granted := make(chan int, 2*each)
	var all sync.WaitGroup
	for i := range 2 * each {
		if i%2 == 0 {
			th := p.java.Thread(fmt.Sprintf("t%d", i))
			all.Go(func() {
				if err := th.Acquire(ctx, "m"); err != nil {
					t.Error(err)
					return
				}
				granted <- i
				if err := th.Release(ctx, "m"); err != nil {
					t.Error(err)
				}
			})
		} else {
			all.Go(func() {
				if err := p.m.Do(ctx, func(context.Context) error { granted <- i; return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		p.queued(ctx, t, i+2)
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
	check(t, th.Acquire(ctx, "m"))
	check(t, th.Acquire(ctx, "m"))
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
	check(t, th.Acquire(ctx, "m"))
	check(t, th.Release(ctx, "m"))
}

// sameNodes compares what the two leave in ZooKeeper, byte by byte where the
// bytes do not name the contender.
func sameNodes(ctx context.Context, t *testing.T, p *pair) {
	raw, _ := harness.Dial(ctx, t, 20*time.Second, p.node.Addr())
	var err error
	look := func(lock string) string {
		names, stat, err := raw.Children(lock)
		check(t, err)
		if len(names) != 1 {
			t.Fatalf("%s has %v", lock, names)
		}
		if !regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-lock-0000000000$`).MatchString(names[0]) {
			t.Errorf("name %s", names[0])
		}
		data, member, err := raw.Get(lock + "/" + names[0])
		check(t, err)
		if net.ParseIP(string(data)) == nil {
			t.Errorf("data %q is not the address of a host", data)
		}
		acl, _, err := raw.GetACL(lock + "/" + names[0])
		check(t, err)
		parentACL, _, err := raw.GetACL(lock)
		check(t, err)
		parentData, _, err := raw.Get(lock)
		check(t, err)
		return fmt.Sprintf("ephemeral %v, acl %v, version %d; parent: %d children, cversion %d, acl %v, data %q (null %v), owner %d",
			member.EphemeralOwner != 0, acl, member.Version, stat.NumChildren, stat.Cversion, parentACL, parentData, parentData == nil, stat.EphemeralOwner)
	}
	for i, lock := range []string{p.path + "-java", p.path + "-go"} {
		if i == 0 {
			check(t, p.java.Mutex(ctx, "own", lock))
			check(t, p.java.Thread("a").Acquire(ctx, "own"))
			continue
		}
		m, err := recipes.NewInterProcessMutex(p.c, lock)
		check(t, err)
		_, err = m.Acquire(ctx)
		check(t, err)
	}
	if java, docent := look(p.path+"-java"), look(p.path+"-go"); java != docent {
		t.Errorf("Curator leaves: %s\nDocent leaves:  %s", java, docent)
	}
	// Both kinds of parent are containers: they go when they are empty.
	check(t, p.java.Thread("a").Release(ctx, "own"))
	check(t, p.c.Close(ctx))
	for _, lock := range []string{p.path + "-java", p.path + "-go"} {
		for there := true; there; {
			there, _, err = raw.Exists(lock)
			check(t, err)
			check(t, ctx.Err())
		}
	}
}

func killed(ctx context.Context, t *testing.T, p *pair) {
	check(t, p.java.Thread("a").Acquire(ctx, "m"))
	done := acquire(ctx, p.m)
	p.queued(ctx, t, 2)
	id, err := p.java.Session(ctx)
	check(t, err)
	check(t, sessions.KillSession(ctx, p.node.Addr(), id))
	r := <-done
	check(t, r.err)

	waiting := make(chan error, 1)
	other := p.peer(ctx, t)
	go func() { waiting <- other.Thread("b").Acquire(ctx, "m") }()
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

// mixedLoad lets Java threads and goroutines of several processes and clients
// take the lock as often as they can, with a witness outside that counts how
// many hold it.
func mixedLoad(ctx context.Context, t *testing.T, p *pair) {
	const length = 20 * time.Second
	until, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var holders, overlaps, ofJava, ofGo atomic.Int64
	critical := func(count *atomic.Int64) {
		if holders.Add(1) != 1 {
			overlaps.Add(1)
		}
		count.Add(1)
		<-time.After(rand.N(time.Millisecond)) // the work
		holders.Add(-1)
	}
	var all sync.WaitGroup
	for _, j := range []*peers.Java{p.java, p.peer(ctx, t)} {
		for i := range 2 {
			th := j.Thread(fmt.Sprintf("t%d", i))
			all.Go(func() {
				for until.Err() == nil {
					if err := th.Acquire(ctx, "m"); err != nil {
						t.Error(err)
						return
					}
					critical(&ofJava)
					if err := th.Release(ctx, "m"); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	_, second := p.docent(ctx, t)
	for _, m := range []*recipes.InterProcessMutex{p.m, second} {
		for range 2 {
			all.Go(func() {
				for until.Err() == nil {
					if err := m.Do(ctx, func(context.Context) error { critical(&ofGo); return nil }); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	t.Logf("in %v Java held %d times, Go %d times, %d overlaps", length, ofJava.Load(), ofGo.Load(), overlaps.Load())
	if overlaps.Load() != 0 {
		t.Errorf("%d overlaps", overlaps.Load())
	}
	if ofJava.Load() < 50 || ofGo.Load() < 50 {
		t.Error("too few to mean anything")
	}
	raw, _ := harness.Dial(ctx, t, 20*time.Second, p.node.Addr())
	if names, _, err := raw.Children(p.path); err != nil && err != zk.ErrNoNode || len(names) != 0 { //nolint:errorlint // go-zookeeper returns it bare
		t.Errorf("left behind: %v, %v", names, err)
	}
}
