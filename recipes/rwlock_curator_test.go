package recipes_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// TestInterProcessReadWriteLock.testBasic: eight clients, a hundred rounds
// each, one in ten a writer; writers are alone, and readers are not.
func TestRWLockBasic(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const clients, rounds = 8, 100
		var readers, writers, most atomic.Int32
		written := 0 // by writers alone, and read by readers: the race detector looks on
		rwMany(clients, func(i int) {
			l := r.rw(r.Connect(name(i)))
			for round := range rounds {
				write := (round+i)%10 == 0
				h, err := rwAcquire(r.Ctx, l, write)
				r.Check(err)
				inside := &readers
				if write {
					inside = &writers
				}
				inside.Add(1)
				was := written
				n, m := writers.Load(), readers.Load()
				if n > 1 || n == 1 && m > 0 {
					r.Errorf("%d writers and %d readers", n, m)
				}
				most.Store(max(most.Load(), m))
				time.Sleep(time.Duration(i+1) * time.Millisecond)
				if write {
					written = was + 1
				}
				inside.Add(-1)
				r.Check(h.Release(r.Ctx))
			}
		})
		if written != clients*rounds/10 || most.Load() < 2 {
			r.Errorf("written %d times, at most %d readers together", written, most.Load())
		}
		r.rwEmpty()
	})
}

// TestInterProcessReadWriteLock.testThatDowngradingRespectsThreads: the place of
// a write hold is for its context's descendants alone.
func TestRWLockDowngradeIsForOwnContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"))
		w := r.writes(r.Ctx, l)
		reader := rwWaits(r.Ctx, l, false)
		r.rwWaiting(reader, "another goroutine's reader")
		r.Check(w.Release(r.Ctx))
		r.Check(r.rwGranted(reader, "the reader").Release(r.Ctx))
		r.rwEmpty()
	})
}

// TestInterProcessReadWriteLock.testSetNodeData: both halves write a copy of
// the bytes that were given.
func TestRWLockNodeData(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		data := []byte("mine")
		l := r.rw(r.Connect("a"), recipes.WithNodeData(data))
		data[0] = 'x'
		for _, write := range []bool{false, true} {
			h, err := rwAcquire(r.Ctx, l, write)
			r.Check(err)
			if n, _ := r.Srv.Node(h.Path()); string(n.Data) != "mine" {
				t.Errorf("data %q", n.Data)
			}
			r.Check(h.Release(r.Ctx))
		}
		h := r.reads(r.Ctx, r.rw(r.Connect("b", client.WithDefaultData([]byte("default")))))
		if n, _ := r.Srv.Node(h.Path()); string(n.Data) != "default" {
			t.Errorf("data %q", n.Data)
		}
		r.Check(h.Release(r.Ctx))
	})
}

// TestInterProcessReadWriteLock.testLockPath: the path of a hold is that of its
// node, also when its session and with it the node are gone.
func TestRWLockPath(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		w := r.writes(r.Ctx, r.rw(c))
		path := w.Path()
		if _, there := r.Srv.Node(path); !there {
			t.Errorf("no %s", path)
		}
		r.Srv.ExpireSession(r.SessionID(c))
		time.Sleep(time.Second)
		if _, there := r.Srv.Node(w.Path()); there || w.Path() != path {
			t.Errorf("%s, was %s", w.Path(), path)
		}
		testrig.WantErr(t, w.Close(), recipes.ErrLost)
		r.rwEmpty()
	})
}

