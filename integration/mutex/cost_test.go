package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/internal/zoodefs"
	"github.com/docent-go/docent/recipes"
)

// wakeUps puts ten waiters, each with a session and a proxy of its own, in line
// and releases one after the other. Each release wakes the next waiter, in the order they
// came, and the one behind that, which looks ahead.
func wakeUps(ctx context.Context, t *testing.T, base *world) {
	const waiters = 10
	type contender struct {
		w    *world
		done <-chan result
	}
	first := held(ctx, t, base.mutex(t, connect(ctx, t, base.node.Addr())))
	line := make([]contender, waiters)
	for i := range line {
		w := newWorld(ctx, t, base.node)
		w.dir = base.dir
		line[i] = contender{w, acquire(ctx, w.mutex(t, connect(ctx, t, w.px.Addr())))}
		base.waiting(t, i+2)
	}
	// Every waiter watches its own node and the two before, and no other node.
	eventually(t, 5*time.Second, func() error {
		paths, err := base.node.WatchesByPath(ctx)
		if err != nil {
			return err
		}
		watchers := 0
		for path, sessions := range paths {
			if len(sessions) > 3 {
				return fmt.Errorf("%d watch %s", len(sessions), path)
			}
			watchers += len(sessions)
		}
		if want := 3 * waiters; watchers != want { // the first has one before it, and the holder watches its own node
			return fmt.Errorf("%d watches, want %d", watchers, want)
		}
		return nil
	})
	hold := first
	for i, c := range line {
		before := notified(line[i:], func(c contender) *world { return c.w })
		check(t, hold.Release(ctx))
		r := await(ctx, t, c.done)
		check(t, r.err)
		if r.hold.FencingToken() <= hold.FencingToken() {
			t.Errorf("token %d after %d", r.hold.FencingToken(), hold.FencingToken())
		}
		// The next one holds, and the one behind that looks ahead.
		eventually(t, 5*time.Second, func() error {
			woken := notified(line[i:], func(c contender) *world { return c.w }) - before
			if want := min(2, len(line)-i); woken != want {
				return fmt.Errorf("release %d woke %d waiters, want %d", i, woken, want)
			}
			return nil
		})
		hold = r.hold
	}
	check(t, hold.Release(ctx))
	base.empty(t)
}

func notified[T any](line []T, world func(T) *world) (n int) {
	for _, c := range line {
		n += world(c).px.Stats().Notifications
	}
	return n
}

// cost takes the free lock, and checks the round trips of the acquire and the requests of
// the whole.
func cost(ctx context.Context, t *testing.T, w *world, m *recipes.InterProcessMutex, trips int, want map[zoodefs.Op]int) {
	t.Helper()
	w.px.ResetStats()
	h := held(ctx, t, m)
	free := w.px.Stats()
	check(t, h.Release(ctx))
	all := w.px.Stats()
	t.Logf("free lock: %d round trip(s) to acquire, %d to release, requests %v", free.RoundTrips, all.RoundTrips-free.RoundTrips, all.Requests)
	if free.RoundTrips != trips || all.RoundTrips != trips+1 {
		t.Errorf("round trips: acquire %d, want %d; release %d, want 1", free.RoundTrips, trips, all.RoundTrips-free.RoundTrips)
	}
	delete(all.Requests, zoodefs.OpPing)
	if !maps.Equal(all.Requests, want) {
		t.Errorf("requests %v, want %v", all.Requests, want)
	}
}

