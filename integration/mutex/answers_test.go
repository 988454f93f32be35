package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/internal/zoodefs"
	"github.com/docent-go/docent/recipes"
)

// TestFaults runs everything that needs one real server and a proxy.
func TestFaults(t *testing.T) {
	ctx := limited(t, 8*time.Minute)
	node := harness.StartServer(ctx, t,
		harness.WithTickTime(500*time.Millisecond), harness.WithContainerInterval(200*time.Millisecond))
	for _, c := range []struct {
		name string
		run  func(context.Context, *testing.T, *world)
	}{
		{"one request at a time is lost", lostRequests},
		{"answer to a create lost, then silence", ghost},
		{"predecessor goes between list and watch", predecessorGone},
		{"session killed while waiting", killedWaiting},
		{"session killed while holding", killedHolding},
		{"session killed at the grant", killedAtGrant},
		{"foreign children", foreignChildren},
		{"directory deleted under the holder", directoryDeleted},
		{"waiting node deleted", waitingNodeDeleted},
		{"directory reaped in between", directoryReaped},
		{"cancelled at every step", cancelledEverywhere},
		{"partition, both ways and each way alone", partitions},
		{"frozen server", frozenServer},
		{"close in a partition", closeInPartition},
		{"wake-ups and watches", wakeUps},
		{"round trips", roundTrips},
		{"try to acquire", tryAcquire},
		{"re-entry", reentry},
		{"tokens", tokens},
		{"counter at its end", exhausted},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(ctx, t, newWorld(ctx, t, node)) })
	}
	t.Run("nothing is watched any more", func(t *testing.T) {
		eventually(t, 10*time.Second, func() error {
			w, err := node.Watches(ctx)
			if err == nil && w.Total != 0 {
				err = fmt.Errorf("%d watches left", w.Total)
			}
			return err
		})
	})
}

// lostRequests loses each request of an acquire and a release once, in each
// way: the lock is taken with one node and released with none.
func lostRequests(ctx context.Context, t *testing.T, base *world) {
	ops := map[string]zoodefs.Op{
		"create": zoodefs.OpCreate, "list": zoodefs.OpGetChildren2, "delete": zoodefs.OpDelete,
		"parent": zoodefs.OpCreateContainer,
	}
	actions := []proxy.Action{proxy.SwallowReplyAndCut, proxy.CutAfterSend, proxy.CutBefore}
	for name, op := range ops {
		for _, action := range actions {
			t.Run(fmt.Sprintf("%s %v", name, action), func(t *testing.T) {
				w := newWorld(ctx, t, base.node)
				c := connect(ctx, t, w.px.Addr())
				rule := w.px.On(proxy.Match{Op: op, Prefix: w.dir}, action)
				h := held(ctx, t, w.mutex(t, c))
				if in := w.contenders(t); len(in) != 1 || !strings.HasSuffix(h.Path(), in[0]) {
					t.Errorf("in line: %v, hold %s", in, h.Path())
				}
				_, stat, err := w.raw.Get(h.Path())
				check(t, err)
				if stat.Czxid != h.FencingToken() {
					t.Errorf("token %d, czxid %d", h.FencingToken(), stat.Czxid)
				}
				check(t, h.Release(ctx))
				if len(rule.Fired()) != 1 {
					t.Fatalf("the fault happened %d times", len(rule.Fired()))
				}
				w.empty(t)
				w.free(ctx, t)
			})
		}
	}
}

// ghost loses the answer to the create, and every server with it. The caller is
// told in time, and the node is deleted when a server is back.
func ghost(ctx context.Context, t *testing.T, w *world) {
	c := connect(ctx, t, w.px.Addr())
	check(t, held(ctx, t, w.mutex(t, c)).Release(ctx)) // makes the directory
	w.px.On(proxy.Match{Op: zoodefs.OpCreate, Prefix: w.dir}, proxy.SwallowReplyAndCut,
		func(proxy.Request) { w.px.Refuse(0) })
	actx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r := await(ctx, t, acquire(actx, w.mutex(t, c)))
	wantErr(t, r.err, context.DeadlineExceeded)
	if !client.UnknownOutcome(r.err) {
		t.Errorf("%v: want an unknown outcome", r.err)
	}
	if r.took > time.Second+grace {
		t.Errorf("took %v", r.took)
	}
	if n := len(w.contenders(t)); n != 1 {
		t.Fatalf("%d nodes, want the ghost: the fault did not work", n)
	}
	w.px.Accept()
	w.empty(t)
	w.free(ctx, t)
}

