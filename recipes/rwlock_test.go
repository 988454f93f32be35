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
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

func (r *rig) rw(c *client.Client, opts ...recipes.LockOption) *recipes.InterProcessReadWriteLock {
	r.Helper()
	l, err := recipes.NewInterProcessReadWriteLock(c, dir, opts...)
	r.check(err)
	return l
}

func (r *rig) reads(ctx context.Context, l *recipes.InterProcessReadWriteLock) *recipes.Hold {
	r.Helper()
	h, err := l.ReadLock().Acquire(ctx)
	r.check(err)
	return h
}

func (r *rig) writes(ctx context.Context, l *recipes.InterProcessReadWriteLock) *recipes.WriteHold {
	r.Helper()
	h, err := l.WriteLock().Acquire(ctx)
	r.check(err)
	return h
}

func (r *rig) downgrades(ctx context.Context, w *recipes.WriteHold) *recipes.Hold {
	r.Helper()
	h, err := w.Downgrade(ctx)
	r.check(err)
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
		r.check(res.err)
		return res.hold
	case <-time.After(2 * sessionTimeout):
		r.Fatalf("%s still waits", what)
		return nil
	}
}

var rwNode = regexp.MustCompile(`^_c_[0-9a-f-]{36}-(__READ__|__WRIT__)\d{10}$`)

// rwLine is the contenders in the queue, in order: tag and number.
func (r *rig) rwLine() (in []string) {
	r.Helper()
	for _, name := range r.srv.Children(dir) {
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
	if left := r.srv.Children(dir); len(left) != 0 {
		r.Errorf("left behind: %v", left)
	}
	if left := r.srv.Watches(); len(left) != 0 {
		r.Errorf("watches: %v", left)
	}
	wantNoGoroutine(r.T)
}

// Readers share, a writer is alone, and the first to ask is first. A writer that
// waits lets no later reader pass (TestInterProcessReadWriteLock does not look at
// that).
func TestRWLockOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		first := r.reads(r.ctx, r.rw(r.connect("a")))
		second := r.reads(r.ctx, r.rw(r.connect("b")))
		writer := rwWaits(r.ctx, r.rw(r.connect("c")), true)
		r.rwWaiting(writer, "a writer behind readers")
		third := rwWaits(r.ctx, r.rw(r.connect("d")), false)
		r.rwWaiting(third, "a reader behind a waiting writer")
		fourth := rwWaits(r.ctx, r.rw(r.connect("e")), false)
		r.rwWaiting(fourth, "a reader behind a waiting writer and a reader")
		last := rwWaits(r.ctx, r.rw(r.connect("f")), true)
		r.rwWaiting(last, "a second writer")
		r.rwWantLine("__READ__0000000000", "__READ__0000000001", "__WRIT__0000000002", "__READ__0000000003", "__READ__0000000004", "__WRIT__0000000005")

		r.check(second.Release(r.ctx))
		r.rwWaiting(writer, "a writer behind one reader")
		r.check(first.Release(r.ctx))
		w := r.rwGranted(writer, "the writer")
		r.rwWaiting(third, "a reader behind a writer")
		r.check(w.Release(r.ctx))
		h3, h4 := r.rwGranted(third, "a reader"), r.rwGranted(fourth, "another reader")
		r.rwWaiting(last, "a writer behind readers")
		r.check(h3.Release(r.ctx))
		r.check(h4.Release(r.ctx))
		r.check(r.rwGranted(last, "the last writer").Release(r.ctx))
		r.rwEmpty()
	})
}

// When a waiting writer gives up, the readers behind it share again.
func TestRWLockWriterGivesUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.reads(r.ctx, r.rw(r.connect("a")))
		ctx, cancel := context.WithCancel(r.ctx)
		writer := rwWaits(ctx, r.rw(r.connect("b")), true)
		r.rwWaiting(writer, "a writer")
		reader := rwWaits(r.ctx, r.rw(r.connect("c")), false)
		r.rwWaiting(reader, "a reader")
		cancel()
		wantErr(t, (<-writer).err, context.Canceled)
		r.check(r.rwGranted(reader, "the reader").Release(r.ctx))
		r.check(h.Release(r.ctx))
		r.rwEmpty()
	})
}

