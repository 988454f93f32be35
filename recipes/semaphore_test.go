package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/zktest"
)

const (
	pool       = "/pools/db"
	poolQueue  = pool + "/locks"
	poolLeases = pool + "/leases"
	countPath  = "/counts/permits"
)

func (r *rig) semaphore(c *client.Client, permits int, opts ...recipes.SemaphoreOption) *recipes.InterProcessSemaphoreV2 {
	r.Helper()
	s, err := recipes.NewInterProcessSemaphoreV2(c, pool, permits, opts...)
	r.Check(err)
	return s
}

// sharedCount is the count that the semaphores of a test share.
func (r *rig) sharedCount(c *client.Client, seed int32) *shared.SharedCount {
	r.Helper()
	s, err := shared.NewSharedCount(c, countPath, seed)
	r.Check(err)
	return s
}

func (r *rig) countedSemaphore(c *client.Client, count *shared.SharedCount) *recipes.InterProcessSemaphoreV2 {
	r.Helper()
	s, err := recipes.NewInterProcessSemaphoreV2FromCount(c, pool, count)
	r.Check(err)
	return s
}

func (r *rig) lease(s *recipes.InterProcessSemaphoreV2, n int) *recipes.Lease {
	r.Helper()
	l, err := s.Acquire(r.Ctx, n)
	r.Check(err)
	return l
}

// calm lets s see that there is no contender, so that its next acquire makes its leases
// at once.
func (r *rig) calm(s *recipes.InterProcessSemaphoreV2) *recipes.InterProcessSemaphoreV2 {
	r.Helper()
	for range 2 {
		r.Check(r.lease(s, 1).Close())
	}
	return s
}

var (
	leaseName = regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lease-\d{10}$`)
	queueName = regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-\d{10}$`)
)

// named are the children of dir of that name.
func (r *rig) named(dir string, name *regexp.Regexp) (found []string) {
	for _, child := range r.Srv.Children(dir) {
		if name.MatchString(child) {
			found = append(found, child)
		}
	}
	return found
}

func (r *rig) wantLeases(n int) {
	r.Helper()
	if out := r.named(poolLeases, leaseName); len(out) != n {
		r.Errorf("%d leases, want %d: %v", len(out), n, out)
	}
}

// drained checks that nothing of a semaphore is left once removals have had
// their time.
func (r *rig) drained() {
	r.Helper()
	time.Sleep(5 * time.Second)
	r.wantLeases(0)
	if left := r.named(poolQueue, queueName); len(left) != 0 {
		r.Errorf("left in the queue: %v", left)
	}
}

type leased struct {
	lease *recipes.Lease
	err   error
}

// acquireLease acquires by itself.
func acquireLease(ctx context.Context, s *recipes.InterProcessSemaphoreV2, n int) <-chan leased {
	done := make(chan leased, 1)
	go func() {
		l, err := s.Acquire(ctx, n)
		done <- leased{l, err}
	}()
	return done
}

// wantWaiting checks that nothing was decided yet.
func (r *rig) wantWaiting(waits <-chan leased) {
	r.Helper()
	time.Sleep(time.Second)
	select {
	case got := <-waits:
		r.Fatalf("did not wait: %+v", got)
	default:
	}
}

