package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// Curator's Revoker replaces the owner's data by exactly these bytes, and so does
// RequestRelease. The holder writes its data again, so that an operator still
// finds the holder.
func TestRevocationKeepsTheOwner(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		owner := recipes.Owner{Host: "10.0.0.7", PID: 12, Client: "billing"}
		data := recipes.WithNodeData([]byte("10.0.0.7 pid=12 client=billing"))
		m := r.mutex(r.Connect("a"), data)
		operator := r.mutex(r.Connect("operator"))
		s := r.semaphore(r.Connect("c"), 3, data)
		pool := r.semaphore(r.Connect("d"), 3)
		lease, err := s.Acquire(r.Ctx, 2)
		r.Check(err)
		defer func() { r.Check(lease.Release(r.Ctx)) }()
		for name, kind := range map[string]struct {
			queue func(context.Context) ([]recipes.Contender, error)
			ask   func(context.Context, recipes.Contender) error
		}{"mutex": {operator.Queue, operator.RequestRelease}, "semaphore": {pool.Queue, pool.RequestRelease}} {
			h := r.held(m)
			for round := range 3 {
				before := r.queue(func() ([]recipes.Contender, error) { return kind.queue(r.Ctx) })[0]
				wrote := r.Srv.BeforeReply(zktest.Match{Client: "operator", Op: zktest.OpSetData}, func(context.Context, zktest.Request) {
					if n, ok := r.Srv.Node(before.Path); name == "mutex" && (!ok || string(n.Data) != "__REVOKE__") {
						t.Errorf("wrote %q", n.Data)
					}
				})
				if before.ReleaseRequested() != (round > 0) || before.Owner != owner {
					t.Fatalf("%s, round %d: %+v", name, round, before)
				}
				r.Check(kind.ask(r.Ctx, before))
				wrote.Remove()
				time.Sleep(time.Second)
				got := r.queue(func() ([]recipes.Contender, error) { return kind.queue(r.Ctx) })[0]
				if got.Owner != owner || !got.ReleaseRequested() || string(got.Data) != "10.0.0.7 pid=12 client=billing" ||
					!strings.HasSuffix(got.String(), ", 10.0.0.7 pid=12 client=billing, asked to release") {
					t.Errorf("%s: %v of %+v", name, got, got.Owner)
				}
			}
			r.Check(h.Release(r.Ctx))
		}
		if said, err := lease.Data(r.Ctx); err != nil || string(said) != "10.0.0.7 pid=12 client=billing" {
			t.Errorf("the lease says %q, %v", said, err)
		}

		// A waiter does not look at its node. Its data is back once it holds.
		h := r.held(operator)
		waits := acquire(r.Ctx, m)
		time.Sleep(time.Second)
		q := r.queue(func() ([]recipes.Contender, error) { return operator.Queue(r.Ctx) })
		r.Check(operator.RequestRelease(r.Ctx, q[1]))
		time.Sleep(time.Second)
		if q = r.queue(func() ([]recipes.Contender, error) { return operator.Queue(r.Ctx) }); !q[1].ReleaseRequested() || q[1].Owner != (recipes.Owner{}) {
			t.Errorf("a waiter that was asked: %+v", q[1])
		}
		r.Check(h.Release(r.Ctx))
		res := <-waits
		r.Check(res.err)
		time.Sleep(time.Second)
		if q = r.queue(func() ([]recipes.Contender, error) { return operator.Queue(r.Ctx) }); !q[0].ReleaseRequested() || q[0].Owner != owner || !asked(res.hold) {
			t.Errorf("asked while it waited: %+v", q[0])
		}
		r.Check(res.hold.Release(r.Ctx))
		r.empty()
	})
}

// A holder that may not write its node still hears, and holds.
func TestRevocationMayNotAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		acl := append(zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete), zk.DigestACL(zk.PermAll, "u", "p")...)
		h := r.held(r.mutex(r.Connect("a"), recipes.WithNodeACL(acl...)))
		operator := r.mutex(r.Connect("operator", client.WithAuth("digest", "u:p")))
		for range 2 {
			r.Check(operator.RequestRelease(r.Ctx, r.queue(func() ([]recipes.Contender, error) { return operator.Queue(r.Ctx) })[0]))
			if !asked(h) {
				t.Error("not told")
			}
		}
		if n, ok := r.Srv.Node(h.Path()); !ok || string(n.Data) != "__REVOKE__" {
			t.Errorf("it says %q", n.Data)
		}
		r.Check(r.Srv.Delete(h.Path()))
		<-h.Context().Done()
		testrig.WantErr(t, h.Release(r.Ctx), recipes.ErrNodeDeleted)
	})
}

