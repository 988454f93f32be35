package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

const (
	pool       = "/pools/db"
	poolQueue  = pool + "/locks"
	poolLeases = pool + "/leases"
)

func (r *rig) semaphore(c *client.Client, permits int, opts ...recipes.LockOption) *recipes.InterProcessSemaphore {
	r.Helper()
	s, err := recipes.NewInterProcessSemaphore(c, pool, permits, opts...)
	r.check(err)
	return s
}

func (r *rig) countedSemaphore(c *client.Client, count *recipes.SharedCount) *recipes.InterProcessSemaphore {
	r.Helper()
	s, err := recipes.NewInterProcessSemaphoreFromCount(c, pool, count)
	r.check(err)
	return s
}

func (r *rig) lease(s *recipes.InterProcessSemaphore, n int) *recipes.Lease {
	r.Helper()
	l, err := s.Acquire(r.ctx, n)
	r.check(err)
	return l
}

var (
	leaseName = regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lease-\d{10}$`)
	queueName = regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-\d{10}$`)
)

// named are the children of dir of that name.
func (r *rig) named(dir string, name *regexp.Regexp) (found []string) {
	for _, child := range r.srv.Children(dir) {
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
func acquireLease(ctx context.Context, s *recipes.InterProcessSemaphore, n int) <-chan leased {
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

// The nodes are those of Curator's InterProcessSemaphoreV2: a mutex in locks,
// a lease for each permit in leases, containers above.
func TestSemaphoreNodes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a", client.WithDefaultData([]byte("host")))
		s := r.semaphore(c, 3, recipes.WithNodeData([]byte("mine")))
		if len(r.srv.Tree()) != 1 {
			r.Error("the constructor did I/O")
		}
		l := r.lease(s, 2)
		for _, dir := range []string{pool, poolQueue, poolLeases} {
			if n, _ := r.srv.Node(dir); !n.Container || len(n.Data) != 0 {
				r.Errorf("%s: %+v", dir, n)
			}
		}
		if left := r.srv.Children(poolQueue); len(left) != 0 {
			r.Errorf("the holder stands in the queue: %v", left)
		}
		r.wantLeases(2)
		if l.Permits() != 2 || len(l.Paths()) != 2 || l.Path() != l.Paths()[0] || l.Paths()[0] == l.Paths()[1] {
			r.Errorf("%d permits, %s of %v", l.Permits(), l.Path(), l.Paths())
		}
		for _, path := range l.Paths() {
			n, there := r.srv.Node(path)
			if !there || string(n.Data) != "mine" || n.Stat.EphemeralOwner != r.session(c) || n.Stat.Czxid != l.FencingToken() {
				r.Errorf("%s: %+v, token %d", path, n, l.FencingToken())
			}
		}
		data, err := l.Data(r.ctx)
		if err != nil || string(data) != "mine" {
			r.Errorf("Data = %q, %v", data, err)
		}
		waits := acquireLease(r.ctx, s, 2)
		r.wantWaiting(waits)
		in := r.named(poolQueue, queueName)
		if n, _ := r.srv.Node(poolQueue + "/" + in[0]); len(in) != 1 || string(n.Data) != "host" {
			r.Errorf("in the queue: %v, %+v", in, n)
		}
		l.Paths()[0] = "x"
		r.check(l.Release(r.ctx))
		got := <-waits
		r.check(got.err)
		if got.lease.FencingToken() <= l.FencingToken() {
			r.Error("the token did not grow")
		}
		r.check(got.lease.Close())
		if s.Path() != pool {
			r.Errorf("Path = %s", s.Path())
		}
		r.drained()
		wantNoGoroutine(r.T)
	})
}

// What a free and a taken semaphore cost.
func TestSemaphoreRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 2)
		r.check(r.lease(s, 1).Close())
		count := func(what string, want map[zktest.Op]int) {
			r.Helper()
			got := r.srv.Counts()
			delete(got, zktest.OpPing)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				r.Errorf("%s: %v, want %v", what, got, want)
			}
			r.srv.ResetCounts()
		}
		for n := 1; n <= 2; n++ {
			r.srv.ResetCounts()
			began := time.Now()
			l := r.lease(s, n)
			if took := time.Since(began); took > 2*2*time.Millisecond {
				r.Errorf("free permits took %v, more than two round trips", took)
			}
			count("acquire", map[zktest.Op]int{zktest.OpCreate: 1, zktest.OpGetChildren2: 2, zktest.OpMulti: 1})
			r.check(l.Release(r.ctx))
			release := zktest.OpDelete
			if n > 1 {
				release = zktest.OpMulti
			}
			count("release", map[zktest.Op]int{release: 1})
		}
		if n := r.srv.WatchCount(); n != 0 {
			r.Errorf("%d watches", n)
		}
	})
}

func TestSemaphoreInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		for _, permits := range []int{0, -1} {
			if s, err := recipes.NewInterProcessSemaphore(c, pool, permits); s != nil || err == nil || !strings.HasPrefix(err.Error(), "recipes: ") {
				r.Errorf("%d permits: %v", permits, err)
			}
		}
		for _, path := range []string{"", "/", "a", "/a/"} {
			if s, err := recipes.NewInterProcessSemaphore(c, path, 1); s != nil || err == nil {
				r.Errorf("path %q: %v", path, err)
			}
			if m, err := recipes.NewInterProcessSemaphoreMutex(c, path); m != nil || err == nil {
				r.Errorf("path %q: %v", path, err)
			}
		}
		if s, err := recipes.NewInterProcessSemaphore(nil, pool, 1); s != nil || err == nil {
			r.Errorf("without a client: %v", err)
		}
		if s, err := recipes.NewInterProcessSemaphoreFromCount(c, pool, nil); s != nil || err == nil {
			r.Errorf("without a count: %v", err)
		}
		s := r.semaphore(c, 2)
		r.srv.ResetCounts()
		for n, want := range map[int]error{0: nil, -1: nil, 3: recipes.ErrTooManyPermits} {
			for _, acquire := range []func(context.Context, int) (*recipes.Lease, error){s.Acquire, s.TryAcquire} {
				l, err := acquire(r.ctx, n)
				var lockErr *recipes.LockError
				if l != nil || !errors.As(err, &lockErr) || lockErr.Path != pool {
					r.Errorf("%d permits: %v, %v", n, l, err)
				}
				if want != nil {
					wantErr(t, err, want)
				}
			}
		}
		if r.srv.Count(zktest.OpCreate) != 0 {
			r.Error("made nodes")
		}
	})
}

// As many as there are permits, and the next waits until one is returned
// (TestInterProcessSemaphore.testSimple, testSimple2).
func TestSemaphoreSimple(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 10)
		var leases []*recipes.Lease
		for range 10 {
			l, err := s.Acquire(r.within(10*time.Second), 1)
			r.check(err)
			leases = append(leases, l)
		}
		_, err := s.Acquire(r.within(3*time.Second), 1)
		wantErr(t, err, context.DeadlineExceeded)
		r.check(leases[0].Release(r.ctx))
		l, err := s.Acquire(r.within(10*time.Second), 1)
		r.check(err)
		for _, l := range append(leases[1:], l) {
			r.check(l.Close())
			r.check(l.Close()) // again: nothing
		}
		r.drained()
		wantNoGoroutine(r.T)
	})
}

// Concurrency reaches the number of permits and never exceeds it, with one
// permit each and with several, in threads of one client and in many clients
// (testRelease1AtATime, testReleaseInChunks, testThreads, testMaxPerSession).
func TestSemaphoreNeverTooMany(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ permits, clients, workers, most int }{
		"one at a time":   {5, 1, 25, 1},
		"chunks":          {10, 1, 25, 10},
		"sessions":        {5, 10, 1, 5},
		"sessions, units": {3, 4, 6, 1},
		"one permit":      {1, 4, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var mu sync.Mutex // guards the three
				out, peak, tokens := 0, 0, map[int64]bool{}
				count := func(n int, token int64) {
					mu.Lock()
					defer mu.Unlock()
					out += n
					peak = max(peak, out)
					if out > tt.permits || n > 0 && tokens[token] {
						r.Errorf("%d out of %d; token %d", out, tt.permits, token)
					}
					tokens[token] = true
				}
				var wg sync.WaitGroup
				for i := range tt.clients {
					s := r.semaphore(r.connect(fmt.Sprint("c", i)), tt.permits)
					for j := range tt.workers {
						wg.Go(func() {
							for k := range 4 {
								n := 1 + (i+j+k)%tt.most
								l := r.lease(s, n)
								count(n, l.FencingToken())
								time.Sleep(time.Duration(1+n) * 20 * time.Millisecond)
								count(-n, l.FencingToken())
								r.check(l.Release(r.ctx))
							}
						})
					}
				}
				wg.Wait()
				if peak != tt.permits {
					r.Errorf("peak %d of %d", peak, tt.permits)
				}
				r.drained()
				wantNoGoroutine(r.T)
			})
		})
	}
}

