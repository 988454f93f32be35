package proxy_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/internal/zoodefs"
)

const sessionTimeout = 10 * time.Second

// rig is one real server, a proxy before it, a client of each. Names are made from
// the test's so that tests share the server.
type rig struct {
	ctx     context.Context
	proxy   *proxy.Proxy
	through *zk.Conn        // behind the proxy
	events  <-chan zk.Event // of through
	direct  *zk.Conn        // past it
	path    string          // free for the test's use, exists not yet
}

func newRig(t *testing.T, node *harness.Node, opts ...proxy.Option) rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	p := proxy.Start(t, node.Addr(), opts...)
	r := rig{ctx: ctx, proxy: p}
	r.direct, _ = harness.Dial(ctx, t, sessionTimeout, node.Addr())
	r.through, r.events = harness.Dial(ctx, t, sessionTimeout, p.Addr())
	parent, err := r.direct.Create("/t", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
	check(t, err)
	r.path = parent + "/n"
	return r
}

func (r rig) create(path string) error {
	_, err := r.through.Create(path, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	return err
}

// exists asks past the proxy, as of now.
func (r rig) exists(t *testing.T) bool {
	t.Helper()
	_, err := r.direct.Sync(r.path)
	check(t, err)
	found, _, err := r.direct.Exists(r.path)
	check(t, err)
	return found
}

// start runs a call that may hang and returns where its error comes to.
func start(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

func (r rig) await(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-r.ctx.Done():
		t.Fatal("the call did not return")
		return nil
	}
}

func (r rig) stillWaiting(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("the call returned: %v", err)
	case <-time.After(200 * time.Millisecond): // long against a round trip of under 1 ms
	}
}