// A contender is asked by its own lock only.
func TestRequestReleaseOfAnotherLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		spaced, err := c.Namespace("space")
		r.Check(err)
		m, other := r.mutex(c), r.mutex(spaced) // the same path, in two namespaces
		s := r.semaphore(c, 2)
		rw := r.rw(c)
		h, o := r.held(m), r.held(other)
		list := func(m *recipes.InterProcessMutex) recipes.Contender {
			return r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.Ctx) })[0]
		}
		for name, err := range map[string]error{
			"of another namespace": m.RequestRelease(r.Ctx, list(other)),
			"of the root":          other.RequestRelease(r.Ctx, list(m)),
			"of a mutex":           s.RequestRelease(r.Ctx, list(m)),
			"of none":              m.RequestRelease(r.Ctx, recipes.Contender{}),
			"of the directory":     m.RequestRelease(r.Ctx, recipes.Contender{Path: dir}),
			"below":                m.RequestRelease(r.Ctx, recipes.Contender{Path: h.Path() + "/x"}),
			"of a neighbour":       m.RequestRelease(r.Ctx, recipes.Contender{Path: dir + "2/x-lock-0000000000"}),
		} {
			var lockErr *recipes.LockError
			if !errors.Is(err, recipes.ErrOtherLock) || !errors.As(err, &lockErr) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if asked(h) || asked(o) {
			t.Error("one was asked all the same")
		}
		// A path in the lock's namespace will do, as from a configuration or a log.
		r.Check(other.RequestRelease(r.Ctx, recipes.Contender{Path: o.Path()}))
		r.Check(r.mutex(r.Connect("b")).RequestRelease(r.Ctx, list(m))) // what another client has listed, too
		if !asked(h) || !asked(o) {
			t.Error("not asked")
		}
		r.Check(h.Release(r.Ctx))
		r.Check(o.Release(r.Ctx))

		w, err := rw.WriteLock().Acquire(r.Ctx)
		r.Check(err)
		q := r.queue(func() ([]recipes.Contender, error) { return rw.Queue(r.Ctx) })
		for _, ask := range []func(context.Context, recipes.Contender) error{rw.RequestRelease, rw.ReadLock().RequestRelease, rw.WriteLock().RequestRelease} {
			r.Check(ask(r.Ctx, q[0]))
		}
		if !asked(w.Hold) {
			t.Error("the writer is not asked")
		}
		r.Check(w.Release(r.Ctx))
		alone, err := recipes.NewInterProcessSemaphoreMutex(c, "/alone")
		r.Check(err)
		l, err := alone.Acquire(r.Ctx)
		r.Check(err)
		r.Check(alone.RequestRelease(r.Ctx, r.queue(func() ([]recipes.Contender, error) { return alone.Queue(r.Ctx) })[0]))
		if !asked(l) {
			t.Error("the holder of a semaphore mutex is not asked")
		}
		r.Check(l.Release(r.Ctx))
	})
}