// Who asked first gets theirs first, also who asked for many: nobody passes
// somebody who waits for room.
func TestSemaphoreFIFO(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		first := r.lease(r.semaphore(r.connect("holder"), 4), 3)
		var mu sync.Mutex // guards order
		var order []int
		var wg sync.WaitGroup
		for i, n := range []int{4, 1, 2, 1, 3} {
			s := r.semaphore(r.connect(name(i)), 4)
			wg.Go(func() {
				l := r.lease(s, n)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Second)
				r.check(l.Release(r.ctx))
			})
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		mu.Lock()
		if len(order) != 0 {
			r.Errorf("passed who was first: %v", order)
		}
		mu.Unlock()
		r.check(first.Release(r.ctx))
		wg.Wait()
		if fmt.Sprint(order) != "[0 1 2 3 4]" {
			r.Errorf("order %v", order)
		}
		r.drained()
	})
}

// Two of Curator's acquire(2) on two permits hold one each and wait for ever,
// 20 times of 20. Ours take both or none, a thousand times.
func TestSemaphoreTwoForTwo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var both [2]*recipes.InterProcessSemaphore
		for i := range both {
			both[i] = r.semaphore(r.connect(name(i)), 2)
		}
		for range 1000 {
			var wg sync.WaitGroup
			for _, s := range both {
				wg.Go(func() {
					l, err := s.Acquire(r.within(10*time.Second), 2)
					if err != nil {
						r.Errorf("stuck: %v", err)
						return
					}
					r.check(l.Release(r.ctx))
				})
			}
			wg.Wait()
			if r.Failed() {
				return
			}
		}
		r.drained()
	})
}

// The number of permits is a shared count: raising it wakes who waits,
// lowering it takes nothing away (testThreadedLeaseIncrease).
func TestSemaphoreCount(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		count := r.sharedCount(r.connect("counter"), 1)
		s := r.countedSemaphore(c, r.sharedCount(c, 1))
		first := r.lease(s, 1)
		waits := acquireLease(r.ctx, s, 1)
		r.wantWaiting(waits)
		r.check(count.Set(r.ctx, 2))
		got := <-waits
		r.check(got.err)

		r.check(count.Set(r.ctx, 1))
		time.Sleep(time.Second)
		r.check(first.Err())
		r.check(got.lease.Err())
		_, err := s.Acquire(r.ctx, 2)
		wantErr(t, err, recipes.ErrTooManyPermits)
		waits = acquireLease(r.ctx, s, 1)
		r.check(first.Release(r.ctx)) // one of two is out, of one
		r.wantWaiting(waits)
		r.check(got.lease.Release(r.ctx))
		got = <-waits
		r.check(got.err)

		// Somebody waits for what there will never be.
		r.check(count.Set(r.ctx, 2))
		waits = acquireLease(r.ctx, s, 2)
		r.wantWaiting(waits)
		r.check(count.Set(r.ctx, 1))
		wantErr(t, (<-waits).err, recipes.ErrTooManyPermits)
		r.check(r.srv.SetData(countPath, nil))
		_, err = s.Acquire(r.ctx, 1)
		wantErr(t, err, recipes.ErrCountData)

		// The count is deleted while somebody waits: the seed it is.
		r.check(count.Set(r.ctx, 1))
		waits = acquireLease(r.ctx, r.countedSemaphore(c, r.sharedCount(c, 3)), 1)
		r.wantWaiting(waits)
		r.check(r.srv.Delete(countPath))
		more := <-waits
		r.check(more.err)
		r.wantCount(count, 3)
		r.check(more.lease.Close())
		r.check(got.lease.Close())
		r.drained()
		wantNoGoroutine(r.T)
	})
}

// Children that are no leases take no room, and those that would take it for
// ever neither; leases of Curator do.
func TestSemaphoreForeignChildren(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		const id = "_c_0c708091-6d54-4320-8594-f6fdb71d5f95-"
		for _, child := range []string{
			"", "/config", "/lease-0000000001", "/_c_0c708091-lease-0000000001", "/_c_0c7080916d5443208594f6fdb71d5f95-lease-0000000001",
			"/" + id + "lease-1", "/" + id + "lock-0000000001", "/" + id + "lease-000000000x", "/x" + id + "lease-0000000001",
			"/" + id + "lease-0000000007", // persistent: nobody's
		} {
			if child == "" {
				r.check(r.srv.Create("/pools", nil))
				r.check(r.srv.Create(pool, nil))
			}
			r.check(r.srv.Create(poolLeases+child, nil))
		}
		_, err := r.connect("foreigner").Create(r.ctx, poolLeases+"/"+id+"lock-", nil, client.Ephemeral(), client.Sequential())
		r.check(err)
		s := r.semaphore(c, 1)
		l := r.lease(s, 1)
		r.check(l.Release(r.ctx))
		curators, err := r.connect("curator").Create(r.ctx, poolLeases+"/"+id+"lease-", nil, client.Ephemeral(), client.Sequential())
		r.check(err)
		waits := acquireLease(r.ctx, s, 1)
		r.wantWaiting(waits)
		r.srv.ResetCounts()
		r.check(r.srv.SetData(curators, nil)) // no news
		r.check(r.srv.Create(poolLeases+"/news", nil))
		r.wantWaiting(waits)
		if n := r.srv.Count(zktest.OpExists); n != 0 {
			r.Errorf("looked at %d leases again", n)
		}
		r.check(r.srv.Delete(curators))
		got := <-waits
		r.check(got.err)
		r.check(got.lease.Release(r.ctx))
	})
}

