package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// multiDirs are where the nodes of everyKind are.
var multiDirs = []string{"/m", "/r", "/w", "/s/locks", "/s/leases", "/x/locks", "/x/leases"}

// everyKind is the multi-lock of one lock of each kind.
func (r *rig) everyKind(c *client.Client) *recipes.InterProcessMultiLock {
	r.Helper()
	mutex, err := recipes.NewInterProcessMutex(c, "/m")
	r.Check(err)
	read, err := recipes.NewInterProcessReadWriteLock(c, "/r")
	r.Check(err)
	write, err := recipes.NewInterProcessReadWriteLock(c, "/w")
	r.Check(err)
	semaphore, err := recipes.NewInterProcessSemaphoreV2(c, "/s", 3)
	r.Check(err)
	single, err := recipes.NewInterProcessSemaphoreMutex(c, "/x")
	r.Check(err)
	return r.multiOf(mutex, read.ReadLock(), write.WriteLock(), semaphore.Permits(2), single)
}

func (r *rig) multiOf(locks ...recipes.Lock) *recipes.InterProcessMultiLock {
	r.Helper()
	m, err := recipes.NewInterProcessMultiLock(locks...)
	r.Check(err)
	return m
}

// multiHeld acquires a multi-lock that is free.
func (r *rig) multiHeld(m *recipes.InterProcessMultiLock) *recipes.MultiHold {
	r.Helper()
	h, err := m.Acquire(r.Ctx)
	r.Check(err)
	return h
}

type multiResult struct {
	hold *recipes.MultiHold
	err  error
}

// multiAcquire acquires by itself.
func multiAcquire(ctx context.Context, m *recipes.InterProcessMultiLock) <-chan multiResult {
	done := make(chan multiResult, 1)
	go func() {
		h, err := m.Acquire(ctx)
		done <- multiResult{h, err}
	}()
	return done
}