// What an uncontended lock costs: one round trip, and one to release. An acquire soon
// after another in the same directory sets a watch there, once.
func TestRWLockRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.connect("a"))
		r.check(r.reads(r.ctx, l).Release(r.ctx)) // makes the directory
		want := func(what string, want map[zktest.Op]int) {
			t.Helper()
			got := r.srv.Counts()
			delete(got, zktest.OpPing)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: requests %v, want %v", what, got, want)
			}
			r.srv.ResetCounts()
		}
		r.srv.ResetCounts()
		h := r.reads(r.ctx, l)
		want("read", map[zktest.Op]int{zktest.OpCreate: 1, zktest.OpGetChildren2: 1, zktest.OpGetData: 1})
		r.check(h.Release(r.ctx))
		want("release", map[zktest.Op]int{zktest.OpDelete: 1})
		h = r.reads(r.ctx, l)
		want("read", map[zktest.Op]int{zktest.OpCreate: 1, zktest.OpGetChildren2: 1})
		again := r.reads(h.Context(), l)
		want("read again", map[zktest.Op]int{})
		r.check(again.Release(r.ctx))
		r.check(h.Release(r.ctx))
		want("release", map[zktest.Op]int{zktest.OpDelete: 1})
		w := r.writes(r.ctx, l)
		want("write", map[zktest.Op]int{zktest.OpCreate: 1, zktest.OpGetChildren2: 1}) // other readers may stand before the last one
		h = r.reads(w.Context(), l)
		want("read while writing", map[zktest.Op]int{zktest.OpMulti: 1})
		r.check(h.Release(r.ctx))
		want("release", map[zktest.Op]int{zktest.OpDelete: 1})
		h = r.downgrades(r.ctx, w)
		want("downgrade", map[zktest.Op]int{zktest.OpMulti: 1, zktest.OpDelete: 1})
		r.check(w.Close())
		want("release of what was downgraded", map[zktest.Op]int{})
		r.check(h.Release(r.ctx))
		r.rwEmpty()
	})
}

// Waiters watch one or two of the nodes ahead, and a release wakes only waiters that can
// go on, or look ahead.
func TestRWLockWatches(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const n = 5
		w := r.writes(r.ctx, r.rw(r.connect("a")))
		readers := make([]<-chan result, n)
		for i := range n {
			readers[i] = rwWaits(r.ctx, r.rw(r.connect(name(i))), false)
			r.rwWaiting(readers[i], "a reader")
		}
		c := r.connect("w")
		writer := rwWaits(r.ctx, r.rw(c), true)
		r.rwWaiting(writer, "a writer")
		r.rwWaiting(writer, "a writer")
		// Each watches its own node and one ahead, the last also the one before that.
		if got := r.srv.WatchCount(); got != (1+n+1)+(n+1)+1 {
			r.Errorf("%d watches for %d waiters and a holder", got, n+1)
		}
		own := map[int64]string{}
		for _, node := range r.srv.Children(dir) {
			n, _ := r.srv.Node(dir + "/" + node)
			own[n.Stat.EphemeralOwner] = n.Path
		}
		for _, watch := range r.srv.Watches() {
			if watch.Path == own[watch.Session] {
				continue
			}
			if readsW := strings.Contains(watch.Path, "__WRIT__"); watch.Client != "w" && !readsW || watch.Client == "w" && readsW {
				r.Errorf("%s watches %s", watch.Client, watch.Path)
			}
		}
		r.srv.ResetCounts()
		r.check(w.Release(r.ctx))
		for _, reader := range readers {
			defer func() { r.check(r.rwGranted(reader, "a reader").Release(r.ctx)) }()
		}
		r.rwWaiting(writer, "a writer behind readers")
		if lists := r.srv.Count(zktest.OpGetChildren2); lists != 0 {
			r.Errorf("%d lists for %d readers to go on", lists, n)
		}
	})
}