func TestProxyRules(t *testing.T) {
	node := harness.StartServer(t.Context(), t)

	t.Run("swallow reply and cut", func(t *testing.T) {
		r := newRig(t, node)
		rule := r.proxy.On(proxy.Match{Op: zoodefs.OpCreate, Path: r.path}, proxy.SwallowReplyAndCut)
		if err := r.create(r.path); !errors.Is(err, zk.ErrConnectionClosed) {
			t.Fatalf("create: %v", err)
		}
		answer, err := rule.AwaitAnswer(r.ctx)
		check(t, err)
		if answer.Path != r.path || answer.Err != 0 || answer.Zxid == 0 {
			t.Fatalf("answer: %+v", answer)
		}
		if !r.exists(t) {
			t.Fatal("the server has not applied the create")
		}
		check(t, harness.AwaitState(r.ctx, r.events, zk.StateHasSession))
		if err := r.create(r.path); !errors.Is(err, zk.ErrNodeExists) {
			t.Fatalf("the rule fired twice: %v", err)
		}
	})

	t.Run("swallow reply", func(t *testing.T) {
		r := newRig(t, node)
		rule := r.proxy.On(proxy.Match{Op: zoodefs.OpCreate}, proxy.SwallowReply)
		done := start(func() error { return r.create(r.path) })
		_, err := rule.AwaitAnswer(r.ctx)
		check(t, err)
		if _, _, err := r.through.Get("/"); err != nil {
			t.Fatalf("the connection did not stay: %v", err)
		}
		r.stillWaiting(t, done)
		if !r.exists(t) {
			t.Fatal("the server has not applied the create")
		}
		r.proxy.CutAll()
		if err := r.await(t, done); !errors.Is(err, zk.ErrConnectionClosed) {
			t.Fatalf("create after the cut: %v", err)
		}
	})

	t.Run("cut before", func(t *testing.T) {
		r := newRig(t, node)
		rule := r.proxy.On(proxy.Match{Op: zoodefs.OpCreate}, proxy.CutBefore)
		if err := r.create(r.path); !errors.Is(err, zk.ErrConnectionClosed) {
			t.Fatalf("create: %v", err)
		}
		req, err := rule.Await(r.ctx)
		check(t, err)
		if req.Path != r.path || req.Session != r.through.SessionID() {
			t.Fatalf("request: %+v, session %#x", req, r.through.SessionID())
		}
		if r.exists(t) {
			t.Fatal("the request reached the server")
		}
	})

	t.Run("cut after send", func(t *testing.T) {
		r := newRig(t, node)
		rule := r.proxy.On(proxy.Match{Op: zoodefs.OpCreate}, proxy.CutAfterSend)
		if err := r.create(r.path); !errors.Is(err, zk.ErrConnectionClosed) {
			t.Fatalf("create: %v", err)
		}
		answer, err := rule.AwaitAnswer(r.ctx)
		check(t, err)
		if answer.Path != r.path || !r.exists(t) {
			t.Fatalf("the request did not reach the server: %+v", answer)
		}
	})

	t.Run("lost handshake", func(t *testing.T) {
		r := newRig(t, node)
		id := r.through.SessionID()
		rule := r.proxy.On(proxy.Match{Op: zoodefs.OpConnect}, proxy.SwallowReplyAndCut)
		r.proxy.CutAll()
		req, err := rule.Await(r.ctx)
		check(t, err)
		if req.Session != id {
			t.Fatalf("the client asked for session %#x, had %#x", req.Session, id)
		}
		check(t, harness.AwaitState(r.ctx, r.events, zk.StateHasSession))
		if got := r.through.SessionID(); got != id {
			t.Fatalf("session changed from %#x to %#x", id, got)
		}
	})

	t.Run("then refuse", func(t *testing.T) {
		r := newRig(t, node)
		r.proxy.On(proxy.Match{Op: zoodefs.OpCreate}, proxy.CutAfterSend, func(proxy.Request) { r.proxy.Refuse(0) })
		if err := r.create(r.path); !errors.Is(err, zk.ErrConnectionClosed) {
			t.Fatalf("create: %v", err)
		}
		check(t, harness.AwaitState(r.ctx, r.events, zk.StateDisconnected))
		if got := len(r.proxy.Conns()); got != 1 {
			t.Fatalf("the client came back before Accept: %d connections", got)
		}
		r.proxy.Accept()
		check(t, harness.AwaitState(r.ctx, r.events, zk.StateHasSession))
	})

	t.Run("choice", func(t *testing.T) {
		r := newRig(t, node)
		rule := r.proxy.On(proxy.Match{Prefix: r.path, Nth: 2, Times: 2, Where: func(q proxy.Request) bool { return q.Op.Creates() || q.Op == zoodefs.OpMulti }}, proxy.CutBefore)
		var lost []int
		for i := range 6 {
			path := r.path + string(rune('a'+i))
			op := &zk.CreateRequest{Path: path, Acl: zk.WorldACL(zk.PermAll)}
			if _, err := r.through.Multi(&zk.CheckVersionRequest{Path: "/", Version: -1}, op); err != nil {
				lost = append(lost, i)
			}
			if _, _, err := r.through.Get("/"); err != nil {
				check(t, harness.AwaitState(r.ctx, r.events, zk.StateHasSession))
			}
		}
		if !slices.Equal(lost, []int{1, 2}) {
			t.Fatalf("lost %v, want the second and third match; rule fired %v", lost, rule.Fired())
		}
	})

	t.Run("removed", func(t *testing.T) {
		r := newRig(t, node)
		rule := r.proxy.On(proxy.Match{}, proxy.CutBefore)
		rule.Remove()
		check(t, r.create(r.path))
		bounded, cancel := context.WithTimeout(r.ctx, 10*time.Millisecond)
		defer cancel()
		if _, err := rule.Await(bounded); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("await of a rule that cannot fire: %v", err)
		}
	})

	t.Run("seed", func(t *testing.T) {
		var first []string
		for round := range 2 {
			r := newRig(t, node, proxy.WithSeed(7))
			rule := r.proxy.On(proxy.Match{Op: zoodefs.OpGetData, Times: proxy.Always, Probability: 0.3}, proxy.StallReplies)
			for i := range 20 {
				done := start(func() error { _, _, err := r.through.Get("/x" + string(rune('a'+i))); return err })
				for held := true; held; {
					select {
					case err := <-done:
						if !errors.Is(err, zk.ErrNoNode) {
							t.Fatal(err)
						}
						held = false
					case <-time.After(5 * time.Millisecond):
						rule.Resume()
					}
				}
			}
			var fired []string
			for _, q := range rule.Fired() {
				fired = append(fired, q.Path)
			}
			if round == 0 {
				first = fired
			} else if !slices.Equal(first, fired) || len(fired) == 0 || len(fired) == 20 {
				t.Fatalf("one seed, two histories: %v and %v", first, fired)
			}
		}
	})
}