// The nodes are the same as each lock makes alone, for peers on the same paths.
func TestMultiLockOfEveryKind(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.everyKind(c)
		if m.Path() != "/m+/r+/w+/s+/x" {
			t.Errorf("Path = %s", m.Path())
		}
		h := r.multiHeld(m)
		for dir, tag := range map[string]string{
			"/m": "lock-", "/r": "__READ__", "/w": "__WRIT__", "/s/locks": "", "/s/leases": "lease-", "/x/locks": "", "/x/leases": "lease-",
		} {
			in := r.Srv.Children(dir)
			if tag == "" {
				if len(in) != 0 {
					t.Errorf("%s: %v", dir, in)
				}
				continue
			}
			if len(in) == 0 || !strings.HasPrefix(in[0], inside.ProtectedPrefix) || !strings.HasSuffix(in[0], "-"+tag+"0000000000") {
				t.Errorf("%s: %v", dir, in)
			}
		}
		var token int64
		for i, one := range h.Holds() {
			n, ok := r.Srv.Node(one.Path())
			if !ok || n.Stat.Czxid != one.FencingToken() || n.Stat.EphemeralOwner != r.SessionID(c) {
				t.Errorf("hold %d: %s with token %d is %+v", i, one.Path(), one.FencingToken(), n)
			}
			if i < 3 && one.FencingToken() != h.FencingToken() {
				t.Errorf("hold %d is not of the first one's transaction", i)
			}
			if i >= 3 && one.FencingToken() <= token {
				t.Errorf("hold %d has token %d after %d", i, one.FencingToken(), token)
			}
			token = one.FencingToken()
		}
		// What is shared is shared, what is not is not.
		other := r.Connect("b")
		lock, err := recipes.NewInterProcessReadWriteLock(other, "/r")
		r.Check(err)
		semaphore, err := recipes.NewInterProcessSemaphoreV2(other, "/s", 3)
		r.Check(err)
		rest := r.multiOf(semaphore.Permits(1), lock.ReadLock())
		beside, err := rest.TryAcquire(r.Ctx)
		r.Check(err)
		_, err = rest.TryAcquire(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrBusy)
		var failed *recipes.LockError
		if !errors.As(err, &failed) || failed.Path != "/s" || failed.Op != "try to acquire" {
			t.Errorf("TryAcquire = %v", err)
		}
		_, err = r.everyKind(other).TryAcquire(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrBusy)
		r.Check(beside.Close())
		waits := multiAcquire(r.Ctx, r.everyKind(other))
		time.Sleep(time.Second)
		r.Check(h.Err())
		r.Check(h.Release(r.Ctx))
		next := <-waits
		r.Check(next.err)
		r.Check(next.hold.Close())
		r.nothingIn(multiDirs...)
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// What free and taken locks cost, in requests and in round trips.
func TestMultiLockRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const trip = time.Millisecond
		c := r.Connect("a")
		single, err := recipes.NewInterProcessMutex(r.Connect("b"), "/y")
		r.Check(err)
		m := r.multi(c, "/x", "/y", "/z")
		r.Check(r.multiHeld(m).Close())
		r.Srv.ResetCounts()
		began := time.Now()
		did := func(what string, trips int, want map[zktest.Op]int) {
			t.Helper()
			got := r.Srv.Counts()
			delete(got, zktest.OpPing)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
			if took := time.Since(began); took > time.Duration(trips)*2*trip {
				t.Errorf("%s took %v", what, took)
			}
			r.Srv.ResetCounts()
			began = time.Now()
		}
		h := r.multiHeld(m)
		did("the second acquire, which watches the directories", 1, map[zktest.Op]int{zktest.OpMulti: 1, zktest.OpGetChildren2: 3, zktest.OpGetData: 3})
		r.Check(h.Release(r.Ctx))
		did("release", 1, map[zktest.Op]int{zktest.OpMulti: 1})
		for range 2 {
			h = r.multiHeld(m)
			did("an acquire before numbers follow each other", 1, map[zktest.Op]int{zktest.OpMulti: 1, zktest.OpGetChildren2: 3})
			r.Check(h.Release(r.Ctx))
			did("release", 1, map[zktest.Op]int{zktest.OpMulti: 1})
		}
		h = r.multiHeld(m)
		did("acquire", 1, map[zktest.Op]int{zktest.OpMulti: 1})
		r.Check(h.Release(r.Ctx))
		did("release", 1, map[zktest.Op]int{zktest.OpMulti: 1})
		h, err = m.TryAcquire(r.Ctx)
		r.Check(err)
		did("try", 2, map[zktest.Op]int{zktest.OpMulti: 1, zktest.OpGetChildren2: 3})
		again, err := m.Acquire(h.Context())
		r.Check(err)
		did("re-entry", 0, map[zktest.Op]int{})
		r.Check(again.Release(r.Ctx))
		did("release of one of two", 0, map[zktest.Op]int{})
		r.Check(h.Release(r.Ctx))
		did("release", 1, map[zktest.Op]int{zktest.OpMulti: 1})
		one := r.held(single)
		r.Srv.ResetCounts()
		began = time.Now()
		_, err = m.TryAcquire(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrBusy)
		did("a try that fails", 2, map[zktest.Op]int{zktest.OpGetChildren2: 3, zktest.OpGetData: 1})
		r.Check(one.Close())
		r.nothingIn("/x", "/y", "/z")
		time.Sleep(time.Minute) // the watches on the directories stay for a while
		r.WantNoWatch()
	})
}

