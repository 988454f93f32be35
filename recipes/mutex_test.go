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
	"github.com/docent-go/docent/internal/testrig"
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
			m := r.mutex(r.Connect(name(i)))
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
						r.Check(h.Release(r.Ctx))
					}
				})
			}
		}
		wg.Wait()
		if counter != clients*workers*rounds {
			r.Errorf("counted %d", counter)
		}
		r.empty()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// The first to ask is the first to hold, and one release wakes one waiter.
func TestFIFO(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const n = 15
		holder := r.held(r.mutex(r.Connect("holder")))
		var order []int
		var wg sync.WaitGroup
		for i := range n {
			c := r.Connect(name(i % 3))
			m := r.mutex(c)
			wg.Go(func() {
				h := r.held(m)
				order = append(order, i)
				r.Check(h.Release(r.Ctx))
			})
			time.Sleep(10 * time.Millisecond)
		}
		// All watch the node directly ahead, and all but the first waiter the one before
		// that. The holder and the first waiter watch their own, the others after a second.
		for _, own := range []int{2, n + 1} {
			if got := r.Srv.WatchCount(); got != n+(n-1)+own {
				r.Errorf("%d watches for %d waiters and a holder", got, n)
			}
			time.Sleep(time.Second)
		}
		r.Srv.ResetCounts()
		r.Check(holder.Release(r.Ctx))
		wg.Wait()
		for i, who := range order {
			if who != i {
				r.Fatalf("order %v", order)
			}
		}
		if events := r.Srv.EventCount(); events > 3*n {
			r.Errorf("%d events for %d hand-overs", events, n)
		}
		r.empty()
	})
}

func TestTryAcquire(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.mutex(c)
		h, err := m.TryAcquire(r.Ctx)
		r.Check(err)
		r.Srv.ResetCounts()
		start := time.Now()
		other := r.mutex(r.Connect("b"))
		_, err = other.TryAcquire(r.Ctx)
		var busy *recipes.BusyError
		if !errors.As(err, &busy) || busy.Holder.Path != h.Path() || !busy.Holder.Holder || busy.Holder.Session != r.SessionID(c) ||
			busy.Holder.FencingToken != h.FencingToken() {
			r.Errorf("TryAcquire = %v, %+v", err, busy)
		}
		testrig.WantErr(r.T, err, recipes.ErrBusy)
		if text := fmt.Sprint(err); !strings.HasPrefix(text, "recipes: try to acquire "+dir+": not free: holder "+h.Path()) {
			r.Errorf("text %q", text)
		}
		if r.Srv.Count(zktest.OpCreate) != 0 || time.Since(start) > 100*time.Millisecond {
			r.Errorf("made %d nodes in %v", r.Srv.Count(zktest.OpCreate), time.Since(start))
		}
		// A context of a hold that is over is no hold, and makes no node either.
		mine, err := r.mutex(r.Connect("c")).TryAcquire(r.Ctx)
		testrig.WantErr(r.T, err, recipes.ErrBusy)
		if mine != nil {
			r.Error("two holders")
		}
		past := context.WithoutCancel(h.Context())
		r.Check(h.Release(r.Ctx))
		theirs := r.held(other)
		r.Srv.ResetCounts()
		_, err = m.TryAcquire(past)
		testrig.WantErr(r.T, err, recipes.ErrBusy)
		if n := r.Srv.Count(zktest.OpCreate); n != 0 {
			r.Errorf("with the context of a released hold %d nodes were made", n)
		}
		r.Check(theirs.Release(r.Ctx))
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
				m := r.mutex(r.Connect(name(i)))
				wg.Go(func() {
					h, err := m.TryAcquire(r.Ctx)
					if err != nil {
						testrig.WantErr(t, err, recipes.ErrBusy)
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
				r.Check(h.Release(r.Ctx))
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
		a, b := r.mutex(r.Connect("a")), r.mutex(r.Connect("b"))
		h := r.held(a)
		for m, own := range map[*recipes.InterProcessMutex]bool{a: true, b: false} {
			_, err := m.Acquire(r.Within(time.Second))
			testrig.WantErr(t, err, context.DeadlineExceeded)
			if got := strings.Contains(fmt.Sprint(err), "of this same client"); got != own {
				t.Errorf("own %v: %v", own, err)
			}
		}
		r.Check(h.Release(r.Ctx))
		r.empty()

		// The context of a released hold has ended; what it carries is no hold.
		_, err := a.Acquire(h.Context())
		testrig.WantErr(t, err, recipes.ErrReleased, context.Canceled)
		if text := fmt.Sprint(err); strings.Contains(text, "tries") || strings.Contains(text, "of this same client") {
			t.Errorf("text %q", text)
		}
		h, err = a.Acquire(context.WithoutCancel(h.Context()))
		r.Check(err)
		r.Check(h.Release(r.Ctx))
	})
}

// A caller that waits when the client is closed is told that, and not how to
// re-enter.
func TestWaitingBehindOneselfAtTheEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.mutex(c)
		r.held(m)
		ended := make(chan error, 1)
		go func() { _, err := m.Acquire(r.Ctx); ended <- err }()
		time.Sleep(time.Second)
		r.Check(c.CloseContext(r.Ctx))
		err := <-ended
		testrig.WantErr(t, err, client.ErrClosed)
		if text := fmt.Sprint(err); strings.Contains(text, "of this same client") || client.SafeToRetry(err) {
			t.Errorf("text %q, safe to retry %v", text, client.SafeToRetry(err))
		}
		_, err = m.Acquire(r.Ctx)
		testrig.WantErr(t, err, client.ErrClosed)
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
		c := r.Connect("a", client.WithNamespace("ns"))
		for _, path := range []string{"/", "", "a", "/a/", "//", "/a/..", "/a\x00"} {
			m, err := recipes.NewInterProcessMutex(c, path)
			if m != nil || err == nil || !strings.HasPrefix(err.Error(), "recipes: ") {
				r.Errorf("%q: %v, %v", path, m, err)
			}
		}
		m, err := recipes.NewInterProcessMutex(c, "/a", nil)
		r.Check(err)
		if m.Path() != "/a" {
			r.Errorf("Path = %q", m.Path())
		}
		h, err := m.Acquire(r.Ctx)
		r.Check(err)
		if _, there := r.Srv.Node("/ns" + h.Path()); !there {
			r.Errorf("%s is not in the namespace", h.Path())
		}
		r.Check(h.Release(r.Ctx))
		if n, _ := r.Srv.Node("/ns/a"); !n.Container {
			r.Error("the directory is no container")
		}
	})
}

