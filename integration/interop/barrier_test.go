package interop_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/integration/sessions"
	"github.com/docent-go/docent/recipes/barrier"
)

var barrierTime = flag.Duration("barriers", 20*time.Second, "how long TestBarriersMixed lasts")

// comer is one member of a double barrier, of either library.
type comer struct {
	name    string
	enter   func(ctx context.Context) error
	leave   func(ctx context.Context) error
	session func(ctx context.Context) (int64, error)
	kill    func(ctx context.Context, addr string) error // its session, or its process
	reset   func(ctx context.Context, t *testing.T)      // after Curator has thrown
	curator bool
}

// barrierScene is one server with a path.
type barrierScene struct {
	node *harness.Node
	c    *client.Client // that looks on
	path string
}

func newBarrierScene(ctx context.Context, t *testing.T, node *harness.Node) *barrierScene {
	t.Helper()
	s := &barrierScene{node: node, path: fmt.Sprintf("/interop/barrier-%d/b", paths.Add(1))}
	s.c = s.client(ctx, t)
	return s
}

func (s *barrierScene) client(ctx context.Context, t *testing.T) *client.Client {
	t.Helper()
	c, err := client.Connect(ctx, s.node.Addr(), client.WithSessionTimeout(sessionTimeout), client.WithLogger(slog.New(slog.DiscardHandler)))
	check(t, err)
	t.Cleanup(func() {
		cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = c.CloseContext(cctx) // the case has looked at what matters to it
	})
	return c
}

func (s *barrierScene) docent(ctx context.Context, t *testing.T, name string, members int) *comer {
	t.Helper()
	c := s.client(ctx, t)
	b, err := barrier.NewDistributedDoubleBarrier(c, s.path, members, barrier.WithMemberName(name))
	check(t, err)
	var m *barrier.Member
	d := &comer{
		name:  name,
		enter: func(ctx context.Context) (err error) { m, err = b.Enter(ctx); return err },
		leave: func(ctx context.Context) error { return m.Leave(ctx) },
		session: func(ctx context.Context) (int64, error) {
			s, err := c.Session(ctx)
			if err != nil {
				return 0, err
			}
			return s.ID(), nil
		},
		reset: func(context.Context, *testing.T) {},
	}
	d.kill = d.killSession
	return d
}

func (c *comer) killSession(ctx context.Context, addr string) error {
	id, err := c.session(ctx)
	if err != nil {
		return err
	}
	return sessions.KillSession(ctx, addr, id)
}

func (s *barrierScene) java(ctx context.Context, t *testing.T, name string, members int) *comer {
	t.Helper()
	peer, life := peers.StartJava(ctx, t), ctx
	turn, dead := 0, false
	j := &comer{name: name, curator: true}
	var th *peers.Thread
	j.kill = func(ctx context.Context, addr string) error {
		if rand.N(3) != 0 {
			return j.killSession(ctx, addr)
		}
		dead = true
		return peer.Kill(ctx)
	}
	j.reset = func(ctx context.Context, t *testing.T) {
		t.Helper()
		if dead {
			peer, dead = peers.StartJava(life, t), false
		} else if turn > 0 {
			check(t, peer.Close(ctx, fmt.Sprint("c", turn)))
		}
		turn++
		th = peer.Thread(fmt.Sprint("t", turn))
		_, err := peer.Connect(ctx, fmt.Sprint("c", turn), s.node.Addr(), sessionTimeout)
		check(t, err)
		check(t, peer.Make(ctx, fmt.Sprint("b", turn), fmt.Sprint("c", turn), "double-barrier", s.path, fmt.Sprint(members)))
	}
	j.reset(ctx, t)
	j.enter = func(ctx context.Context) error {
		wait := peers.Forever
		if rand.N(2) == 0 {
			wait = stuck
		}
		_, err := th.Acquire(ctx, fmt.Sprint("b", turn), 1, wait)
		return err
	}
	j.leave = func(ctx context.Context) error { return th.Release(ctx, fmt.Sprint("b", turn)) }
	j.session = func(ctx context.Context) (int64, error) { return peer.Session(ctx, fmt.Sprint("c", turn)) }
	return j
}

var uuidName = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// children are the names below the barrier, with UUIDs as "member".
func (s *barrierScene) children(ctx context.Context, t *testing.T) []string {
	t.Helper()
	names, _, err := s.c.Children(ctx, s.path)
	if !errors.Is(err, zk.ErrNoNode) {
		check(t, err)
	}
	for i, name := range names {
		if uuidName.MatchString(name) {
			names[i] = "member"
		}
	}
	slices.Sort(names)
	return names
}