// roundTrips counts what an acquire and a release cost on the wire.
func roundTrips(ctx context.Context, t *testing.T, w *world) {
	c := connect(ctx, t, w.px.Addr())
	m := w.mutex(t, c)
	// A persistent directory: the server may remove an empty container between two acquires.
	_, err := w.raw.Create(path.Dir(w.dir), nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	check(t, err)
	_, err = w.raw.Create(w.dir, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	check(t, err)
	check(t, held(ctx, t, m).Release(ctx)) // the servers' dialect is known

	// The second acquire in a short time also sets a watch on the directory, so that the
	// next ones need no list.
	cost(ctx, t, w, m, 2, map[zoodefs.Op]int{zoodefs.OpGetData: 1, zoodefs.OpCreate: 1, zoodefs.OpGetChildren2: 1, zoodefs.OpDelete: 1})
	cost(ctx, t, w, m, 1, map[zoodefs.Op]int{zoodefs.OpCreate: 1, zoodefs.OpGetChildren2: 1, zoodefs.OpDelete: 1})
	cost(ctx, t, w, m, 1, map[zoodefs.Op]int{zoodefs.OpCreate: 1, zoodefs.OpDelete: 1})

	other := held(ctx, t, w.mutex(t, connect(ctx, t, w.node.Addr())))
	w.px.ResetStats()
	done := acquire(ctx, m)
	watching := w.px.On(proxy.Match{Op: zoodefs.OpGetData, Path: other.Path(), Nth: 1}, proxy.SwallowReply)
	watching.Remove()
	eventually(t, 5*time.Second, func() error {
		if w.px.Stats().Replies[zoodefs.OpGetData] != 2 { // of its own node, and of the one ahead
			return errors.New("not watching yet")
		}
		return nil
	})
	check(t, other.Release(ctx))
	r := await(ctx, t, done)
	check(t, r.err)
	stats := w.px.Stats()
	t.Logf("lock taken by one: %d round trips to acquire, requests %v, %d notification(s)", stats.RoundTrips, stats.Requests, stats.Notifications)
	// Create, list, and a read of each of the two nodes; the event is the grant.
	if stats.RoundTrips != 4 || stats.Notifications != 1 {
		t.Errorf("contended acquire: %d round trips, want 4; %d notifications, want 1", stats.RoundTrips, stats.Notifications)
	}
	check(t, r.hold.Release(ctx))
}

func tryAcquire(ctx context.Context, t *testing.T, w *world) {
	m := w.mutex(t, connect(ctx, t, w.px.Addr()))
	h, err := m.TryAcquire(ctx) // no directory yet
	check(t, err)
	other := w.mutex(t, connect(ctx, t, w.px.Addr()))
	w.px.ResetStats()
	_, err = other.TryAcquire(ctx)
	wantErr(t, err, recipes.ErrBusy)
	var busy *recipes.BusyError
	if !errors.As(err, &busy) || busy.Holder.Path != h.Path() || busy.Holder.FencingToken != h.FencingToken() {
		t.Errorf("busy error %v, want holder %s", err, h.Path())
	}
	if n := w.px.Stats().Requests[zoodefs.OpCreate]; n != 0 {
		t.Errorf("%d nodes made to find out that the lock is taken", n)
	}
	check(t, h.Release(ctx))
	h, err = other.TryAcquire(ctx)
	check(t, err)
	check(t, h.Close())
	w.empty(t)
}

func reentry(ctx context.Context, t *testing.T, w *world) {
	c := connect(ctx, t, w.px.Addr())
	m := w.mutex(t, c)
	outer := held(ctx, t, m)
	w.px.ResetStats()
	again := w.mutex(t, c) // another value, the same lock
	inner, err := again.Acquire(outer.Context())
	check(t, err)
	tried, err := m.TryAcquire(inner.Context())
	check(t, err)
	if n := len(w.px.Stats().Requests); n != 0 {
		t.Errorf("re-entry made requests: %v", w.px.Stats().Requests)
	}
	if inner.FencingToken() != outer.FencingToken() || inner.Path() != outer.Path() {
		t.Error("a re-entered hold is another hold")
	}
	// A context that does not come from the hold waits like any other caller.
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = m.Acquire(short)
	wantErr(t, err, context.DeadlineExceeded)

	check(t, outer.Release(ctx))
	check(t, outer.Release(ctx)) // idempotent
	wantErr(t, outer.Err(), recipes.ErrReleased)
	check(t, inner.Err())
	w.waiting(t, 1)
	check(t, inner.Close())
	check(t, tried.Err())
	check(t, tried.Close())
	wantErr(t, tried.Err(), recipes.ErrReleased)
	w.empty(t)

	// A context of a released hold neither blocks nor helps.
	h, err := m.Acquire(context.WithoutCancel(tried.Context()))
	check(t, err)
	check(t, h.Close())
}

// tokens takes many locks of one directory and of many at once. A token is always
// the czxid of the node, which the wire reads from the answer.
func tokens(ctx context.Context, t *testing.T, w *world) {
	c := connect(ctx, t, w.px.Addr())
	const workers, rounds = 8, 25
	errs := make(chan error, workers)
	for i := range workers {
		go func() {
			m, err := recipes.NewInterProcessMutex(c, fmt.Sprintf("%s/%d", w.dir, i%4))
			for range rounds {
				if err != nil {
					break
				}
				err = m.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error { return nil })
				if err != nil {
					break
				}
				var h *recipes.Hold
				if h, err = m.Acquire(ctx); err != nil {
					break
				}
				_, stat, getErr := c.Get(ctx, h.Path())
				if getErr == nil && stat.Czxid != h.FencingToken() {
					getErr = fmt.Errorf("token %d, czxid %d", h.FencingToken(), stat.Czxid)
				}
				err = errors.Join(getErr, h.Close())
			}
			errs <- err
		}()
	}
	for range workers {
		check(t, <-errs)
	}
}

// exhausted stands a node with a number near the end in the directory. A test
// cannot set a real server's counter. So a foreign node with a negative number
// stands for a directory that is past its end.
func exhausted(ctx context.Context, t *testing.T, w *world) {
	m := w.mutex(t, connect(ctx, t, w.node.Addr()))
	check(t, held(ctx, t, m).Release(ctx))
	_, err := w.raw.Create(w.dir+"/_c_00000000-0000-0000-0000-000000000000-lock--2147483648", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	check(t, err)
	_, err = m.Acquire(ctx)
	wantErr(t, err, recipes.ErrSequenceExhausted)
	check(t, w.raw.Delete(w.dir+"/_c_00000000-0000-0000-0000-000000000000-lock--2147483648", -1))
	w.empty(t)
	check(t, held(ctx, t, m).Release(ctx))
}