// A context of a hold re-enters, each lock by its own rule, in Acquire and in
// TryAcquire, and whatever else is in the way.
func TestMultiLockReentry(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		mutex, err := recipes.NewInterProcessMutex(c, "/m")
		r.Check(err)
		lock, err := recipes.NewInterProcessReadWriteLock(c, "/rw")
		r.Check(err)
		single, err := recipes.NewInterProcessSemaphoreMutex(c, "/s")
		r.Check(err)
		for name, enter := range map[string]func(*recipes.InterProcessMultiLock, context.Context) (*recipes.MultiHold, error){
			"acquire": (*recipes.InterProcessMultiLock).Acquire, "try": (*recipes.InterProcessMultiLock).TryAcquire,
		} {
			// Some of the locks are held already.
			outer := r.held(mutex)
			h, err := enter(r.multiOf(mutex, lock.WriteLock()), outer.Context())
			r.Check(err)
			if h.Holds()[0].Path() != outer.Path() || len(r.Srv.Children("/m")) != 1 {
				t.Errorf("%s: not re-entered: %v", name, r.Srv.Children("/m"))
			}
			// A reader within a writer, and all of it again.
			in, err := enter(r.multiOf(lock.ReadLock(), mutex), h.Context())
			r.Check(err)
			if in.FencingToken() != h.Holds()[1].FencingToken() {
				t.Errorf("%s: a read hold with token %d in the place of %d", name, in.FencingToken(), h.Holds()[1].FencingToken())
			}
			nested, err := mutex.Acquire(in.Context())
			r.Check(err)
			r.Check(nested.Close())
			r.Check(h.Close())
			r.Check(in.Err())
			// A writer within a reader would wait for itself.
			_, err = enter(r.multiOf(mutex, lock.WriteLock()), in.Context())
			testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
			var failed *recipes.LockError
			if !errors.As(err, &failed) || failed.Path != "/rw" || failed.Op == "" {
				t.Errorf("%s: %v", name, err)
			}
			r.Check(in.Close())
			r.Check(outer.Err())
			r.Check(outer.Close())
			testrig.WantErr(t, h.Err(), recipes.ErrReleased)
			// So would a semaphore's holder.
			two := r.multiHeld(r.multiOf(single, mutex))
			_, err = enter(r.multiOf(mutex, single), two.Context())
			testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
			r.Check(two.Err())
			r.Check(two.Close())
			r.nothingIn("/m", "/rw", "/s/locks", "/s/leases")
		}
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// A re-entry that failed gives back what it has re-entered, and nothing else.
func TestMultiLockReentryFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		lock, err := recipes.NewInterProcessReadWriteLock(c, "/rw")
		r.Check(err)
		mutex, err := recipes.NewInterProcessMutex(c, "/m")
		r.Check(err)
		other, err := recipes.NewInterProcessMutex(r.Connect("b"), "/m")
		r.Check(err)
		busy := r.held(other)
		write, err := lock.WriteLock().Acquire(r.Ctx)
		r.Check(err)
		both := r.multiOf(lock.ReadLock(), mutex)
		_, err = both.TryAcquire(write.Context())
		testrig.WantErr(t, err, recipes.ErrBusy)
		ctx, cancel := context.WithTimeout(write.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err = both.Acquire(ctx)
		testrig.WantErr(t, err, context.DeadlineExceeded)
		if took := time.Since(began); took > time.Second {
			t.Errorf("a limit of a second took %v", took)
		}
		time.Sleep(time.Second)
		if in := r.Srv.Children("/rw"); len(in) != 1 || len(r.Srv.Children("/m")) != 1 {
			t.Errorf("left: %v, %v", in, r.Srv.Children("/m"))
		}
		r.Check(write.Err())
		r.Check(write.Release(r.Ctx))
		r.Check(busy.Release(r.Ctx))
		r.nothingIn("/rw", "/m")
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// Locks in several namespaces of one client are entered in one transaction.
func TestMultiLockNamespaces(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		one, err := c.Namespace("one")
		r.Check(err)
		two, err := c.Namespace("two")
		r.Check(err)
		here, err := recipes.NewInterProcessMutex(one, "/l")
		r.Check(err)
		there, err := recipes.NewInterProcessSemaphoreMutex(two, "/l")
		r.Check(err)
		h := r.multiHeld(r.multiOf(there, here))
		if len(r.Srv.Children("/one/l")) != 1 || len(r.Srv.Children("/two/l/leases")) != 1 {
			t.Errorf("nodes: %v, %v", r.Srv.Children("/one"), r.Srv.Children("/two"))
		}
		r.Check(h.Close())
		r.Srv.ResetCounts()
		r.Check(r.multiHeld(r.multiOf(there, here)).Close())
		if n := r.Srv.Count(zktest.OpMulti); n != 2 { // all queues, the lease
			t.Errorf("%d transactions", n)
		}
		r.nothingIn("/one/l", "/two/l/leases", "/two/l/locks")
	})
}

func TestNewInterProcessMultiLockInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		root := r.Connect("a")
		c, err := root.Namespace("ns")
		r.Check(err)
		mutex, err := recipes.NewInterProcessMutex(c, "/l")
		r.Check(err)
		same, err := recipes.NewInterProcessMutex(root, "/ns/l")
		r.Check(err)
		lock, err := recipes.NewInterProcessReadWriteLock(c, "/l")
		r.Check(err)
		semaphore, err := recipes.NewInterProcessSemaphoreV2(c, "/s", 2)
		r.Check(err)
		gate, err := recipes.NewInterProcessMutex(c, "/s/locks")
		r.Check(err)
		for name, locks := range map[string][]recipes.Lock{
			"none": {}, "nil": {mutex, nil}, "nil mutex": {(*recipes.InterProcessMutex)(nil)}, "twice": {mutex, mutex}, "same path": {mutex, same},
			"both halves": {lock.ReadLock(), lock.WriteLock()}, "permits twice": {semaphore.Permits(1), semaphore.Permits(1)},
			"a semaphore and its queue": {gate, semaphore.Permits(1)},
		} {
			if m, err := recipes.NewInterProcessMultiLock(locks...); m != nil || err == nil || !strings.HasPrefix(err.Error(), "recipes: ") {
				t.Errorf("%s: %v, %v", name, m, err)
			}
		}
		_, err = r.multiOf(mutex, semaphore.Permits(3)).Acquire(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrTooManyPermits)
		if len(r.Srv.Children("/ns/l")) != 0 {
			t.Error("entered a queue for nothing")
		}
	})
}

// Locks of several ensembles are taken in the order in which they are named.
func TestMultiLocksOfSeveralEnsembles(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		other := testrig.Server(r.T)
		mutex := func(c *client.Client, path string) recipes.Lock {
			m, err := recipes.NewInterProcessMutex(c, path)
			r.Check(err)
			return m
		}
		const rounds = 200
		done := make(chan error, 3)
		inside := make(map[string]string)
		for i := range 3 {
			one, two := r.Connect(name(i)), testrig.Connect(r.Ctx, r.T, "other", other.Client(name(i)).DialContext)
			m := r.multiOf([][]recipes.Lock{
				{mutex(two, "/m"), mutex(one, "/a"), mutex(one, "/z")},
				{mutex(two, "/m"), mutex(one, "/z")},
				{mutex(two, "/m"), mutex(one, "/z"), mutex(two, "/b")},
			}[i]...)
			go func() {
				for range rounds {
					if err := m.Do(r.Within(time.Minute), func(context.Context, *recipes.MultiHold) error {
						if inside["z"] != "" {
							return fmt.Errorf("%s beside %s", name(i), inside["z"])
						}
						inside["z"] = name(i)
						time.Sleep(time.Millisecond)
						inside["z"] = ""
						return nil
					}); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 3 {
			r.Check(<-done)
		}
		r.nothingIn("/a", "/z")
		for _, path := range []string{"/m", "/b"} {
			if left := other.Children(path); len(left) != 0 {
				t.Errorf("left in %s: %v", path, left)
			}
		}
	})
}

// The path of a lock on two clients of one ensemble is the same lock: it would
// wait for itself.
func TestMultiLockOfTwoClientsWaitsForItself(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		one, err := recipes.NewInterProcessMutex(r.Connect("a"), "/x")
		r.Check(err)
		two, err := recipes.NewInterProcessMutex(r.Connect("b"), "/x")
		r.Check(err)
		_, err = r.multiOf(one, two).Acquire(r.Within(time.Minute))
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		r.nothingIn("/x")
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// Permits of none or fewer are refused when the multi-lock is made, as by an acquire.
func TestMultiLockOfNoPermits(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for _, n := range []int{0, -1} {
			_, err := recipes.NewInterProcessMultiLock(r.mutex(c), r.semaphore(c, 3).Permits(n))
			if want := fmt.Sprintf("recipes: lock 1 of a multi-lock is %d permits of /pools/db; ask for at least one", n); err == nil || err.Error() != want {
				r.Errorf("error %v, want %q", err, want)
			}
		}
	})
}
