package recipes_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

func (r *rig) rw(c *client.Client, opts ...recipes.LockOption) *recipes.InterProcessReadWriteLock {
	r.Helper()
	l, err := recipes.NewInterProcessReadWriteLock(c, dir, opts...)
	r.Check(err)
	return l
}

func (r *rig) reads(ctx context.Context, l *recipes.InterProcessReadWriteLock) *recipes.Hold {
	r.Helper()
	h, err := l.ReadLock().Acquire(ctx)
	r.Check(err)
	return h
}

func (r *rig) writes(ctx context.Context, l *recipes.InterProcessReadWriteLock) *recipes.WriteHold {
	r.Helper()
	h, err := l.WriteLock().Acquire(ctx)
	r.Check(err)
	return h
}

func (r *rig) downgrades(ctx context.Context, w *recipes.WriteHold) *recipes.Hold {
	r.Helper()
	h, err := w.Downgrade(ctx)
	r.Check(err)
	return h
}

// rwWaits acquires one half by itself.
func rwWaits(ctx context.Context, l *recipes.InterProcessReadWriteLock, write bool) <-chan result {
	done := make(chan result, 1)
	go func() {
		h, err := rwAcquire(ctx, l, write)
		done <- result{h, err}
	}()
	return done
}

func rwAcquire(ctx context.Context, l *recipes.InterProcessReadWriteLock, write bool) (*recipes.Hold, error) {
	if !write {
		return l.ReadLock().Acquire(ctx)
	}
	h, err := l.WriteLock().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return h.Hold, nil
}

func rwTry(ctx context.Context, l *recipes.InterProcessReadWriteLock, write bool) (*recipes.Hold, error) {
	if !write {
		return l.ReadLock().TryAcquire(ctx)
	}
	h, err := l.WriteLock().TryAcquire(ctx)
	if err != nil {
		return nil, err
	}
	return h.Hold, nil
}

// rwWaiting checks that nothing came yet.
func (r *rig) rwWaiting(waits <-chan result, what string) {
	r.Helper()
	time.Sleep(time.Second)
	select {
	case res := <-waits:
		r.Fatalf("%s did not wait: %v, %v", what, res.hold, res.err)
	default:
	}
}

func (r *rig) rwGranted(waits <-chan result, what string) *recipes.Hold {
	r.Helper()
	select {
	case res := <-waits:
		r.Check(res.err)
		return res.hold
	case <-time.After(2 * testrig.SessionTimeout):
		r.Fatalf("%s still waits", what)
		return nil
	}
}

var rwNode = regexp.MustCompile(`^_c_[0-9a-f-]{36}-(__READ__|__WRIT__)\d{10}$`)

// rwLine is the contenders in the queue, in order: tag and number.
func (r *rig) rwLine() (in []string) {
	r.Helper()
	for _, name := range r.Srv.Children(dir) {
		if !rwNode.MatchString(name) {
			r.Errorf("what is %q?", name)
		}
		in = append(in, name[len(name)-18:])
	}
	slices.SortFunc(in, func(a, b string) int { return cmp.Or(cmp.Compare(a[8:], b[8:]), cmp.Compare(b, a)) })
	return in
}

func (r *rig) rwWantLine(want ...string) {
	r.Helper()
	if got := r.rwLine(); !slices.Equal(got, want) {
		r.Errorf("line %v, want %v", got, want)
	}
}

// rwEmpty checks that nothing is left behind once removals have had their
// time: no node, no watch, no goroutine.
func (r *rig) rwEmpty() {
	r.Helper()
	time.Sleep(5 * time.Second)
	r.WantNoChild(dir)
	if left := r.Srv.Watches(); len(left) != 0 {
		r.Errorf("watches: %v", left)
	}
	testrig.WantNoGoroutine(r.T, ourFrames)
}