func predecessorGone(ctx context.Context, t *testing.T, w *world) {
	first := held(ctx, t, w.mutex(t, connect(ctx, t, w.node.Addr())))
	c := connect(ctx, t, w.px.Addr())
	rule := w.px.On(proxy.Match{Op: zoodefs.OpGetData, Path: first.Path()}, proxy.StallRequests)
	done := acquire(ctx, w.mutex(t, c))
	_, err := rule.Await(ctx) // listed, about to watch
	check(t, err)
	check(t, first.Release(ctx))
	rule.Resume()
	r := await(ctx, t, done)
	check(t, r.err)
	check(t, r.hold.Release(ctx))
	w.empty(t)
}

func killedWaiting(ctx context.Context, t *testing.T, w *world) {
	first := held(ctx, t, w.mutex(t, connect(ctx, t, w.node.Addr())))
	c := connect(ctx, t, w.node.Addr())
	done := acquire(ctx, w.mutex(t, c))
	w.waiting(t, 2)
	w.killSession(ctx, t, session(ctx, t, c))
	r := await(ctx, t, done)
	wantErr(t, r.err, client.ErrSessionLost)
	w.waiting(t, 1)
	check(t, first.Err())
	check(t, first.Release(ctx))
	// The client goes on with the next session.
	check(t, held(ctx, t, w.mutex(t, c)).Release(ctx))
	w.empty(t)
}

func killedHolding(ctx context.Context, t *testing.T, w *world) {
	c := connect(ctx, t, w.node.Addr())
	m := w.mutex(t, c)
	h := held(ctx, t, m)
	w.killSession(ctx, t, session(ctx, t, c))
	select {
	case <-h.Context().Done():
	case <-ctx.Done():
		t.Fatal("the holder was not told")
	}
	wantErr(t, h.Err(), recipes.ErrLost, client.ErrSessionLost)
	wantErr(t, context.Cause(h.Context()), recipes.ErrLost)
	_, err := m.Acquire(context.WithoutCancel(h.Context()))
	wantErr(t, err, recipes.ErrLost) // local memory is no lock
	wantErr(t, h.Release(ctx), recipes.ErrLost)
	w.empty(t)
	w.free(ctx, t)
}

// killedAtGrant ends the session after the server has answered that the lock
// is ours and before we hear it.
func killedAtGrant(ctx context.Context, t *testing.T, w *world) {
	c := connect(ctx, t, w.px.Addr())
	check(t, held(ctx, t, w.mutex(t, c)).Release(ctx))
	rule := w.px.On(proxy.Match{Op: zoodefs.OpGetChildren2, Path: w.dir}, proxy.StallReplies)
	done := acquire(ctx, w.mutex(t, c))
	_, err := rule.AwaitAnswer(ctx)
	check(t, err)
	killed := session(ctx, t, c)
	w.killSession(ctx, t, killed)
	w.empty(t)
	w.px.CutAll() // what was held never arrives, as when the server's host died with it
	r := await(ctx, t, done)
	if r.err != nil {
		wantErr(t, r.err, client.ErrSessionLost)
	} else { // it knew of no place yet and took one in the next session
		_, stat, err := w.raw.Get(r.hold.Path())
		check(t, err)
		if stat.EphemeralOwner == killed || stat.EphemeralOwner != session(ctx, t, c) {
			t.Errorf("holds a node of session %#x", stat.EphemeralOwner)
		}
		check(t, r.hold.Release(ctx))
	}
	w.free(ctx, t)
}

