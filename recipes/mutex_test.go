package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// One holder at a time: the race detector sees holders that touch the counter
// together.
func TestExclusion(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const clients, workers, rounds = 4, 6, 5
		counter, inside := 0, 0
		var token int64
		var wg sync.WaitGroup
		for i := range clients {
			m := r.mutex(r.connect(name(i)))
			for range workers {
				wg.Go(func() {
					for range rounds {
						h := r.held(m)
						if inside++; inside != 1 {
							r.Errorf("%d inside", inside)
						}
						if h.FencingToken() <= token {
							r.Errorf("token %d after %d", h.FencingToken(), token)
						}
						token = h.FencingToken()
						was := counter
						time.Sleep(3 * time.Millisecond)
						counter = was + 1
						inside--
						r.check(h.Release(r.ctx))
					}
				})
			}
		}
		wg.Wait()
		if counter != clients*workers*rounds {
			r.Errorf("counted %d", counter)
		}
		r.empty()
		wantNoGoroutine(r.T)
	})
}

// The first to ask is the first to hold, and one release wakes one waiter.
func TestFIFO(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const n = 15
		holder := r.held(r.mutex(r.connect("holder")))
		var order []int
		var wg sync.WaitGroup
		for i := range n {
			c := r.connect(name(i % 3))
			m := r.mutex(c)
			wg.Go(func() {
				h := r.held(m)
				order = append(order, i)
				r.check(h.Release(r.ctx))
			})
			time.Sleep(10 * time.Millisecond)
		}
		// All watch the node directly ahead, and all but the first waiter the one before
		// that. The holder and the first waiter watch their own, the others after a second.
		for _, own := range []int{2, n + 1} {
			if got := r.srv.WatchCount(); got != n+(n-1)+own {
				r.Errorf("%d watches for %d waiters and a holder", got, n)
			}
			time.Sleep(time.Second)
		}
		r.srv.ResetCounts()
		r.check(holder.Release(r.ctx))
		wg.Wait()
		for i, who := range order {
			if who != i {
				r.Fatalf("order %v", order)
			}
		}
		if events := r.srv.EventCount(); events > 3*n {
			r.Errorf("%d events for %d hand-overs", events, n)
		}
		r.empty()
	})
}

func TestTryAcquire(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		m := r.mutex(c)
		h, err := m.TryAcquire(r.ctx)
		r.check(err)
		r.srv.ResetCounts()
		start := time.Now()
		other := r.mutex(r.connect("b"))
		_, err = other.TryAcquire(r.ctx)
		var busy *recipes.BusyError
		if !errors.As(err, &busy) || busy.Holder.Path != h.Path() || !busy.Holder.Holder || busy.Holder.Session != r.session(c) ||
			busy.Holder.FencingToken != h.FencingToken() {
			r.Errorf("TryAcquire = %v, %+v", err, busy)
		}
		wantErr(r.T, err, recipes.ErrBusy)
		if text := fmt.Sprint(err); !strings.HasPrefix(text, "recipes: try to acquire "+dir+": not free: holder "+h.Path()) {
			r.Errorf("text %q", text)
		}
		if r.srv.Count(zktest.OpCreate) != 0 || time.Since(start) > 100*time.Millisecond {
			r.Errorf("made %d nodes in %v", r.srv.Count(zktest.OpCreate), time.Since(start))
		}
		// A context of a hold that is over is no hold, and makes no node either.
		mine, err := r.mutex(r.connect("c")).TryAcquire(r.ctx)
		wantErr(r.T, err, recipes.ErrBusy)
		if mine != nil {
			r.Error("two holders")
		}
		past := context.WithoutCancel(h.Context())
		r.check(h.Release(r.ctx))
		theirs := r.held(other)
		r.srv.ResetCounts()
		_, err = m.TryAcquire(past)
		wantErr(r.T, err, recipes.ErrBusy)
		if n := r.srv.Count(zktest.OpCreate); n != 0 {
			r.Errorf("with the context of a released hold %d nodes were made", n)
		}
		r.check(theirs.Release(r.ctx))
		r.empty()
	})
}

// Of many callers that try in the same moment at most one gets the lock, and no
// node stays.
func TestTryAcquireTogether(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for range 10 {
			var mu sync.Mutex
			var holds []*recipes.Hold
			var wg sync.WaitGroup
			for i := range 5 {
				m := r.mutex(r.connect(name(i)))
				wg.Go(func() {
					h, err := m.TryAcquire(r.ctx)
					if err != nil {
						wantErr(t, err, recipes.ErrBusy)
						return
					}
					mu.Lock()
					holds = append(holds, h)
					mu.Unlock()
				})
			}
			wg.Wait()
			if len(holds) > 1 {
				r.Errorf("%d holders", len(holds))
			}
			for _, h := range holds {
				r.check(h.Release(r.ctx))
			}
			r.empty()
		}
	})
}