// A peer of Curator's makes its lease first and counts then, with the inner
// lock held. We wait for that lock, and for its leases.
func TestSemaphoreBesideCurator(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 2)
		peer := r.connect("curator")
		inner, err := recipes.NewInterProcessMutex(peer, poolQueue)
		r.check(err)
		create := func() string {
			path, err := peer.Create(r.ctx, poolLeases+"/_c_0c708091-6d54-4320-8594-f6fdb71d5f95-lease-", nil, client.Ephemeral(), client.Sequential(), client.WithParents())
			r.check(err)
			return path
		}
		lock := r.held(inner)
		waits := acquireLease(r.ctx, s, 1)
		theirs := []string{create(), create(), create()} // one too many, until it has counted
		r.wantWaiting(waits)
		r.check(peer.Delete(r.ctx, theirs[2], client.AnyVersion))
		r.wantWaiting(waits)
		r.check(lock.Release(r.ctx))
		r.wantWaiting(waits)
		// It would wait for the inner lock now, which ours holds while it waits.
		again := acquire(r.ctx, inner)
		r.check(peer.Delete(r.ctx, theirs[0], client.AnyVersion))
		got := <-waits
		r.check(got.err)
		res := <-again
		r.check(res.err)
		r.check(res.hold.Close())
		r.check(got.lease.Close())
	})
}

func TestSemaphoreTryAcquire(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		s, other := r.semaphore(c, 3), r.semaphore(r.connect("b"), 3)
		l, err := s.TryAcquire(r.ctx, 2)
		r.check(err)
		r.srv.ResetCounts()
		_, err = other.TryAcquire(r.ctx, 2)
		var busy *recipes.BusyError
		if !errors.As(err, &busy) || !busy.Holder.Holder || busy.Holder.Path != l.Path() || busy.Holder.FencingToken != l.FencingToken() {
			r.Errorf("TryAcquire = %v", err)
		}
		wantErr(t, err, recipes.ErrBusy)
		one, err := other.TryAcquire(r.ctx, 1)
		r.check(err)
		waits := acquireLease(r.ctx, s, 2)
		r.wantWaiting(waits)
		r.check(one.Release(r.ctx)) // there is room for one
		r.srv.ResetCounts()
		_, err = other.TryAcquire(r.ctx, 1)
		in := r.named(poolQueue, queueName)
		if !errors.As(err, &busy) || busy.Holder.Holder || len(in) != 1 || busy.Holder.Path != poolQueue+"/"+in[0] {
			r.Errorf("TryAcquire behind a waiter = %v", err)
		}
		if r.srv.Count(zktest.OpCreate) != 0 {
			r.Error("made a node")
		}
		r.check(l.Release(r.ctx))
		got := <-waits
		r.check(got.err)
		r.check(got.lease.Release(r.ctx))
		r.drained()
	})
}

// Of many who try in the same moment no more than fit get it, and no node
// stays.
func TestSemaphoreTryAcquireTogether(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for range 10 {
			var mu sync.Mutex
			var leases []*recipes.Lease
			var wg sync.WaitGroup
			for i := range 6 {
				s := r.semaphore(r.connect(name(i)), 4)
				wg.Go(func() {
					l, err := s.TryAcquire(r.ctx, 2)
					if err != nil {
						wantErr(t, err, recipes.ErrBusy)
						return
					}
					mu.Lock()
					leases = append(leases, l)
					mu.Unlock()
				})
			}
			wg.Wait()
			if len(leases) > 2 {
				r.Errorf("%d leases of 2 out of 4", len(leases))
			}
			for _, l := range leases {
				r.check(l.Release(r.ctx))
			}
			r.drained()
		}
	})
}