// The nodes are the same as Curator's InterProcessSemaphoreV2 makes: a mutex in
// locks, a lease for each permit in leases, containers above.
func TestSemaphoreNodes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithDefaultData([]byte("host")))
		s := r.semaphore(c, 3, recipes.WithNodeData([]byte("mine")))
		if len(r.Srv.Tree()) != 1 {
			r.Error("the constructor did I/O")
		}
		l := r.lease(s, 2)
		for _, dir := range []string{pool, poolQueue, poolLeases} {
			if n, _ := r.Srv.Node(dir); !n.Container || len(n.Data) != 0 {
				r.Errorf("%s: %+v", dir, n)
			}
		}
		r.WantNoChild(poolQueue)
		r.wantLeases(2)
		if l.Permits() != 2 || len(l.Paths()) != 2 || l.Path() != l.Paths()[0] || l.Paths()[0] == l.Paths()[1] {
			r.Errorf("%d permits, %s of %v", l.Permits(), l.Path(), l.Paths())
		}
		for _, path := range l.Paths() {
			n, there := r.Srv.Node(path)
			if !there || string(n.Data) != "mine" || n.Stat.EphemeralOwner != r.SessionID(c) || n.Stat.Czxid != l.FencingToken() {
				r.Errorf("%s: %+v, token %d", path, n, l.FencingToken())
			}
		}
		data, err := l.Data(r.Ctx)
		if err != nil || string(data) != "mine" {
			r.Errorf("Data = %q, %v", data, err)
		}
		waits := acquireLease(r.Ctx, s, 2)
		r.wantWaiting(waits)
		in := r.named(poolQueue, queueName)
		if n, _ := r.Srv.Node(poolQueue + "/" + in[0]); len(in) != 1 || string(n.Data) != "host" {
			r.Errorf("in the queue: %v, %+v", in, n)
		}
		l.Paths()[0] = "x"
		r.Check(l.Release(r.Ctx))
		got := <-waits
		r.Check(got.err)
		if got.lease.FencingToken() <= l.FencingToken() {
			r.Error("the token did not grow")
		}
		r.Check(got.lease.Close())
		if s.Path() != pool {
			r.Errorf("Path = %s", s.Path())
		}
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// What a free and a taken semaphore cost.
func TestSemaphoreRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		count := func(what string, want map[zktest.Op]int) {
			r.Helper()
			got := r.Srv.Counts()
			delete(got, zktest.OpPing)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				r.Errorf("%s: %v, want %v", what, got, want)
			}
			r.Srv.ResetCounts()
		}
		for state, lists := range map[string]int{"new": 3, "calm": 3, "hot": 2} {
			for n := 1; n <= 2; n++ {
				s, trips := r.semaphore(c, 2), 2
				want := map[zktest.Op]int{zktest.OpCreate: 1, zktest.OpGetChildren2: lists, zktest.OpMulti: 1}
				r.Check(r.lease(s, 1).Close())
				if state != "new" {
					r.calm(s)
					trips = 1
					delete(want, zktest.OpCreate)
				}
				time.Sleep(3 * time.Second) // no watch of a use before is left
				if state == "hot" {
					r.Check(r.lease(s, 1).Close())
					r.Check(r.lease(s, 1).Close())
				}
				synctest.Wait()
				r.Srv.ResetCounts()
				began := time.Now()
				l := r.lease(s, n)
				if took := time.Since(began); took > time.Duration(trips)*2*time.Millisecond {
					r.Errorf("%s: free permits took %v, more than %d round trips", state, took, trips)
				}
				count("acquire "+state, want)
				r.Check(l.Release(r.Ctx))
				release := zktest.OpDelete
				if n > 1 {
					release = zktest.OpMulti
				}
				count("release", map[zktest.Op]int{release: 1})
			}
		}
		time.Sleep(5 * time.Second)
		r.WantNoWatch()
	})
}

func TestSemaphoreInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for _, permits := range []int{0, -1} {
			if s, err := recipes.NewInterProcessSemaphoreV2(c, pool, permits); s != nil || err == nil || !strings.HasPrefix(err.Error(), "recipes: ") {
				r.Errorf("%d permits: %v", permits, err)
			}
		}
		for _, path := range []string{"", "/", "a", "/a/"} {
			if s, err := recipes.NewInterProcessSemaphoreV2(c, path, 1); s != nil || err == nil {
				r.Errorf("path %q: %v", path, err)
			}
			if m, err := recipes.NewInterProcessSemaphoreMutex(c, path); m != nil || err == nil {
				r.Errorf("path %q: %v", path, err)
			}
		}
		if s, err := recipes.NewInterProcessSemaphoreV2(nil, pool, 1); s != nil || err == nil {
			r.Errorf("without a client: %v", err)
		}
		if s, err := recipes.NewInterProcessSemaphoreV2FromCount(c, pool, nil); s != nil || err == nil {
			r.Errorf("without a count: %v", err)
		}
		s := r.semaphore(c, 2)
		r.Srv.ResetCounts()
		for n, want := range map[int]error{0: nil, -1: nil, 3: recipes.ErrTooManyPermits} {
			for _, acquire := range []func(context.Context, int) (*recipes.Lease, error){s.Acquire, s.TryAcquire} {
				l, err := acquire(r.Ctx, n)
				var lockErr *recipes.LockError
				if l != nil || !errors.As(err, &lockErr) || lockErr.Path != pool {
					r.Errorf("%d permits: %v, %v", n, l, err)
				}
				if want != nil {
					testrig.WantErr(t, err, want)
				}
			}
		}
		if r.Srv.Count(zktest.OpCreate) != 0 {
			r.Error("made nodes")
		}
	})
}