// Readers share, a writer is alone, and the first to ask is first. A writer that
// waits lets no later reader pass (TestInterProcessReadWriteLock does not look at
// that).
func TestRWLockOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		first := r.reads(r.Ctx, r.rw(r.Connect("a")))
		second := r.reads(r.Ctx, r.rw(r.Connect("b")))
		writer := rwWaits(r.Ctx, r.rw(r.Connect("c")), true)
		r.rwWaiting(writer, "a writer behind readers")
		third := rwWaits(r.Ctx, r.rw(r.Connect("d")), false)
		r.rwWaiting(third, "a reader behind a waiting writer")
		fourth := rwWaits(r.Ctx, r.rw(r.Connect("e")), false)
		r.rwWaiting(fourth, "a reader behind a waiting writer and a reader")
		last := rwWaits(r.Ctx, r.rw(r.Connect("f")), true)
		r.rwWaiting(last, "a second writer")
		r.rwWantLine("__READ__0000000000", "__READ__0000000001", "__WRIT__0000000002", "__READ__0000000003", "__READ__0000000004", "__WRIT__0000000005")

		r.Check(second.Release(r.Ctx))
		r.rwWaiting(writer, "a writer behind one reader")
		r.Check(first.Release(r.Ctx))
		w := r.rwGranted(writer, "the writer")
		r.rwWaiting(third, "a reader behind a writer")
		r.Check(w.Release(r.Ctx))
		h3, h4 := r.rwGranted(third, "a reader"), r.rwGranted(fourth, "another reader")
		r.rwWaiting(last, "a writer behind readers")
		r.Check(h3.Release(r.Ctx))
		r.Check(h4.Release(r.Ctx))
		r.Check(r.rwGranted(last, "the last writer").Release(r.Ctx))
		r.rwEmpty()
	})
}

// When a waiting writer gives up, the readers behind it share again.
func TestRWLockWriterGivesUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.reads(r.Ctx, r.rw(r.Connect("a")))
		ctx, cancel := context.WithCancel(r.Ctx)
		writer := rwWaits(ctx, r.rw(r.Connect("b")), true)
		r.rwWaiting(writer, "a writer")
		reader := rwWaits(r.Ctx, r.rw(r.Connect("c")), false)
		r.rwWaiting(reader, "a reader")
		cancel()
		testrig.WantErr(t, (<-writer).err, context.Canceled)
		r.Check(r.rwGranted(reader, "the reader").Release(r.Ctx))
		r.Check(h.Release(r.Ctx))
		r.rwEmpty()
	})
}

// What an uncontended lock costs: one round trip, and one to release. An acquire soon
// after another in the same directory sets a watch there, once.
func TestRWLockRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"))
		r.Check(r.reads(r.Ctx, l).Release(r.Ctx)) // makes the directory
		want := func(what string, want map[zktest.Op]int) {
			t.Helper()
			got := r.Srv.Counts()
			delete(got, zktest.OpPing)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: requests %v, want %v", what, got, want)
			}
			r.Srv.ResetCounts()
		}
		r.Srv.ResetCounts()
		h := r.reads(r.Ctx, l)
		want("read", map[zktest.Op]int{zktest.OpCreate: 1, zktest.OpGetChildren2: 1, zktest.OpGetData: 1})
		r.Check(h.Release(r.Ctx))
		want("release", map[zktest.Op]int{zktest.OpDelete: 1})
		h = r.reads(r.Ctx, l)
		want("read", map[zktest.Op]int{zktest.OpCreate: 1, zktest.OpGetChildren2: 1})
		again := r.reads(h.Context(), l)
		want("read again", map[zktest.Op]int{})
		r.Check(again.Release(r.Ctx))
		r.Check(h.Release(r.Ctx))
		want("release", map[zktest.Op]int{zktest.OpDelete: 1})
		w := r.writes(r.Ctx, l)
		want("write", map[zktest.Op]int{zktest.OpCreate: 1, zktest.OpGetChildren2: 1}) // other readers may stand before the last one
		h = r.reads(w.Context(), l)
		want("read while writing", map[zktest.Op]int{zktest.OpMulti: 1})
		r.Check(h.Release(r.Ctx))
		want("release", map[zktest.Op]int{zktest.OpDelete: 1})
		h = r.downgrades(r.Ctx, w)
		want("downgrade", map[zktest.Op]int{zktest.OpMulti: 1, zktest.OpDelete: 1})
		r.Check(w.Close())
		want("release of what was downgraded", map[zktest.Op]int{})
		r.Check(h.Release(r.Ctx))
		r.rwEmpty()
	})
}

