package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// multiDirs are where the nodes of everyKind are.
var multiDirs = []string{"/m", "/r", "/w", "/s/locks", "/s/leases", "/x/locks", "/x/leases"}

// everyKind is the multi-lock of one lock of each kind.
func (r *rig) everyKind(c *client.Client) *recipes.InterProcessMultiLock {
	r.Helper()
	mutex, err := recipes.NewInterProcessMutex(c, "/m")
	r.check(err)
	read, err := recipes.NewInterProcessReadWriteLock(c, "/r")
	r.check(err)
	write, err := recipes.NewInterProcessReadWriteLock(c, "/w")
	r.check(err)
	semaphore, err := recipes.NewInterProcessSemaphoreV2(c, "/s", 3)
	r.check(err)
	single, err := recipes.NewInterProcessSemaphoreMutex(c, "/x")
	r.check(err)
	return r.multiOf(mutex, read.ReadLock(), write.WriteLock(), semaphore.Permits(2), single)
}

func (r *rig) multiOf(locks ...recipes.Lock) *recipes.InterProcessMultiLock {
	r.Helper()
	m, err := recipes.NewInterProcessMultiLock(locks...)
	r.check(err)
	return m
}

// multiHeld acquires a multi-lock that is free.
func (r *rig) multiHeld(m *recipes.InterProcessMultiLock) *recipes.MultiHold {
	r.Helper()
	h, err := m.Acquire(r.ctx)
	r.check(err)
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
		c := r.connect("a")
		m := r.everyKind(c)
		if m.Path() != "/m+/r+/w+/s+/x" {
			t.Errorf("Path = %s", m.Path())
		}
		h := r.multiHeld(m)
		for dir, tag := range map[string]string{
			"/m": "lock-", "/r": "__READ__", "/w": "__WRIT__", "/s/locks": "", "/s/leases": "lease-", "/x/locks": "", "/x/leases": "lease-",
		} {
			in := r.srv.Children(dir)
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
			n, ok := r.srv.Node(one.Path())
			if !ok || n.Stat.Czxid != one.FencingToken() || n.Stat.EphemeralOwner != r.session(c) {
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
		other := r.connect("b")
		lock, err := recipes.NewInterProcessReadWriteLock(other, "/r")
		r.check(err)
		semaphore, err := recipes.NewInterProcessSemaphoreV2(other, "/s", 3)
		r.check(err)
		rest := r.multiOf(semaphore.Permits(1), lock.ReadLock())
		beside, err := rest.TryAcquire(r.ctx)
		r.check(err)
		_, err = rest.TryAcquire(r.ctx)
		wantErr(t, err, recipes.ErrBusy)
		var failed *recipes.LockError
		if !errors.As(err, &failed) || failed.Path != "/s" || failed.Op != "try to acquire" {
			t.Errorf("TryAcquire = %v", err)
		}
		_, err = r.everyKind(other).TryAcquire(r.ctx)
		wantErr(t, err, recipes.ErrBusy)
		r.check(beside.Close())
		waits := multiAcquire(r.ctx, r.everyKind(other))
		time.Sleep(time.Second)
		r.check(h.Err())
		r.check(h.Release(r.ctx))
		next := <-waits
		r.check(next.err)
		r.check(next.hold.Close())
		r.nothingIn(multiDirs...)
		wantNoGoroutine(t)
	})
}

// What free and taken locks cost, in requests and in round trips.
func TestMultiLockRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const trip = time.Millisecond
		c := r.connect("a")
		single, err := recipes.NewInterProcessMutex(r.connect("b"), "/y")
		r.check(err)
		m := r.multi(c, "/x", "/y", "/z")
		r.check(r.multiHeld(m).Close())
		r.srv.ResetCounts()
		began := time.Now()
		did := func(what string, trips int, want map[zktest.Op]int) {
			t.Helper()
			got := r.srv.Counts()
			delete(got, zktest.OpPing)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
			if took := time.Since(began); took > time.Duration(trips)*2*trip {
				t.Errorf("%s took %v", what, took)
			}
			r.srv.ResetCounts()
			began = time.Now()
		}
		h := r.multiHeld(m)
		did("the second acquire, which watches the directories", 1, map[zktest.Op]int{zktest.OpMulti: 1, zktest.OpGetChildren2: 3, zktest.OpGetData: 3})
		r.check(h.Release(r.ctx))
		did("release", 1, map[zktest.Op]int{zktest.OpMulti: 1})
		for range 2 {
			h = r.multiHeld(m)
			did("an acquire before numbers follow each other", 1, map[zktest.Op]int{zktest.OpMulti: 1, zktest.OpGetChildren2: 3})
			r.check(h.Release(r.ctx))
			did("release", 1, map[zktest.Op]int{zktest.OpMulti: 1})
		}
		h = r.multiHeld(m)
		did("acquire", 1, map[zktest.Op]int{zktest.OpMulti: 1})
		r.check(h.Release(r.ctx))
		did("release", 1, map[zktest.Op]int{zktest.OpMulti: 1})
		h, err = m.TryAcquire(r.ctx)
		r.check(err)
		did("try", 2, map[zktest.Op]int{zktest.OpMulti: 1, zktest.OpGetChildren2: 3})
		again, err := m.Acquire(h.Context())
		r.check(err)
		did("re-entry", 0, map[zktest.Op]int{})
		r.check(again.Release(r.ctx))
		did("release of one of two", 0, map[zktest.Op]int{})
		r.check(h.Release(r.ctx))
		did("release", 1, map[zktest.Op]int{zktest.OpMulti: 1})
		one := r.held(single)
		r.srv.ResetCounts()
		began = time.Now()
		_, err = m.TryAcquire(r.ctx)
		wantErr(t, err, recipes.ErrBusy)
		did("a try that fails", 2, map[zktest.Op]int{zktest.OpGetChildren2: 3, zktest.OpGetData: 1})
		r.check(one.Close())
		r.nothingIn("/x", "/y", "/z")
		time.Sleep(time.Minute) // the watches on the directories stay for a while
		if n := r.srv.WatchCount(); n != 0 {
			t.Errorf("%d watches", n)
		}
	})
}

