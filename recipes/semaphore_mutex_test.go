package recipes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

func (r *rig) semaphoreMutex(c *client.Client) *recipes.InterProcessSemaphoreMutex {
	r.Helper()
	m, err := recipes.NewInterProcessSemaphoreMutex(c, pool)
	r.check(err)
	return m
}

// acquireMutex acquires by itself.
func acquireMutex(ctx context.Context, m *recipes.InterProcessSemaphoreMutex) <-chan result {
	done := make(chan result, 1)
	go func() {
		h, err := m.Acquire(ctx)
		done <- result{h, err}
	}()
	return done
}

// One at a time, in goroutines of one client and in two, below a namespace
// (TestInterProcessMutexBase.test2Clients, testReentrantSingleLock,
// testWithNamespace, testContainerCleanup for InterProcessSemaphoreMutex).
func TestSemaphoreMutexExclusion(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		counter, inside := 0, 0
		var token int64
		var wg sync.WaitGroup
		for i := range 3 {
			m := r.semaphoreMutex(r.connect(name(i), client.WithNamespace("ns")))
			for range 4 {
				wg.Go(func() {
					for range 3 {
						h, err := m.Acquire(r.ctx)
						r.check(err)
						if inside++; inside != 1 || h.FencingToken() <= token {
							r.Errorf("%d inside, token %d after %d", inside, h.FencingToken(), token)
						}
						token = h.FencingToken()
						was := counter
						time.Sleep(3 * time.Millisecond)
						counter = was + 1
						inside--
						r.check(h.Close())
					}
				})
			}
		}
		wg.Wait()
		if counter != 36 {
			r.Errorf("counted %d", counter)
		}
		for _, dir := range []string{pool, poolQueue, poolLeases} {
			n, there := r.srv.Node("/ns" + dir)
			if !there || !n.Container || dir != pool && len(r.srv.Children("/ns"+dir)) != 0 {
				r.Errorf("%s would not be reaped: %+v", dir, n)
			}
		}
		wantNoGoroutine(r.T)
	})
}

// The lock is not re-entrant. A second acquire by the holder is refused at once,
// and does no harm to the first; in Curator it waits for ever. Any goroutine may
// release the lock (TestInterProcessSemaphoreMutex, CURATOR-376).
func TestSemaphoreMutexIsNotReentrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		m, other := r.semaphoreMutex(c), r.semaphoreMutex(c)
		h, err := m.Acquire(r.ctx)
		r.check(err)
		r.srv.ResetCounts()
		for _, again := range []func(context.Context) (*recipes.Hold, error){m.Acquire, m.TryAcquire, other.Acquire} {
			_, err = again(h.Context())
			wantErr(t, err, recipes.ErrWouldDeadlock)
		}
		wantErr(t, m.Do(h.Context(), func(context.Context, *recipes.Hold) error { panic("run") }), recipes.ErrWouldDeadlock)
		if r.srv.Count(zktest.OpCreate) != 0 {
			r.Error("made a node")
		}
		limited, cancel := context.WithTimeout(r.ctx, time.Second)
		defer cancel()
		_, err = m.Acquire(limited) // not by the holder: it waits
		wantErr(t, err, context.DeadlineExceeded)
		_, err = m.TryAcquire(r.ctx)
		wantErr(t, err, recipes.ErrBusy)
		r.check(h.Err())
		released := make(chan error)
		go func() { released <- h.Release(r.ctx) }()
		r.check(<-released)
		// A hold of the past blocks no acquire.
		h, err = m.Acquire(context.WithoutCancel(h.Context()))
		r.check(err)
		r.srv.ExpireSession(r.session(c))
		<-h.Context().Done()
		again, err := m.TryAcquire(context.WithoutCancel(h.Context()))
		r.check(err)
		r.check(again.Close())
		wantErr(t, h.Close(), recipes.ErrLost)
		r.drained()
	})
}

// A waiter gets the lock when the holder's session is over, and both finish
// when the server is away for a moment (TestInterProcessMutexBase.testKilledSession,
// testWaitingProcessKilledServer, testLocker).
func TestSemaphoreMutexKilled(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		m, other := r.semaphoreMutex(c), r.semaphoreMutex(r.connect("b"))
		h, err := m.Acquire(r.ctx)
		r.check(err)
		waits := acquireMutex(r.ctx, other)
		time.Sleep(time.Second)
		if q, err := other.Queue(r.ctx); err != nil || len(q) != 2 || !q[0].Holder || q[0].Path != h.Path() || q[1].Holder {
			r.Errorf("Queue = %+v, %v", q, err)
		}
		r.srv.ExpireSession(r.session(c))
		res := <-waits
		r.check(res.err)
		wantErr(t, h.Close(), recipes.ErrLost)

		back := acquireMutex(r.ctx, m)
		time.Sleep(time.Second)
		r.srv.Freeze()
		time.Sleep(sessionTimeout / 3)
		r.srv.CutAll()
		r.srv.Thaw()
		r.check(res.hold.Err())
		r.check(res.hold.Release(r.ctx))
		res = <-back
		r.check(res.err)
		r.check(res.hold.Release(r.ctx))
		r.check(m.Do(r.ctx, func(ctx context.Context, _ *recipes.Hold) error {
			r.wantLeases(1)
			return ctx.Err()
		}))
		if m.Path() != pool {
			r.Errorf("Path = %s", m.Path())
		}
		r.drained()
		wantNoGoroutine(r.T)
	})
}