// HeldSince is when it began to hold, or nothing: never when it began to wait.
func TestHeldSince(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m, other := r.mutex(r.Connect("a")), r.mutex(r.Connect("b"))
		list := func() []recipes.Contender {
			return r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.Ctx) })
		}
		about := func(at time.Time, ago time.Duration) bool { return (time.Since(at) - ago).Abs() < 2*time.Second }

		h := r.held(m) // of number 0: no holder was there before
		waits := acquire(r.Ctx, other)
		time.Sleep(time.Hour / 2)
		if q := list(); len(q) != 2 || q[0].HeldSince != q[0].QueuedSince || !about(q[0].HeldSince, time.Hour/2) || !q[1].HeldSince.IsZero() || !about(q[1].QueuedSince, time.Hour/2) {
			t.Errorf("%+v", q)
		} else if s := q[0].String(); !strings.Contains(s, ", queued since ") || !strings.Contains(s, ", holds since ") {
			t.Errorf("String = %q", s)
		}
		r.Check(h.Release(r.Ctx))
		res := <-waits
		r.Check(res.err)
		if q := list(); len(q) != 1 || !q[0].Holder || !q[0].HeldSince.IsZero() || !about(q[0].QueuedSince, time.Hour/2) ||
			q[0].Held != (recipes.Since{Earliest: q[0].QueuedSince}) {
			t.Errorf("it waited for half an hour: %+v", q)
		} else if strings.Contains(q[0].String(), "holds since") {
			t.Errorf("String = %q", q[0])
		}
		r.Check(res.hold.Release(r.Ctx))

		h = r.held(m) // alone, of a higher number
		time.Sleep(time.Minute)
		if q := list(); len(q) != 1 || q[0].HeldSince != q[0].QueuedSince || !about(q[0].HeldSince, time.Minute) {
			t.Errorf("it came alone: %+v", q)
		}
		waits = acquire(r.Ctx, other)
		time.Sleep(time.Minute)
		if q := list(); len(q) != 2 || !q[0].HeldSince.IsZero() || q[0].Held != (recipes.Since{Earliest: q[0].QueuedSince, Latest: q[1].QueuedSince}) {
			t.Errorf("it held before the other came: %+v", q)
		} else if s := q[0].String(); !strings.HasSuffix(s, " or longer, exclusive by Docent") || q[1].Held != (recipes.Since{}) {
			t.Errorf("%q, %+v", s, q[1].Held)
		}
		r.Check(h.Release(r.Ctx))
		res = <-waits
		r.Check(res.err)
		r.Check(res.hold.Release(r.Ctx))

		s := r.semaphore(r.Connect("c"), 1)
		first, err := s.Acquire(r.Ctx, 1)
		r.Check(err)
		second := make(chan *recipes.Lease, 1)
		go func() {
			l, err := s.Acquire(r.Ctx, 1)
			if err != nil {
				t.Error(err)
			}
			second <- l
		}()
		time.Sleep(time.Minute)
		r.Check(first.Release(r.Ctx))
		l := <-second
		time.Sleep(time.Second)
		q := r.queue(func() ([]recipes.Contender, error) { return s.Queue(r.Ctx) })
		if len(q) != 1 || !about(q[0].HeldSince, time.Second) || !q[0].QueuedSince.IsZero() || q[0].Age(time.Now()) > 5*time.Second {
			t.Errorf("a lease is made when it is granted: %+v", q)
		}
		r.Check(l.Release(r.Ctx))
	})
}

// The truth lies within the bounds of Held, whatever comes and goes. Each kind of bound comes.
func TestHeldIsBounded(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const off = 20 * time.Millisecond // of a way to the server and back, with the rounding of its times
		var mu sync.Mutex
		granted := map[string]time.Time{}
		ctx, stop := context.WithCancel(r.Ctx)
		var wg sync.WaitGroup
		for i := range 5 {
			l := r.rw(r.Connect(fmt.Sprint("c", i)))
			next := rand.New(rand.NewPCG(1, uint64(i)))
			pause := func(most time.Duration) time.Duration { return time.Duration(next.Int64N(int64(most))) }
			wg.Go(func() {
				for ctx.Err() == nil {
					acquire := func(ctx context.Context) (*recipes.Hold, error) {
						h, err := l.WriteLock().Acquire(ctx)
						if err != nil {
							return nil, err
						}
						return h.Hold, nil
					}
					if next.IntN(3) == 0 {
						acquire = l.ReadLock().Acquire
					}
					within, cancel := context.WithTimeout(ctx, pause(4*time.Second))
					h, err := acquire(within)
					cancel()
					if err == nil {
						mu.Lock()
						granted[h.Path()] = time.Now()
						mu.Unlock()
						time.Sleep(pause(2 * time.Second))
						_ = h.Release(r.Ctx)
					}
					time.Sleep(pause(3 * time.Second))
				}
			})
		}
		l := r.rw(r.Connect("inspector"))
		var exact, both, earliest int
		for range 500 {
			time.Sleep(300 * time.Millisecond)
			now := time.Now()
			for _, one := range r.queue(func() ([]recipes.Contender, error) { return l.Queue(r.Ctx) }) {
				mu.Lock()
				at, holds := granted[one.Path]
				mu.Unlock()
				if !one.Holder {
					if one.Held != (recipes.Since{}) {
						t.Errorf("a waiter: %+v", one.Held)
					}
					continue
				}
				if !holds {
					continue // it is being told
				}
				least, most := one.Held.Age(now)
				if age := now.Sub(at); age < least-off || age > most+off {
					t.Errorf("%s has held for %v, want from %v to %v", one, age, least, most)
				}
				switch {
				case one.Held.Exact():
					exact++
				case one.Held.Latest.IsZero():
					earliest++
				default:
					both++
				}
			}
		}
		stop()
		wg.Wait()
		if exact < 10 || both < 10 || earliest < 10 {
			t.Errorf("%d exact, %d with both bounds, %d with one", exact, both, earliest)
		}
	})
}