// stands waits until so many members stand, in sessions other than old.
func (s *barrierScene) stands(ctx context.Context, t *testing.T, n int, old int64) {
	t.Helper()
	b, err := barrier.NewDistributedDoubleBarrier(s.c, s.path, max(1, n))
	check(t, err)
	for {
		v, err := b.View(ctx)
		if err != nil {
			t.Fatalf("%v, wanted %d members", err, n)
		}
		now := 0
		for _, m := range v.Members {
			if m.Session != old {
				now++
			}
		}
		if now == n {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}

// TestBarriersMixed lets two processes of each library pass a double barrier on
// one path again and again. Sessions and processes are killed before all have
// come and while all are inside. No Docent may enter before the last has come or
// leave before the last leaves. All must pass. Curator 5.4 does both after
// session events (GH-1290), which is counted, and reported.
func TestBarriersMixed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), *barrierTime+3*time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t, harness.WithTickTime(500*time.Millisecond))
	s := newBarrierScene(ctx, t, node)
	all := []*comer{s.docent(ctx, t, "d1", 4), s.docent(ctx, t, "d2", 4), s.java(ctx, t, "j1", 4), s.java(ctx, t, "j2", 4)}
	var done barrierTally
	for end := time.Now().Add(*barrierTime); time.Now().Before(end); {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		round, stop := context.WithTimeout(ctx, time.Minute)
		s.round(round, t, all, &done)
		stop()
	}
	t.Logf("%+v", done)
	if done.Rounds < 5 || done.KilledWaiting == 0 || done.KilledInside == 0 {
		t.Errorf("too little happened: %+v", done)
	}
}

// barrierTally is what has happened.
type barrierTally struct {
	Rounds, KilledWaiting, KilledInside, CuratorEarly, CuratorThrew int
}

// returned is a call of a comer that has returned.
type returned struct {
	who *comer
	err error
}

// round lets all enter and leave.
func (s *barrierScene) round(ctx context.Context, t *testing.T, all []*comer, done *barrierTally) {
	t.Helper()
	last := all[len(all)-1]
	back := make(chan returned, 2*len(all))
	enter := func(c *comer) { go func() { back <- returned{c, c.enter(ctx)} }() }
	for _, c := range all[:len(all)-1] {
		enter(c)
	}
	s.stands(ctx, t, len(all)-1, 0)
	if rand.N(3) == 0 {
		done.KilledWaiting++
		s.killWaiting(ctx, t, all[rand.N(len(all)-1)], back, enter, done)
		s.stands(ctx, t, len(all)-1, 0)
	}
	early := map[*comer]bool{}
	for range len(back) {
		r := <-back
		if !r.who.curator {
			t.Fatalf("%s passed Enter before %s has come: %v", r.who.name, last.name, r.err)
		}
		check(t, r.err)
		done.CuratorEarly++
		early[r.who] = true
	}
	enter(last)
	for range len(all) - len(early) {
		s.next(ctx, t, back, "Enter", func(r returned) { check(t, r.err) })
	}
	var dead *comer
	if rand.N(4) == 0 {
		done.KilledInside++
		dead = all[rand.N(len(all))]
		id, err := dead.session(ctx)
		check(t, err)
		check(t, dead.kill(ctx, s.node.Addr()))
		s.stands(ctx, t, len(all)-1, id)
	}
	s.leaveAll(ctx, t, all, dead, done)
	done.Rounds++
}

// killWaiting ends the session of a member that waits, and waits until it is back.
// Curator throws or passes, and then comes again as a new member of a new client.
func (s *barrierScene) killWaiting(ctx context.Context, t *testing.T, c *comer, back chan returned, enter func(*comer), done *barrierTally) {
	t.Helper()
	check(t, c.kill(ctx, s.node.Addr()))
	if !c.curator {
		return
	}
	s.next(ctx, t, back, "Curator's enter after a kill", func(r returned) {
		if r.who != c {
			t.Fatalf("%s passed Enter when %s was killed: %v", r.who.name, c.name, r.err)
		}
		if r.err == nil {
			done.CuratorEarly++
		} else {
			done.CuratorThrew++
		}
	})
	c.reset(ctx, t)
	enter(c)
}

func (s *barrierScene) next(ctx context.Context, t *testing.T, back chan returned, what string, f func(returned)) {
	t.Helper()
	select {
	case r := <-back:
		f(r)
	case <-ctx.Done():
		t.Fatalf("stuck in %s; there are %v", what, s.children(context.WithoutCancel(ctx), t))
	}
}