// A context of a hold re-enters, each lock by its own rule, in Acquire and in
// TryAcquire, and whatever else is in the way.
func TestMultiLockReentry(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		mutex, err := recipes.NewInterProcessMutex(c, "/m")
		r.check(err)
		lock, err := recipes.NewInterProcessReadWriteLock(c, "/rw")
		r.check(err)
		single, err := recipes.NewInterProcessSemaphoreMutex(c, "/s")
		r.check(err)
		for name, enter := range map[string]func(*recipes.InterProcessMultiLock, context.Context) (*recipes.MultiHold, error){
			"acquire": (*recipes.InterProcessMultiLock).Acquire, "try": (*recipes.InterProcessMultiLock).TryAcquire,
		} {
			// Some of the locks are held already.
			outer := r.held(mutex)
			h, err := enter(r.multiOf(mutex, lock.WriteLock()), outer.Context())
			r.check(err)
			if h.Holds()[0].Path() != outer.Path() || len(r.srv.Children("/m")) != 1 {
				t.Errorf("%s: not re-entered: %v", name, r.srv.Children("/m"))
			}
			// A reader within a writer, and all of it again.
			in, err := enter(r.multiOf(lock.ReadLock(), mutex), h.Context())
			r.check(err)
			if in.FencingToken() != h.Holds()[1].FencingToken() {
				t.Errorf("%s: a read hold with token %d in the place of %d", name, in.FencingToken(), h.Holds()[1].FencingToken())
			}
			nested, err := mutex.Acquire(in.Context())
			r.check(err)
			r.check(nested.Close())
			r.check(h.Close())
			r.check(in.Err())
			// A writer within a reader would wait for itself.
			_, err = enter(r.multiOf(mutex, lock.WriteLock()), in.Context())
			wantErr(t, err, recipes.ErrWouldDeadlock)
			var failed *recipes.LockError
			if !errors.As(err, &failed) || failed.Path != "/rw" || failed.Op == "" {
				t.Errorf("%s: %v", name, err)
			}
			r.check(in.Close())
			r.check(outer.Err())
			r.check(outer.Close())
			wantErr(t, h.Err(), recipes.ErrReleased)
			// So would a semaphore's holder.
			two := r.multiHeld(r.multiOf(single, mutex))
			_, err = enter(r.multiOf(mutex, single), two.Context())
			wantErr(t, err, recipes.ErrWouldDeadlock)
			r.check(two.Err())
			r.check(two.Close())
			r.nothingIn("/m", "/rw", "/s/locks", "/s/leases")
		}
		wantNoGoroutine(t)
	})
}

// A re-entry that failed gives back what it has re-entered, and nothing else.
func TestMultiLockReentryFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		lock, err := recipes.NewInterProcessReadWriteLock(c, "/rw")
		r.check(err)
		mutex, err := recipes.NewInterProcessMutex(c, "/m")
		r.check(err)
		other, err := recipes.NewInterProcessMutex(r.connect("b"), "/m")
		r.check(err)
		busy := r.held(other)
		write, err := lock.WriteLock().Acquire(r.ctx)
		r.check(err)
		both := r.multiOf(lock.ReadLock(), mutex)
		_, err = both.TryAcquire(write.Context())
		wantErr(t, err, recipes.ErrBusy)
		ctx, cancel := context.WithTimeout(write.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err = both.Acquire(ctx)
		wantErr(t, err, context.DeadlineExceeded)
		if took := time.Since(began); took > time.Second {
			t.Errorf("a limit of a second took %v", took)
		}
		time.Sleep(time.Second)
		if in := r.srv.Children("/rw"); len(in) != 1 || len(r.srv.Children("/m")) != 1 {
			t.Errorf("left: %v, %v", in, r.srv.Children("/m"))
		}
		r.check(write.Err())
		r.check(write.Release(r.ctx))
		r.check(busy.Release(r.ctx))
		r.nothingIn("/rw", "/m")
		wantNoGoroutine(t)
	})
}