// A caller that waits for itself, because it did not pass on the hold's context,
// is told so. A caller that waits for another holder is not.
func TestWaitingBehindOneself(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.mutex(r.connect("a")), r.mutex(r.connect("b"))
		h := r.held(a)
		for m, own := range map[*recipes.InterProcessMutex]bool{a: true, b: false} {
			_, err := m.Acquire(r.within(time.Second))
			wantErr(t, err, context.DeadlineExceeded)
			if got := strings.Contains(fmt.Sprint(err), "of this same client"); got != own {
				t.Errorf("own %v: %v", own, err)
			}
		}
		r.check(h.Release(r.ctx))
		r.empty()

		// The context of a released hold has ended; what it carries is no hold.
		_, err := a.Acquire(h.Context())
		wantErr(t, err, recipes.ErrReleased, context.Canceled)
		if text := fmt.Sprint(err); strings.Contains(text, "tries") || strings.Contains(text, "of this same client") {
			t.Errorf("text %q", text)
		}
		h, err = a.Acquire(context.WithoutCancel(h.Context()))
		r.check(err)
		r.check(h.Release(r.ctx))
	})
}

// A caller that waits when the client is closed is told that, and not how to
// re-enter.
func TestWaitingBehindOneselfAtTheEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		m := r.mutex(c)
		r.held(m)
		ended := make(chan error, 1)
		go func() { _, err := m.Acquire(r.ctx); ended <- err }()
		time.Sleep(time.Second)
		r.check(c.CloseContext(r.ctx))
		err := <-ended
		wantErr(t, err, client.ErrClosed)
		if text := fmt.Sprint(err); strings.Contains(text, "of this same client") || client.SafeToRetry(err) {
			t.Errorf("text %q, safe to retry %v", text, client.SafeToRetry(err))
		}
		_, err = m.Acquire(r.ctx)
		wantErr(t, err, client.ErrClosed)
		if client.SafeToRetry(err) || client.UnknownOutcome(err) {
			t.Errorf("%v", err)
		}
	})
}

func TestNewInterProcessMutexInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		if m, err := recipes.NewInterProcessMutex(nil, dir); m != nil || err == nil || !strings.Contains(err.Error(), "client.Connect") {
			r.Errorf("without a client: %v, %v", m, err)
		}
		c := r.connect("a", client.WithNamespace("ns"))
		for _, path := range []string{"/", "", "a", "/a/", "//", "/a/..", "/a\x00"} {
			m, err := recipes.NewInterProcessMutex(c, path)
			if m != nil || err == nil || !strings.HasPrefix(err.Error(), "recipes: ") {
				r.Errorf("%q: %v, %v", path, m, err)
			}
		}
		m, err := recipes.NewInterProcessMutex(c, "/a", nil)
		r.check(err)
		if m.Path() != "/a" {
			r.Errorf("Path = %q", m.Path())
		}
		h, err := m.Acquire(r.ctx)
		r.check(err)
		if _, there := r.srv.Node("/ns" + h.Path()); !there {
			r.Errorf("%s is not in the namespace", h.Path())
		}
		r.check(h.Release(r.ctx))
		if n, _ := r.srv.Node("/ns/a"); !n.Container {
			r.Error("the directory is no container")
		}
	})
}

func TestNodeDataAndACL(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a", client.WithDefaultData([]byte("default")))
		data := []byte("mine")
		acl := zk.ACL{Perms: zk.PermAll, Scheme: "ip", ID: "10.9.9.9"}
		m := r.mutex(c, recipes.WithNodeData(data))
		data[0] = 'x'
		h := r.held(m)
		if n, _ := r.srv.Node(h.Path()); string(n.Data) != "mine" || n.Stat.EphemeralOwner != r.session(c) {
			r.Errorf("node: %+v", n)
		}
		r.check(h.Release(r.ctx))
		h = r.held(r.mutex(c))
		if n, _ := r.srv.Node(h.Path()); string(n.Data) != "default" {
			r.Errorf("node: %+v", n)
		}
		r.check(h.Release(r.ctx))
		other, err := recipes.NewInterProcessMutex(c, "/others", recipes.WithNodeACL(acl))
		r.check(err)
		_, err = other.Acquire(r.ctx) // the directory is not ours to work in
		wantErr(r.T, err, zk.ErrNoAuth)
	})
}

func TestQueue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		m := r.mutex(c, recipes.WithNodeData([]byte("10.0.0.1")))
		if q, err := m.Queue(r.ctx); err != nil || len(q) != 0 {
			r.Errorf("of a free lock: %v, %v", q, err)
		}
		first := r.held(m)
		waits := acquire(r.ctx, r.mutex(r.connect("b"), recipes.WithNodeData([]byte{0, 1, 2})))
		time.Sleep(time.Second)
		r.check(r.srv.Create(dir+"/foreign", nil))
		r.check(r.srv.Create(dir+"/lock-xyz", nil))
		q, err := m.Queue(r.ctx)
		r.check(err)
		if len(q) != 2 || !q[0].Holder || q[1].Holder || q[0].Path != first.Path() || q[0].Sequence != 0 || q[1].Sequence != 1 ||
			q[0].Session != r.session(c) || q[0].FencingToken != first.FencingToken() || string(q[0].Data) != "10.0.0.1" ||
			q[0].QueuedSince.IsZero() || time.Since(q[0].QueuedSince) > 2*time.Second {
			r.Fatalf("Queue = %+v", q)
		}
		if s := q[0].String(); !strings.HasPrefix(s, "holder "+first.Path()+", session 0x") || !strings.HasSuffix(s, ", 10.0.0.1") {
			r.Errorf("String = %q", s)
		}
		if s := q[1].String(); !strings.HasPrefix(s, "waiter ") || strings.ContainsRune(s, 0) {
			r.Errorf("String = %q", s)
		}
		r.check(first.Release(r.ctx))
		res := <-waits
		r.check(res.err)
		r.check(res.hold.Release(r.ctx))
	})
}