// As many as there are permits, and the next waits until one is returned
// (TestInterProcessSemaphore.testSimple, testSimple2).
func TestSemaphoreSimple(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.Connect("a"), 10)
		var leases []*recipes.Lease
		for range 10 {
			l, err := s.Acquire(r.Within(10*time.Second), 1)
			r.Check(err)
			leases = append(leases, l)
		}
		_, err := s.Acquire(r.Within(3*time.Second), 1)
		testrig.WantErr(t, err, context.DeadlineExceeded)
		r.Check(leases[0].Release(r.Ctx))
		l, err := s.Acquire(r.Within(10*time.Second), 1)
		r.Check(err)
		for _, l := range append(leases[1:], l) {
			r.Check(l.Close())
			r.Check(l.Close()) // again: nothing
		}
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// The number of permits is a shared count: raising it wakes the waiters, lowering
// it takes nothing away (testThreadedLeaseIncrease).
func TestSemaphoreCount(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		count := r.sharedCount(r.Connect("counter"), 1)
		s := r.countedSemaphore(c, r.sharedCount(c, 1))
		first := r.lease(s, 1)
		waits := acquireLease(r.Ctx, s, 1)
		r.wantWaiting(waits)
		r.Check(count.Set(r.Ctx, 2))
		got := <-waits
		r.Check(got.err)

		r.Check(count.Set(r.Ctx, 1))
		time.Sleep(time.Second)
		r.Check(first.Err())
		r.Check(got.lease.Err())
		_, err := s.Acquire(r.Ctx, 2)
		testrig.WantErr(t, err, recipes.ErrTooManyPermits)
		waits = acquireLease(r.Ctx, s, 1)
		r.Check(first.Release(r.Ctx)) // one of two is out, of one
		r.wantWaiting(waits)
		r.Check(got.lease.Release(r.Ctx))
		got = <-waits
		r.Check(got.err)

		// A caller waits for permits that there will never be.
		r.Check(count.Set(r.Ctx, 2))
		waits = acquireLease(r.Ctx, s, 2)
		r.wantWaiting(waits)
		r.Check(count.Set(r.Ctx, 1))
		testrig.WantErr(t, (<-waits).err, recipes.ErrTooManyPermits)
		r.Check(r.Srv.SetData(countPath, nil))
		_, err = s.Acquire(r.Ctx, 1)
		testrig.WantErr(t, err, shared.ErrCountData)

		// The count is deleted while a caller waits: the seed holds again.
		r.Check(r.Srv.SetData(countPath, []byte{0, 0, 0, 1}))
		waits = acquireLease(r.Ctx, r.countedSemaphore(c, r.sharedCount(c, 3)), 1)
		r.wantWaiting(waits)
		r.Check(r.Srv.Delete(countPath))
		more := <-waits
		r.Check(more.err)
		if now, err := count.Value(r.Ctx); now != 3 || err != nil {
			r.Errorf("the count is %d, %v", now, err)
		}
		r.Check(more.lease.Close())
		r.Check(got.lease.Close())
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

func TestSemaphoreDo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.semaphore(c, 2)
		r.Check(s.Do(r.Ctx, 2, func(ctx context.Context, _ *recipes.Lease) error {
			r.wantLeases(2)
			return ctx.Err()
		}))
		r.wantLeases(0)
		err := s.Do(r.Ctx, 1, func(ctx context.Context, _ *recipes.Lease) error {
			r.Srv.ExpireSession(r.SessionID(c))
			<-ctx.Done()
			return context.Cause(ctx)
		})
		testrig.WantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
		testrig.WantErr(t, s.Do(r.Ctx, 3, func(context.Context, *recipes.Lease) error { panic("run") }), recipes.ErrTooManyPermits)
		r.drained()
	})
}

// An acquire that would wait for the leases of its own context is refused; one
// for which there is room is not.
func TestSemaphoreWouldDeadlock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.Connect("a"), 3)
		outer := r.lease(s, 1)
		inner, err := s.Acquire(outer.Context(), 1)
		r.Check(err)
		for _, acquire := range []func(context.Context, int) (*recipes.Lease, error){s.Acquire, s.TryAcquire} {
			_, err = acquire(inner.Context(), 2)
			testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		}
		ctx := context.WithoutCancel(inner.Context())
		r.Check(inner.Close())
		more, err := s.Acquire(ctx, 2)
		r.Check(err)
		r.Check(more.Close())
		r.Check(outer.Close())
		r.drained()
	})
}