func TestRWLockTryAcquire(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b, c := r.rw(r.connect("a")), r.rw(r.connect("b")), r.rw(r.connect("c"))
		busy := func(l *recipes.InterProcessReadWriteLock, write bool, path string, holder bool) {
			t.Helper()
			r.srv.ResetCounts()
			h, err := rwTry(r.ctx, l, write)
			var busy *recipes.BusyError
			if h != nil || !errors.As(err, &busy) || busy.Holder.Path != path || busy.Holder.Holder != holder {
				t.Errorf("TryAcquire = %v, %v, %+v; want %s in the way", h, err, busy, path)
			}
			wantErr(t, err, recipes.ErrBusy)
			if made := r.srv.Count(zktest.OpCreate); made != 0 {
				t.Errorf("made %d nodes", made)
			}
		}
		reader, err := a.ReadLock().TryAcquire(r.ctx)
		r.check(err)
		busy(b, true, reader.Path(), true)
		second, err := b.ReadLock().TryAcquire(r.ctx)
		r.check(err)
		r.check(second.Release(r.ctx))
		waits := rwWaits(r.ctx, c, true)
		r.rwWaiting(waits, "a writer")
		busy(b, true, reader.Path(), true)
		line := r.srv.Children(dir)
		waiter := dir + "/" + line[slices.IndexFunc(line, func(n string) bool { return strings.Contains(n, "__WRIT__") })]
		busy(b, false, waiter, false) // it is the writer that is in the way, and it does not hold
		r.check(reader.Release(r.ctx))
		w := r.rwGranted(waits, "the writer")
		busy(b, false, waiter, true)
		busy(b, true, waiter, true)
		r.check(w.Release(r.ctx))
		w2, err := b.WriteLock().TryAcquire(r.ctx)
		r.check(err)
		read, err := b.ReadLock().TryAcquire(w2.Context())
		r.check(err)
		r.check(w2.Release(r.ctx))
		busy(a, true, read.Path(), true)
		r.check(read.Release(r.ctx))
		r.rwEmpty()
	})
}

// TestInterProcessReadWriteLock.testGetParticipantNodes, and what Curator cannot
// tell: which contenders hold.
func TestRWLockQueue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const readers, writers = 20, 8
		l := r.rw(r.connect("a"))
		var holds []*recipes.Hold
		for range readers {
			holds = append(holds, r.reads(r.ctx, l))
		}
		var waits []<-chan result
		for range writers {
			waits = append(waits, rwWaits(r.ctx, l, true))
		}
		time.Sleep(time.Second)
		all, err := l.Queue(r.ctx)
		r.check(err)
		onlyReaders, err := l.ReadLock().Queue(r.ctx)
		r.check(err)
		onlyWriters, err := l.WriteLock().Queue(r.ctx)
		r.check(err)
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
			r.check(h.Release(r.ctx))
		}
		rwMany(writers, func(i int) { r.check((<-waits[i]).hold.Release(r.ctx)) })
		r.rwEmpty()
	})
}

// A read node in the place of a write node holds beside it.
func TestRWLockQueueWhileDowngrading(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.connect("a"))
		for range 20 { // the names decide the order of equal numbers
			w := r.writes(r.ctx, l)
			h := r.reads(w.Context(), l)
			all, err := l.Queue(r.ctx)
			r.check(err)
			if len(all) != 2 || !all[0].Holder || !all[1].Holder || all[0].Sequence != all[1].Sequence {
				t.Fatalf("queue %v", all)
			}
			_, err = r.rw(r.connect("b")).ReadLock().TryAcquire(r.ctx)
			var busy *recipes.BusyError
			if !errors.As(err, &busy) || !busy.Holder.Holder || busy.Holder.Path != w.Path() {
				t.Errorf("in the way: %v", err)
			}
			r.check(w.Release(r.ctx))
			r.check(h.Release(r.ctx))
		}
	})
}

func TestNewInterProcessReadWriteLockInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
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
		l := r.rw(r.connect("a"))
		for _, name := range []string{"0foreign", "x-__WRIT__", "x-__WRIT__12", "_c_1-lock-0000000000", "__READ__x"} {
			r.check(r.srv.Create(dir+"/"+name, nil))
		}
		h := r.reads(r.ctx, l)
		r.check(h.Release(r.ctx))
		w := r.writes(r.ctx, l)
		r.check(r.downgrades(r.ctx, w).Release(r.ctx))
		r.check(r.srv.Create(dir+"/0123456789abcdef0123456789abcdef__rlock__0000000001", nil))
		for _, write := range []bool{false, true} {
			_, err := rwAcquire(r.ctx, l, write)
			wantErr(t, err, recipes.ErrForeignLock)
		}
		with := r.rw(r.connect("b"), recipes.WithKazoo())
		r.check(r.reads(r.ctx, with).Release(r.ctx)) // readers do not block each other
		_, err := with.WriteLock().Acquire(r.within(time.Second))
		wantErr(t, err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		if left := len(r.srv.Children(dir)); left != 6 {
			t.Errorf("left behind: %v", r.srv.Children(dir))
		}
	})
}

func TestRWLockNoAuth(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l := r.rw(r.connect("a"), recipes.WithNodeACL(zk.ACL{Perms: zk.PermAll, Scheme: "ip", ID: "10.9.9.9"}))
		for _, write := range []bool{false, true} {
			_, err := rwAcquire(r.ctx, l, write)
			wantErr(t, err, zk.ErrNoAuth)
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