// TestInterProcessMutexBase.testLocker, with what loses the lock meanwhile.
func TestRWLockDo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		l := r.rw(c)
		for half, do := range map[string]func(context.Context, func(context.Context) error) error{
			"__READ__": func(ctx context.Context, fn func(context.Context) error) error {
				return l.ReadLock().Do(ctx, works[*recipes.Hold](fn))
			},
			"__WRIT__": func(ctx context.Context, fn func(context.Context) error) error {
				return l.WriteLock().Do(ctx, works[*recipes.WriteHold](fn))
			},
		} {
			ran := false
			r.Check(do(r.Ctx, func(ctx context.Context) error {
				ran = true
				if line := r.rwLine(); len(line) != 1 || line[0][:8] != half {
					t.Errorf("line %v", line)
				}
				return do(ctx, func(context.Context) error { return nil }) // re-enters
			}))
			if !ran {
				t.Error("not run")
			}
			testrig.WantErr(t, do(r.Ctx, func(context.Context) error { return errWork }), errWork)
			err := do(r.Ctx, func(ctx context.Context) error {
				r.Srv.ExpireSession(r.SessionID(c))
				<-ctx.Done()
				return context.Cause(ctx)
			})
			testrig.WantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
			r.rwEmpty()
		}
	})
}

// TestInterProcessMutexBase.testWaitingProcessKilledServer: holder and waiters
// go on when the server has been away.
func TestRWLockServerAway(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"))
		w := r.writes(r.Ctx, l)
		reader := rwWaits(r.Ctx, l, false)
		r.rwWaiting(reader, "a reader")
		writer := rwWaits(r.Ctx, l, true)
		r.rwWaiting(writer, "a writer")
		r.Srv.Stop()
		time.Sleep(testrig.SessionTimeout / 4)
		r.Srv.Resume()
		time.Sleep(time.Second)
		r.Check(w.Err())
		r.Check(w.Release(r.Ctx))
		r.Check(r.rwGranted(reader, "the reader").Release(r.Ctx))
		r.Check(r.rwGranted(writer, "the writer").Release(r.Ctx))
		r.rwEmpty()
	})
}

// TestInterProcessMutexBase.testContainerCleanup and testWithNamespace.
func TestRWLockDirectories(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithNamespace("ns"))
		l, err := recipes.NewInterProcessReadWriteLock(c, "/a/b")
		r.Check(err)
		rwMany(10, func(i int) {
			h, err := rwAcquire(r.Ctx, l, i%2 == 0)
			r.Check(err)
			if n, there := r.Srv.Node("/ns" + h.Path()); !there || n.Stat.EphemeralOwner != r.SessionID(c) {
				r.Errorf("node %+v", n)
			}
			r.Check(h.Release(r.Ctx))
		})
		for _, dir := range []string{"/ns/a/b", "/ns/a", "/ns"} {
			if n, _ := r.Srv.Node(dir); !n.Container || len(n.Data) != 0 {
				r.Errorf("%s: %+v", dir, n)
			}
		}
		for range 3 { // it takes one level at a time
			r.Srv.Sweep()
		}
		if left := r.Srv.Children("/"); len(left) != 1 { // "zookeeper"
			r.Errorf("left: %v", left)
		}
		r.Check(r.writes(r.Ctx, l).Release(r.Ctx))
	})
}

// TestInterProcessMutexBase.testReentrantSingleLock, testReentrant2Threads and
// test2Clients: goroutines that share a value or a client are as strange to
// each other as processes.
func TestRWLockGoroutines(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		shared := r.rw(r.Connect("shared"))
		other := r.rw(r.Connect("other"))
		inside := 0
		rwMany(10, func(i int) {
			l := shared
			if i%3 == 0 {
				l = other
			}
			outer := r.writes(r.Ctx, l)
			middle := r.writes(outer.Context(), l)
			inner := r.writes(middle.Context(), l)
			if inside++; inside != 1 {
				r.Errorf("%d inside", inside)
			}
			time.Sleep(10 * time.Millisecond)
			r.Check(inner.Release(r.Ctx))
			r.Check(middle.Release(r.Ctx))
			time.Sleep(10 * time.Millisecond)
			inside--
			r.Check(outer.Release(r.Ctx))
		})
		r.rwEmpty()
		if n := r.Srv.Count(zktest.OpCreate); n != 10+1 { // and one that found no directory
			r.Logf("%d creates", n)
		}
	})
}