// Waiters watch one or two of the nodes ahead, and a release wakes only waiters that can
// go on, or look ahead.
func TestRWLockWatches(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const n = 5
		w := r.writes(r.Ctx, r.rw(r.Connect("a")))
		readers := make([]<-chan result, n)
		for i := range n {
			readers[i] = rwWaits(r.Ctx, r.rw(r.Connect(name(i))), false)
			r.rwWaiting(readers[i], "a reader")
		}
		c := r.Connect("w")
		writer := rwWaits(r.Ctx, r.rw(c), true)
		r.rwWaiting(writer, "a writer")
		r.rwWaiting(writer, "a writer")
		// Each watches its own node and one ahead, the last also the one before that.
		if got := r.Srv.WatchCount(); got != (1+n+1)+(n+1)+1 {
			r.Errorf("%d watches for %d waiters and a holder", got, n+1)
		}
		own := map[int64]string{}
		for _, node := range r.Srv.Children(dir) {
			n, _ := r.Srv.Node(dir + "/" + node)
			own[n.Stat.EphemeralOwner] = n.Path
		}
		for _, watch := range r.Srv.Watches() {
			if watch.Path == own[watch.Session] {
				continue
			}
			if readsW := strings.Contains(watch.Path, "__WRIT__"); watch.Client != "w" && !readsW || watch.Client == "w" && readsW {
				r.Errorf("%s watches %s", watch.Client, watch.Path)
			}
		}
		r.Srv.ResetCounts()
		r.Check(w.Release(r.Ctx))
		for _, reader := range readers {
			defer func() { r.Check(r.rwGranted(reader, "a reader").Release(r.Ctx)) }()
		}
		r.rwWaiting(writer, "a writer behind readers")
		if lists := r.Srv.Count(zktest.OpGetChildren2); lists != 0 {
			r.Errorf("%d lists for %d readers to go on", lists, n)
		}
	})
}

func TestRWLockTryAcquire(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b, c := r.rw(r.Connect("a")), r.rw(r.Connect("b")), r.rw(r.Connect("c"))
		busy := func(l *recipes.InterProcessReadWriteLock, write bool, path string, holder bool) {
			t.Helper()
			r.Srv.ResetCounts()
			h, err := rwTry(r.Ctx, l, write)
			var busy *recipes.BusyError
			if h != nil || !errors.As(err, &busy) || busy.Holder.Path != path || busy.Holder.Holder != holder {
				t.Errorf("TryAcquire = %v, %v, %+v; want %s in the way", h, err, busy, path)
			}
			testrig.WantErr(t, err, recipes.ErrBusy)
			if made := r.Srv.Count(zktest.OpCreate); made != 0 {
				t.Errorf("made %d nodes", made)
			}
		}
		reader, err := a.ReadLock().TryAcquire(r.Ctx)
		r.Check(err)
		busy(b, true, reader.Path(), true)
		second, err := b.ReadLock().TryAcquire(r.Ctx)
		r.Check(err)
		r.Check(second.Release(r.Ctx))
		waits := rwWaits(r.Ctx, c, true)
		r.rwWaiting(waits, "a writer")
		busy(b, true, reader.Path(), true)
		line := r.Srv.Children(dir)
		waiter := dir + "/" + line[slices.IndexFunc(line, func(n string) bool { return strings.Contains(n, "__WRIT__") })]
		busy(b, false, waiter, false) // it is the writer that is in the way, and it does not hold
		r.Check(reader.Release(r.Ctx))
		w := r.rwGranted(waits, "the writer")
		busy(b, false, waiter, true)
		busy(b, true, waiter, true)
		r.Check(w.Release(r.Ctx))
		w2, err := b.WriteLock().TryAcquire(r.Ctx)
		r.Check(err)
		read, err := b.ReadLock().TryAcquire(w2.Context())
		r.Check(err)
		r.Check(w2.Release(r.Ctx))
		busy(a, true, read.Path(), true)
		r.Check(read.Release(r.Ctx))
		r.rwEmpty()
	})
}

