package recipes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

func (r *rig) semaphoreMutex(c *client.Client) *recipes.InterProcessSemaphoreMutex {
	r.Helper()
	m, err := recipes.NewInterProcessSemaphoreMutex(c, pool)
	r.Check(err)
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
			m := r.semaphoreMutex(r.Connect(name(i), client.WithNamespace("ns")))
			for range 4 {
				wg.Go(func() {
					for range 3 {
						h, err := m.Acquire(r.Ctx)
						r.Check(err)
						if inside++; inside != 1 || h.FencingToken() <= token {
							r.Errorf("%d inside, token %d after %d", inside, h.FencingToken(), token)
						}
						token = h.FencingToken()
						was := counter
						time.Sleep(3 * time.Millisecond)
						counter = was + 1
						inside--
						r.Check(h.Close())
					}
				})
			}
		}
		wg.Wait()
		if counter != 36 {
			r.Errorf("counted %d", counter)
		}
		for _, dir := range []string{pool, poolQueue, poolLeases} {
			n, there := r.Srv.Node("/ns" + dir)
			if !there || !n.Container || dir != pool && len(r.Srv.Children("/ns"+dir)) != 0 {
				r.Errorf("%s would not be reaped: %+v", dir, n)
			}
		}
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// The lock is not re-entrant. A second acquire by the holder is refused at once,
// and does no harm to the first; in Curator it waits for ever. Any goroutine may
// release the lock (TestInterProcessSemaphoreMutex, CURATOR-376).
func TestSemaphoreMutexIsNotReentrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m, other := r.semaphoreMutex(c), r.semaphoreMutex(c)
		h, err := m.Acquire(r.Ctx)
		r.Check(err)
		r.Srv.ResetCounts()
		for _, again := range []func(context.Context) (*recipes.Hold, error){m.Acquire, m.TryAcquire, other.Acquire} {
			_, err = again(h.Context())
			testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		}
		testrig.WantErr(t, m.Do(h.Context(), func(context.Context, *recipes.Hold) error { panic("run") }), recipes.ErrWouldDeadlock)
		if r.Srv.Count(zktest.OpCreate) != 0 {
			r.Error("made a node")
		}
		limited, cancel := context.WithTimeout(r.Ctx, time.Second)
		defer cancel()
		_, err = m.Acquire(limited) // not by the holder: it waits
		testrig.WantErr(t, err, context.DeadlineExceeded)
		_, err = m.TryAcquire(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrBusy)
		r.Check(h.Err())
		released := make(chan error)
		go func() { released <- h.Release(r.Ctx) }()
		r.Check(<-released)
		// A hold of the past blocks no acquire.
		h, err = m.Acquire(context.WithoutCancel(h.Context()))
		r.Check(err)
		r.Srv.ExpireSession(r.SessionID(c))
		<-h.Context().Done()
		again, err := m.TryAcquire(context.WithoutCancel(h.Context()))
		r.Check(err)
		r.Check(again.Close())
		testrig.WantErr(t, h.Close(), recipes.ErrLost)
		r.drained()
	})
}

// A waiter gets the lock when the holder's session is over, and both finish
// when the server is away for a moment (TestInterProcessMutexBase.testKilledSession,
// testWaitingProcessKilledServer, testLocker).
func TestSemaphoreMutexKilled(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m, other := r.semaphoreMutex(c), r.semaphoreMutex(r.Connect("b"))
		h, err := m.Acquire(r.Ctx)
		r.Check(err)
		waits := acquireMutex(r.Ctx, other)
		time.Sleep(time.Second)
		if q, err := other.Queue(r.Ctx); err != nil || len(q) != 2 || !q[0].Holder || q[0].Path != h.Path() || q[1].Holder {
			r.Errorf("Queue = %+v, %v", q, err)
		}
		r.Srv.ExpireSession(r.SessionID(c))
		res := <-waits
		r.Check(res.err)
		testrig.WantErr(t, h.Close(), recipes.ErrLost)

		back := acquireMutex(r.Ctx, m)
		time.Sleep(time.Second)
		r.Srv.Freeze()
		time.Sleep(testrig.SessionTimeout / 3)
		r.Srv.CutAll()
		r.Srv.Thaw()
		r.Check(res.hold.Err())
		r.Check(res.hold.Release(r.Ctx))
		res = <-back
		r.Check(res.err)
		r.Check(res.hold.Release(r.Ctx))
		r.Check(m.Do(r.Ctx, func(ctx context.Context, _ *recipes.Hold) error {
			r.wantLeases(1)
			return ctx.Err()
		}))
		if m.Path() != pool {
			r.Errorf("Path = %s", m.Path())
		}
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}
