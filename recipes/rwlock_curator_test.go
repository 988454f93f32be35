package recipes_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
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
			l := r.rw(r.connect(name(i)))
			for round := range rounds {
				write := (round+i)%10 == 0
				h, err := rwAcquire(r.ctx, l, write)
				r.check(err)
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
				r.check(h.Release(r.ctx))
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
		l := r.rw(r.connect("a"))
		w := r.writes(r.ctx, l)
		reader := rwWaits(r.ctx, l, false)
		r.rwWaiting(reader, "another goroutine's reader")
		r.check(w.Release(r.ctx))
		r.check(r.rwGranted(reader, "the reader").Release(r.ctx))
		r.rwEmpty()
	})
}

// TestInterProcessReadWriteLock.testSetNodeData: both halves write a copy of
// the bytes that were given.
func TestRWLockNodeData(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		data := []byte("mine")
		l := r.rw(r.connect("a"), recipes.WithNodeData(data))
		data[0] = 'x'
		for _, write := range []bool{false, true} {
			h, err := rwAcquire(r.ctx, l, write)
			r.check(err)
			if n, _ := r.srv.Node(h.Path()); string(n.Data) != "mine" {
				t.Errorf("data %q", n.Data)
			}
			r.check(h.Release(r.ctx))
		}
		h := r.reads(r.ctx, r.rw(r.connect("b", client.WithDefaultData([]byte("default")))))
		if n, _ := r.srv.Node(h.Path()); string(n.Data) != "default" {
			t.Errorf("data %q", n.Data)
		}
		r.check(h.Release(r.ctx))
	})
}

// TestInterProcessReadWriteLock.testLockPath: the path of a hold is that of its
// node, also when its session and with it the node are gone.
func TestRWLockPath(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		w := r.writes(r.ctx, r.rw(c))
		path := w.Path()
		if _, there := r.srv.Node(path); !there {
			t.Errorf("no %s", path)
		}
		r.srv.ExpireSession(r.session(c))
		time.Sleep(time.Second)
		if _, there := r.srv.Node(w.Path()); there || w.Path() != path {
			t.Errorf("%s, was %s", w.Path(), path)
		}
		wantErr(t, w.Close(), recipes.ErrLost)
		r.rwEmpty()
	})
}

// TestInterProcessMutexBase.testLocker, with what loses the lock meanwhile.
func TestRWLockDo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
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
			r.check(do(r.ctx, func(ctx context.Context) error {
				ran = true
				if line := r.rwLine(); len(line) != 1 || line[0][:8] != half {
					t.Errorf("line %v", line)
				}
				return do(ctx, func(context.Context) error { return nil }) // re-enters
			}))
			if !ran {
				t.Error("not run")
			}
			wantErr(t, do(r.ctx, func(context.Context) error { return errWork }), errWork)
			err := do(r.ctx, func(ctx context.Context) error {
				r.srv.ExpireSession(r.session(c))
				<-ctx.Done()
				return context.Cause(ctx)
			})
			wantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
			r.rwEmpty()
		}
	})
}

// TestInterProcessMutexBase.testWaitingProcessKilledServer: holder and waiters
// go on when the server has been away.
func TestRWLockServerAway(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.connect("a"))
		w := r.writes(r.ctx, l)
		reader := rwWaits(r.ctx, l, false)
		r.rwWaiting(reader, "a reader")
		writer := rwWaits(r.ctx, l, true)
		r.rwWaiting(writer, "a writer")
		r.srv.Stop()
		time.Sleep(sessionTimeout / 4)
		r.srv.Resume()
		time.Sleep(time.Second)
		r.check(w.Err())
		r.check(w.Release(r.ctx))
		r.check(r.rwGranted(reader, "the reader").Release(r.ctx))
		r.check(r.rwGranted(writer, "the writer").Release(r.ctx))
		r.rwEmpty()
	})
}

// TestInterProcessMutexBase.testContainerCleanup and testWithNamespace.
func TestRWLockDirectories(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a", client.WithNamespace("ns"))
		l, err := recipes.NewInterProcessReadWriteLock(c, "/a/b")
		r.check(err)
		rwMany(10, func(i int) {
			h, err := rwAcquire(r.ctx, l, i%2 == 0)
			r.check(err)
			if n, there := r.srv.Node("/ns" + h.Path()); !there || n.Stat.EphemeralOwner != r.session(c) {
				r.Errorf("node %+v", n)
			}
			r.check(h.Release(r.ctx))
		})
		for _, dir := range []string{"/ns/a/b", "/ns/a", "/ns"} {
			if n, _ := r.srv.Node(dir); !n.Container || len(n.Data) != 0 {
				r.Errorf("%s: %+v", dir, n)
			}
		}
		for range 3 { // it takes one level at a time
			r.srv.Sweep()
		}
		if left := r.srv.Children("/"); len(left) != 1 { // "zookeeper"
			r.Errorf("left: %v", left)
		}
		r.check(r.writes(r.ctx, l).Release(r.ctx))
	})
}

// TestInterProcessMutexBase.testReentrantSingleLock, testReentrant2Threads and
// test2Clients: goroutines that share a value or a client are as strange to
// each other as processes.
func TestRWLockGoroutines(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		shared := r.rw(r.connect("shared"))
		other := r.rw(r.connect("other"))
		inside := 0
		rwMany(10, func(i int) {
			l := shared
			if i%3 == 0 {
				l = other
			}
			outer := r.writes(r.ctx, l)
			middle := r.writes(outer.Context(), l)
			inner := r.writes(middle.Context(), l)
			if inside++; inside != 1 {
				r.Errorf("%d inside", inside)
			}
			time.Sleep(10 * time.Millisecond)
			r.check(inner.Release(r.ctx))
			r.check(middle.Release(r.ctx))
			time.Sleep(10 * time.Millisecond)
			inside--
			r.check(outer.Release(r.ctx))
		})
		r.rwEmpty()
		if n := r.srv.Count(zktest.OpCreate); n != 10+1 { // and one that found no directory
			r.Logf("%d creates", n)
		}
	})
}