func TestProxyStalls(t *testing.T) {
	node := harness.StartServer(t.Context(), t)

	t.Run("stall", func(t *testing.T) {
		r := newRig(t, node)
		rule := r.proxy.On(proxy.Match{Op: zoodefs.OpCreate}, proxy.Stall)
		done := start(func() error { return r.create(r.path) })
		_, err := rule.Await(r.ctx)
		check(t, err)
		r.stillWaiting(t, done)
		if r.exists(t) {
			t.Fatal("the request reached the server")
		}
		rule.Resume()
		check(t, r.await(t, done))
	})

	t.Run("stall replies forces a race", func(t *testing.T) {
		r := newRig(t, node)
		check(t, r.create(r.path))
		rule := r.proxy.On(proxy.Match{Op: zoodefs.OpGetChildren2, Path: r.path}, proxy.StallReplies)
		var children []string
		done := start(func() (err error) { children, _, err = r.through.Children(r.path); return err })
		_, err := rule.AwaitAnswer(r.ctx)
		check(t, err)
		_, err = r.direct.Create(r.path+"/late", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		check(t, err)
		r.stillWaiting(t, done)
		rule.Resume()
		check(t, r.await(t, done))
		if len(children) != 0 {
			t.Fatalf("the client was told of %v, which came after the answer", children)
		}
	})

	t.Run("stall replies waits for its own answer", func(t *testing.T) {
		r := newRig(t, node)
		check(t, r.create(r.path))
		for range 20 { // in about half of them the other answer comes first
			rule := r.proxy.On(proxy.Match{Op: zoodefs.OpGetChildren2, Path: r.path}, proxy.StallReplies)
			r.proxy.StallRequests()
			read := start(func() error { _, _, err := r.through.Get(r.path); return err })
			listed := start(func() error { _, _, err := r.through.Children(r.path); return err })
			r.proxy.Resume()
			_, err := rule.AwaitAnswer(r.ctx)
			check(t, err)
			rule.Resume()
			check(t, r.await(t, read))
			check(t, r.await(t, listed))
		}
	})

	t.Run("stall requests", func(t *testing.T) {
		r := newRig(t, node)
		check(t, r.create(r.path))
		_, _, changed, err := r.through.GetW(r.path)
		check(t, err)
		r.proxy.StallRequests()
		done := start(func() error { return r.create(r.path + "/x") })
		r.stillWaiting(t, done)
		_, err = r.direct.Set(r.path, nil, -1)
		check(t, err)
		select {
		case <-changed:
		case <-r.ctx.Done():
			t.Fatal("the other direction is held too: no watch event")
		}
		r.proxy.Resume()
		check(t, r.await(t, done))
	})

	t.Run("server's end is held too", func(t *testing.T) {
		r := newRig(t, node)
		r.proxy.Stall()
		check(t, node.Kill(r.ctx))
		r.stillWaiting(t, start(func() error { return harness.AwaitState(r.ctx, r.events, zk.StateDisconnected) }))
		check(t, node.Start(r.ctx))
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