// An age has bounds, too.
func TestSinceAge(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, tt := range []struct {
		since       recipes.Since
		exact       bool
		least, most time.Duration
	}{
		{recipes.Since{}, false, 0, 0},
		{recipes.Since{Earliest: ago(time.Minute)}, false, 0, time.Minute},
		{recipes.Since{Latest: ago(time.Second)}, false, time.Second, 0},
		{recipes.Since{Earliest: ago(time.Minute), Latest: ago(time.Second)}, false, time.Second, time.Minute},
		{recipes.Since{Earliest: ago(time.Minute), Latest: ago(time.Minute)}, true, time.Minute, time.Minute},
		{recipes.Since{Earliest: ago(-time.Minute), Latest: ago(-time.Minute)}, true, 0, 0}, // the server's clock is ahead
	} {
		if least, most := tt.since.Age(now); tt.since.Exact() != tt.exact || least != tt.least || most != tt.most {
			t.Errorf("%+v: %v, %v, %v", tt.since, tt.since.Exact(), least, most)
		}
	}
}

// Readers hold beside each other since they came, unless a writer was there.
func TestHeldSinceOfReaders(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		l := r.rw(c)
		var holds []*recipes.Hold
		for range 3 {
			h, err := l.ReadLock().Acquire(r.Ctx)
			r.Check(err)
			holds = append(holds, h)
		}
		q := r.queue(func() ([]recipes.Contender, error) { return l.Queue(r.Ctx) })
		for _, one := range q {
			if one.HeldSince.IsZero() {
				t.Errorf("all are there that came: %+v", one)
			}
		}
		r.Check(holds[0].Release(r.Ctx))
		q = r.queue(func() ([]recipes.Contender, error) { return l.Queue(r.Ctx) })
		for _, one := range q {
			if !one.Holder || !one.HeldSince.IsZero() {
				t.Errorf("the one that left may have been a writer: %+v", one)
			}
		}
		for _, h := range holds[1:] {
			r.Check(h.Release(r.Ctx))
		}
	})
}

// A child that is no contender keeps its data.
func TestRequestReleaseOfNoContender(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		r.Check(r.held(m).Close())
		r.Check(r.Srv.Create(dir+"/config", []byte("precious")))
		testrig.WantErr(t, m.RequestRelease(r.Ctx, recipes.Contender{Path: dir + "/config"}), recipes.ErrOtherLock)
		if n, _ := r.Srv.Node(dir + "/config"); string(n.Data) != "precious" {
			t.Errorf("the data is %q", n.Data)
		}
	})
}

// A reader that a downgrade lets in holds since the downgrade, not since it
// asked. The read node that is left has the number of the write node, and is
// younger.
func TestHeldSinceAfterDowngrade(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		w, err := r.rw(r.Connect("a")).WriteLock().Acquire(r.Ctx)
		r.Check(err)
		l := r.rw(r.Connect("b"))
		waits := make(chan *recipes.Hold, 1)
		go func() {
			h, err := l.ReadLock().Acquire(r.Ctx)
			r.Check(err)
			waits <- h
		}()
		time.Sleep(4 * time.Second)
		read, err := w.Downgrade(r.Ctx)
		r.Check(err)
		let := <-waits
		q := r.queue(func() ([]recipes.Contender, error) { return l.Queue(r.Ctx) })
		if len(q) != 2 || !q[1].Holder || !q[1].HeldSince.IsZero() {
			t.Errorf("it began to hold when the writer left, which no record tells: %+v", q)
		}
		r.Check(let.Release(r.Ctx))
		r.Check(read.Release(r.Ctx))
	})
}