// TestInterProcessReadWriteLock.testGetParticipantNodes, and what Curator cannot
// tell: which contenders hold.
func TestRWLockQueue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const readers, writers = 20, 8
		l := r.rw(r.Connect("a"))
		var holds []*recipes.Hold
		for range readers {
			holds = append(holds, r.reads(r.Ctx, l))
		}
		var waits []<-chan result
		for range writers {
			waits = append(waits, rwWaits(r.Ctx, l, true))
		}
		time.Sleep(time.Second)
		all, err := l.Queue(r.Ctx)
		r.Check(err)
		onlyReaders, err := l.ReadLock().Queue(r.Ctx)
		r.Check(err)
		onlyWriters, err := l.WriteLock().Queue(r.Ctx)
		r.Check(err)
		if len(all) != readers+writers || len(onlyReaders) != readers || len(onlyWriters) != writers {
			t.Fatalf("%d in line, %d readers, %d writers", len(all), len(onlyReaders), len(onlyWriters))
		}
		for i, c := range all {
			if half := slices.Concat(onlyReaders, onlyWriters)[i]; half.Path != c.Path || half.Holder != c.Holder {
				t.Errorf("%d: %v in all, %v in its half", i, c, half)
			}
			if c.Holder != (i < readers) || strings.Contains(c.Path, "__READ__") != (i < readers) || c.Sequence != int64(i) {
				t.Errorf("%d: %+v", i, c)
			}
		}
		for _, h := range holds {
			r.Check(h.Release(r.Ctx))
		}
		rwMany(writers, func(i int) { r.Check((<-waits[i]).hold.Release(r.Ctx)) })
		r.rwEmpty()
	})
}

// A read node in the place of a write node holds beside it.
func TestRWLockQueueWhileDowngrading(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"))
		for range 20 { // the names decide the order of equal numbers
			w := r.writes(r.Ctx, l)
			h := r.reads(w.Context(), l)
			all, err := l.Queue(r.Ctx)
			r.Check(err)
			if len(all) != 2 || !all[0].Holder || !all[1].Holder || all[0].Sequence != all[1].Sequence {
				t.Fatalf("queue %v", all)
			}
			_, err = r.rw(r.Connect("b")).ReadLock().TryAcquire(r.Ctx)
			var busy *recipes.BusyError
			if !errors.As(err, &busy) || !busy.Holder.Holder || busy.Holder.Path != w.Path() {
				t.Errorf("in the way: %v", err)
			}
			r.Check(w.Release(r.Ctx))
			r.Check(h.Release(r.Ctx))
		}
	})
}

func TestNewInterProcessReadWriteLockInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for _, path := range []string{"/", "", "a", "/a/"} {
			if l, err := recipes.NewInterProcessReadWriteLock(c, path); l != nil || err == nil || !strings.HasPrefix(err.Error(), "recipes: ") {
				t.Errorf("%q: %v, %v", path, l, err)
			}
		}
		if l, err := recipes.NewInterProcessReadWriteLock(nil, dir); l != nil || err == nil {
			t.Errorf("without a client: %v, %v", l, err)
		}
		l := r.rw(c)
		if l.Path() != dir || l.ReadLock().Path() != dir || l.WriteLock().Path() != dir {
			t.Error("not the path")
		}
	})
}

// Foreign children are passed over, and kazoo's refused (TestForeign of the
// queue says it of all).
func TestRWLockForeignChildren(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"))
		for _, name := range []string{"0foreign", "x-__WRIT__", "x-__WRIT__12", "_c_1-lock-0000000000", "__READ__x"} {
			r.Check(r.Srv.Create(dir+"/"+name, nil))
		}
		h := r.reads(r.Ctx, l)
		r.Check(h.Release(r.Ctx))
		w := r.writes(r.Ctx, l)
		r.Check(r.downgrades(r.Ctx, w).Release(r.Ctx))
		r.Check(r.Srv.Create(dir+"/0123456789abcdef0123456789abcdef__rlock__0000000001", nil))
		for _, write := range []bool{false, true} {
			_, err := rwAcquire(r.Ctx, l, write)
			testrig.WantErr(t, err, recipes.ErrForeignLock)
		}
		with := r.rw(r.Connect("b"), recipes.WithKazoo())
		r.Check(r.reads(r.Ctx, with).Release(r.Ctx)) // readers do not block each other
		_, err := with.WriteLock().Acquire(r.Within(time.Second))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		if left := len(r.Srv.Children(dir)); left != 6 {
			t.Errorf("left behind: %v", r.Srv.Children(dir))
		}
	})
}

func TestRWLockNoAuth(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.Connect("a"), recipes.WithNodeACL(zk.ACL{Perms: zk.PermAll, Scheme: "ip", ID: "10.9.9.9"}))
		for _, write := range []bool{false, true} {
			_, err := rwAcquire(r.Ctx, l, write)
			testrig.WantErr(t, err, zk.ErrNoAuth)
		}
	})
}

// rwMany runs n workers and waits for them.
func rwMany(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