// leaveAll lets all leave; dead is a member whose session was killed, if any.
func (s *barrierScene) leaveAll(ctx context.Context, t *testing.T, all []*comer, dead *comer, done *barrierTally) {
	t.Helper()
	back := make(chan returned, len(all))
	leave := func(c *comer) { go func() { back <- returned{c, c.leave(ctx)} }() }
	last := all[len(all)-1]
	for _, c := range all[:len(all)-1] {
		leave(c)
	}
	<-time.After(50 * time.Millisecond)
	seen := len(back)
	for range seen {
		r := <-back
		switch {
		case r.who == dead, last == dead:
		case r.who.curator && r.err == nil:
			done.CuratorEarly++
		case r.who.curator:
			done.CuratorThrew++
			r.who.reset(ctx, t)
		default:
			t.Fatalf("%s passed Leave before %s has left: %v", r.who.name, last.name, r.err)
		}
	}
	leave(last)
	for range len(all) - seen {
		s.next(ctx, t, back, "Leave", func(r returned) {
			switch {
			case r.err == nil || r.who == dead:
			case r.who.curator:
				done.CuratorThrew++
				r.who.reset(ctx, t)
			default:
				check(t, r.err)
			}
		})
	}
	if dead != nil {
		dead.reset(ctx, t)
	}
	s.stands(ctx, t, 0, 0)
}

// TestBarrierLayouts compares what the two libraries leave, node by node: kind, owner,
// counters and ACL. Docent's members write their number behind the address.
func TestBarrierLayouts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t, harness.WithTickTime(500*time.Millisecond))
	var seen [2][]string
	for i := range seen {
		s := newBarrierScene(ctx, t, node)
		var all []*comer
		for _, name := range []string{"a", "b"} {
			if i == 0 {
				all = append(all, s.docent(ctx, t, name, 2))
			} else {
				all = append(all, s.java(ctx, t, name, 2))
			}
		}
		see := func(heading string) { seen[i] = append(seen[i], heading+": "+s.tree(ctx, t)) }
		back := make(chan returned, 2)
		go func() { back <- returned{all[0], all[0].enter(ctx)} }()
		s.stands(ctx, t, 1, 0)
		see("one waits")
		check(t, all[1].enter(ctx))
		s.next(ctx, t, back, "Enter", func(r returned) { check(t, r.err) })
		see("inside")
		go func() { back <- returned{all[0], all[0].leave(ctx)} }()
		check(t, all[1].leave(ctx))
		s.next(ctx, t, back, "Leave", func(r returned) { check(t, r.err) })
		see("left")
	}
	if !slices.Equal(seen[0], seen[1]) {
		t.Errorf("Docent leaves\n%s\nand Curator\n%s", strings.Join(seen[0], "\n"), strings.Join(seen[1], "\n"))
	}
}

// tree describes the directory and the nodes in it.
func (s *barrierScene) tree(ctx context.Context, t *testing.T) string {
	t.Helper()
	names, stat, err := s.c.Children(ctx, s.path)
	check(t, err)
	all := []string{fmt.Sprintf("directory, owner %d, version %d, cversion %d", stat.EphemeralOwner, stat.Version, stat.Cversion)}
	for _, name := range names {
		data, stat, err := s.c.Get(ctx, s.path+"/"+name)
		check(t, err)
		acl, _, err := s.c.GetACL(ctx, s.path+"/"+name)
		check(t, err)
		address, _, _ := strings.Cut(string(data), " ")
		all = append(all, fmt.Sprintf("%s, ephemeral %v, version %d, cversion %d, acl %v, %s",
			uuidName.ReplaceAllString(name, "<uuid>"), stat.EphemeralOwner != 0, stat.Version, stat.Cversion, acl, describe([]byte(address))))
	}
	slices.Sort(all[1:])
	return strings.Join(all, "; ")
}

// TestBarrierMixed lets each library wait for the other's DistributedBarrier.
func TestBarrierMixed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := newBarrierScene(ctx, t, harness.StartServer(ctx, t, harness.WithTickTime(500*time.Millisecond)))
	peer := peers.StartJava(ctx, t)
	_, err := peer.Connect(ctx, "c", s.node.Addr(), sessionTimeout)
	check(t, err)
	check(t, peer.Make(ctx, "b", "c", "barrier", s.path))
	b, err := barrier.NewDistributedBarrier(s.c, s.path)
	check(t, err)
	owner := peer.Thread("owner")
	for _, setter := range []struct{ set, remove func() error }{
		{func() error { return b.Set(ctx) }, func() error { return b.Remove(ctx) }},
		{func() error { return owner.Release(ctx, "b") }, func() error { return owner.Release(ctx, "b") }},
	} {
		check(t, setter.set())
		back := make(chan error, 2)
		go func() { back <- b.Wait(ctx) }()
		go func() { _, err := peer.Thread("waiter").Acquire(ctx, "b", 1, peers.Forever); back <- err }()
		select {
		case err := <-back:
			t.Fatalf("passed a barrier that stands: %v", err)
		case <-time.After(soon):
		}
		check(t, setter.remove())
		check(t, <-back)
		check(t, <-back)
	}
}