func TestNodeDataAndACL(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithDefaultData([]byte("default")))
		data := []byte("mine")
		acl := zk.ACL{Perms: zk.PermAll, Scheme: "ip", ID: "10.9.9.9"}
		m := r.mutex(c, recipes.WithNodeData(data))
		data[0] = 'x'
		h := r.held(m)
		if n, _ := r.Srv.Node(h.Path()); string(n.Data) != "mine" || n.Stat.EphemeralOwner != r.SessionID(c) {
			r.Errorf("node: %+v", n)
		}
		r.Check(h.Release(r.Ctx))
		h = r.held(r.mutex(c))
		if n, _ := r.Srv.Node(h.Path()); string(n.Data) != "default" {
			r.Errorf("node: %+v", n)
		}
		r.Check(h.Release(r.Ctx))
		other, err := recipes.NewInterProcessMutex(c, "/others", recipes.WithNodeACL(acl))
		r.Check(err)
		_, err = other.Acquire(r.Ctx) // the directory is not ours to work in
		testrig.WantErr(r.T, err, zk.ErrNoAuth)
	})
}

func TestQueue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.mutex(c, recipes.WithNodeData([]byte("10.0.0.1")))
		if q, err := m.Queue(r.Ctx); err != nil || len(q) != 0 {
			r.Errorf("of a free lock: %v, %v", q, err)
		}
		first := r.held(m)
		waits := acquire(r.Ctx, r.mutex(r.Connect("b"), recipes.WithNodeData([]byte{0, 1, 2})))
		time.Sleep(time.Second)
		r.Check(r.Srv.Create(dir+"/foreign", nil))
		r.Check(r.Srv.Create(dir+"/lock-xyz", nil))
		q, err := m.Queue(r.Ctx)
		r.Check(err)
		if len(q) != 2 || !q[0].Holder || q[1].Holder || q[0].Path != first.Path() || q[0].Sequence != 0 || q[1].Sequence != 1 ||
			q[0].Session != r.SessionID(c) || q[0].FencingToken != first.FencingToken() || string(q[0].Data) != "10.0.0.1" ||
			q[0].QueuedSince.IsZero() || time.Since(q[0].QueuedSince) > 2*time.Second {
			r.Fatalf("Queue = %+v", q)
		}
		if s := q[0].String(); !strings.HasPrefix(s, "holder "+first.Path()+", session 0x") || !strings.HasSuffix(s, ", 10.0.0.1") {
			r.Errorf("String = %q", s)
		}
		if s := q[1].String(); !strings.HasPrefix(s, "waiter ") || strings.ContainsRune(s, 0) {
			r.Errorf("String = %q", s)
		}
		r.Check(first.Release(r.Ctx))
		res := <-waits
		r.Check(res.err)
		r.Check(res.hold.Release(r.Ctx))
	})
}