// The leases are listed, and behind them who waits (testGetParticipantNodes).
func TestSemaphoreQueue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		s := r.semaphore(c, 3, recipes.WithNodeData([]byte("10.0.0.1")))
		if q, err := s.Queue(r.ctx); err != nil || len(q) != 0 {
			r.Errorf("nobody: %v, %v", q, err)
		}
		l := r.lease(s, 2)
		r.check(r.srv.Create(poolLeases+"/_c_0c708091-6d54-4320-8594-f6fdb71d5f95-lease-0000000007", nil))
		first := acquireLease(r.ctx, s, 2)
		time.Sleep(time.Second)
		second := acquireLease(r.ctx, s, 1)
		time.Sleep(time.Second)
		q, err := s.Queue(r.ctx)
		r.check(err)
		if len(q) != 4 || !q[0].Holder || !q[1].Holder || q[2].Holder || q[3].Holder || q[0].Path != l.Paths()[0] || q[1].Path != l.Paths()[1] ||
			q[2].Sequence >= q[3].Sequence || q[0].Mode != recipes.ModeLease || q[2].Mode != recipes.ModeLease || string(q[1].Data) != "10.0.0.1" || q[0].Session != r.session(c) || q[0].FencingToken != l.FencingToken() {
			r.Errorf("Queue = %+v", q)
		}
		r.check(l.Close())
		for _, waits := range []<-chan leased{first, second} {
			got := <-waits
			r.check(got.err)
			r.check(got.lease.Close())
		}
	})
}

func TestSemaphoreDo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		s := r.semaphore(c, 2)
		r.check(s.Do(r.ctx, 2, func(ctx context.Context) error {
			r.wantLeases(2)
			return ctx.Err()
		}))
		r.wantLeases(0)
		err := s.Do(r.ctx, 1, func(ctx context.Context) error {
			r.srv.ExpireSession(r.session(c))
			<-ctx.Done()
			return context.Cause(ctx)
		})
		wantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
		wantErr(t, s.Do(r.ctx, 3, func(context.Context) error { panic("run") }), recipes.ErrTooManyPermits)
		r.drained()
	})
}

// An acquire that would wait for the leases of its own context is refused; one
// for which there is room is not.
func TestSemaphoreWouldDeadlock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 3)
		outer := r.lease(s, 1)
		inner, err := s.Acquire(outer.Context(), 1)
		r.check(err)
		for _, acquire := range []func(context.Context, int) (*recipes.Lease, error){s.Acquire, s.TryAcquire} {
			_, err = acquire(inner.Context(), 2)
			wantErr(t, err, recipes.ErrWouldDeadlock)
		}
		ctx := context.WithoutCancel(inner.Context())
		r.check(inner.Close())
		more, err := s.Acquire(ctx, 2)
		r.check(err)
		r.check(more.Close())
		r.check(outer.Close())
		r.drained()
	})
}

// kazoo's Semaphore on the same path, whose leases are children of the path
// itself, would not wait for ours nor ours for it.
func TestSemaphoreBesideKazoo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.check(r.srv.Create("/pools", nil))
		r.check(r.srv.Create(pool, []byte("3")))
		const kazoos = pool + "/0c7080916d5443208594f6fdb71d5f95"
		r.check(r.srv.Create(kazoos, nil))
		s := r.semaphore(r.connect("a"), 3)
		for _, acquire := range []func(context.Context, int) (*recipes.Lease, error){s.Acquire, s.TryAcquire} {
			_, err := acquire(r.ctx, 1)
			wantErr(t, err, recipes.ErrForeignLock)
		}
		r.wantLeases(0)
		r.check(r.srv.Delete(kazoos))
		r.check(r.lease(s, 1).Close())
		r.srv.Fail(zktest.Match{Op: zktest.OpGetChildren2, Path: pool}, zktest.CodeNoAuth) // as in Curator, the path need not be listed
		r.check(r.lease(r.semaphore(r.connect("b"), 3), 1).Close())
	})
}

// The rights of the leases are those of WithNodeACL; a refusal is an error and
// leaves nothing.
func TestSemaphoreACL(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		acl := zk.ACL{Perms: zk.PermAll, Scheme: "ip", ID: "10.9.9.9"}
		_, err := r.semaphore(r.connect("a"), 2, recipes.WithNodeACL(acl)).Acquire(r.ctx, 1) // its directory is not its own to work in
		wantErr(t, err, zk.ErrNoAuth)
		if in := r.named(poolQueue, queueName); len(in) != 0 {
			r.Errorf("left: %v", in)
		}
	})
}