// Locks in several namespaces of one client are entered in one transaction.
func TestMultiLockNamespaces(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		one, err := c.Namespace("one")
		r.check(err)
		two, err := c.Namespace("two")
		r.check(err)
		here, err := recipes.NewInterProcessMutex(one, "/l")
		r.check(err)
		there, err := recipes.NewInterProcessSemaphoreMutex(two, "/l")
		r.check(err)
		h := r.multiHeld(r.multiOf(there, here))
		if len(r.srv.Children("/one/l")) != 1 || len(r.srv.Children("/two/l/leases")) != 1 {
			t.Errorf("nodes: %v, %v", r.srv.Children("/one"), r.srv.Children("/two"))
		}
		r.check(h.Close())
		r.srv.ResetCounts()
		r.check(r.multiHeld(r.multiOf(there, here)).Close())
		if n := r.srv.Count(zktest.OpMulti); n != 2 { // all queues, the lease
			t.Errorf("%d transactions", n)
		}
		r.nothingIn("/one/l", "/two/l/leases", "/two/l/locks")
	})
}

func TestNewInterProcessMultiLockInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		root := r.connect("a")
		c, err := root.Namespace("ns")
		r.check(err)
		mutex, err := recipes.NewInterProcessMutex(c, "/l")
		r.check(err)
		same, err := recipes.NewInterProcessMutex(root, "/ns/l")
		r.check(err)
		lock, err := recipes.NewInterProcessReadWriteLock(c, "/l")
		r.check(err)
		semaphore, err := recipes.NewInterProcessSemaphoreV2(c, "/s", 2)
		r.check(err)
		gate, err := recipes.NewInterProcessMutex(c, "/s/locks")
		r.check(err)
		for name, locks := range map[string][]recipes.Lock{
			"none": {}, "nil": {mutex, nil}, "nil mutex": {(*recipes.InterProcessMutex)(nil)}, "twice": {mutex, mutex}, "same path": {mutex, same},
			"both halves": {lock.ReadLock(), lock.WriteLock()}, "permits twice": {semaphore.Permits(1), semaphore.Permits(1)},
			"a semaphore and its queue": {gate, semaphore.Permits(1)},
		} {
			if m, err := recipes.NewInterProcessMultiLock(locks...); m != nil || err == nil || !strings.HasPrefix(err.Error(), "recipes: ") {
				t.Errorf("%s: %v, %v", name, m, err)
			}
		}
		_, err = r.multiOf(mutex, semaphore.Permits(3)).Acquire(r.ctx)
		wantErr(t, err, recipes.ErrTooManyPermits)
		if len(r.srv.Children("/ns/l")) != 0 {
			t.Error("entered a queue for nothing")
		}
	})
}

// Locks of several ensembles are taken in the order in which they are named.
func TestMultiLocksOfSeveralEnsembles(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		other := zktest.NewServer(r.T, zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		mutex := func(c *client.Client, path string) recipes.Lock {
			m, err := recipes.NewInterProcessMutex(c, path)
			r.check(err)
			return m
		}
		const rounds = 200
		done := make(chan error, 3)
		inside := make(map[string]string)
		for i := range 3 {
			one := r.connect(name(i))
			two, err := client.Connect(r.ctx, "other", client.WithSessionTimeout(sessionTimeout),
				client.WithDialer(other.Client(name(i)).DialContext), client.WithLogger(slog.New(slog.DiscardHandler)))
			r.check(err)
			r.Cleanup(func() { _ = two.CloseContext(context.WithoutCancel(r.ctx)) })
			m := r.multiOf([][]recipes.Lock{
				{mutex(two, "/m"), mutex(one, "/a"), mutex(one, "/z")},
				{mutex(two, "/m"), mutex(one, "/z")},
				{mutex(two, "/m"), mutex(one, "/z"), mutex(two, "/b")},
			}[i]...)
			go func() {
				for range rounds {
					if err := m.Do(r.within(time.Minute), func(context.Context, *recipes.MultiHold) error {
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
			r.check(<-done)
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
		one, err := recipes.NewInterProcessMutex(r.connect("a"), "/x")
		r.check(err)
		two, err := recipes.NewInterProcessMutex(r.connect("b"), "/x")
		r.check(err)
		_, err = r.multiOf(one, two).Acquire(r.within(time.Minute))
		wantErr(t, err, recipes.ErrWouldDeadlock)
		r.nothingIn("/x")
		wantNoGoroutine(t)
	})
}

// Permits of none or fewer are refused when the multi-lock is made, as by an acquire.
func TestMultiLockOfNoPermits(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		for _, n := range []int{0, -1} {
			_, err := recipes.NewInterProcessMultiLock(r.mutex(c), r.semaphore(c, 3).Permits(n))
			if want := fmt.Sprintf("recipes: lock 1 of a multi-lock is %d permits of /pools/db; ask for at least one", n); err == nil || err.Error() != want {
				r.Errorf("error %v, want %q", err, want)
			}
		}
	})
}