func foreignChildren(ctx context.Context, t *testing.T, w *world) {
	c := connect(ctx, t, w.node.Addr())
	check(t, held(ctx, t, w.mutex(t, c)).Release(ctx))
	foreign := []string{
		"config", "_c_x", "_c_", "0foreign", "lock-", "lock-1", "lock-99999999999999999999",
		"lock-00000000000000000000", "lock-000000000x", "_c_x-lock-", "block-123456789", "__lock__0000000000",
		"_c_00000000-0000-0000-0000-000000000000-__READ__1", "überraschung",
	}
	for _, name := range foreign {
		_, err := w.raw.Create(w.dir+"/"+name, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		check(t, err)
	}
	m := w.mutex(t, c)
	first := held(ctx, t, m)
	other := w.mutex(t, connect(ctx, t, w.px.Addr()))
	// A lost answer makes the client look for its node among all these.
	w.px.On(proxy.Match{Op: zoodefs.OpCreate, Prefix: w.dir}, proxy.SwallowReplyAndCut)
	done := acquire(ctx, other)
	w.waiting(t, 2)
	queue, err := m.Queue(ctx)
	check(t, err)
	if len(queue) != 2 || !queue[0].Holder || queue[0].Path != first.Path() || queue[1].Holder {
		t.Errorf("queue %v", queue)
	}
	check(t, first.Release(ctx))
	r := await(ctx, t, done)
	check(t, r.err)
	check(t, r.hold.Release(ctx))
	if got := len(w.children(t)); got != len(foreign) {
		t.Errorf("%d children, want the %d foreign ones untouched", got, len(foreign))
	}
	// The node of a reader does not wait for a mutex.
	reader := w.dir + "/_c_00000000-0000-0000-0000-000000000000-__READ__0000000000"
	_, err = w.raw.Create(reader, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	check(t, err)
	_, err = m.Acquire(ctx)
	wantErr(t, err, recipes.ErrForeignLock)
	check(t, w.raw.Delete(reader, -1))
	check(t, held(ctx, t, m).Release(ctx))
}

func directoryDeleted(ctx context.Context, t *testing.T, w *world) {
	h := held(ctx, t, w.mutex(t, connect(ctx, t, w.node.Addr())))
	began := time.Now()
	check(t, w.raw.Delete(h.Path(), -1))
	if err := w.raw.Delete(w.dir, -1); err != nil && !errors.Is(err, zk.ErrNoNode) { // the sweeper may be first
		t.Fatal(err)
	}
	select {
	case <-h.Context().Done():
	case <-ctx.Done():
		t.Fatal("the holder was not told")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("told after %v", took)
	}
	wantErr(t, h.Err(), recipes.ErrLost, recipes.ErrNodeDeleted)
	wantErr(t, h.Close(), recipes.ErrLost)
	w.free(ctx, t)
}

func waitingNodeDeleted(ctx context.Context, t *testing.T, w *world) {
	first := held(ctx, t, w.mutex(t, connect(ctx, t, w.node.Addr())))
	done := acquire(ctx, w.mutex(t, connect(ctx, t, w.node.Addr())))
	w.waiting(t, 2)
	for _, name := range w.contenders(t) {
		if !strings.HasSuffix(first.Path(), name) {
			check(t, w.raw.Delete(w.dir+"/"+name, -1))
		}
	}
	r := await(ctx, t, done) // within 20 ms, and while the lock is held
	wantErr(t, r.err, recipes.ErrNodeDeleted)
	check(t, first.Release(ctx))
	w.free(ctx, t)
}

// directoryReaped deletes the directory between its creation and the first
// node in it, and lets the server's sweeper run for a while.
func directoryReaped(ctx context.Context, t *testing.T, w *world) {
	c := connect(ctx, t, w.px.Addr())
	rule := w.px.On(proxy.Match{Op: zoodefs.OpCreate, Prefix: w.dir, Nth: 2}, proxy.StallRequests)
	done := acquire(ctx, w.mutex(t, c))
	_, err := rule.Await(ctx)
	check(t, err)
	check(t, w.raw.Delete(w.dir, -1)) // made, and empty
	rule.Resume()
	r := await(ctx, t, done)
	check(t, r.err)
	check(t, r.hold.Release(ctx))

	swept := 0
	for range 25 {
		check(t, held(ctx, t, w.mutex(t, c)).Release(ctx))
		wait, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		for wait.Err() == nil {
			if ok, _, err := w.raw.Exists(w.dir); err == nil && !ok {
				swept++
				break
			}
		}
		cancel()
	}
	if swept == 0 {
		t.Error("the sweeper never came: nothing was tested")
	}
}
