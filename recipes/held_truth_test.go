package recipes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

var numbered = regexp.MustCompile(`(lock-|__READ__|__WRIT__|latch-)(\d{10})$`)

// truth knows from the transactions of a server since when each node of a directory holds.
type truth struct {
	mu    sync.Mutex
	dir   string
	there map[string]bool
	since map[string]time.Time // holds
}

func newTruth(srv *zktest.Server, dir string) *truth {
	tr := &truth{dir: dir, there: map[string]bool{}, since: map[string]time.Time{}}
	srv.OnCommit(tr.commit)
	return tr
}

func (tr *truth) commit(c zktest.Commit) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, p := range c.Created {
		if path.Dir(p) == tr.dir && numbered.MatchString(p) {
			tr.there[path.Base(p)] = true
		}
	}
	for _, p := range c.Deleted {
		if path.Dir(p) == tr.dir {
			delete(tr.there, path.Base(p))
		}
	}
	for name := range tr.there {
		if _, known := tr.since[name]; !known && tr.holds(name) {
			tr.since[name] = c.Time
		}
	}
}

func (tr *truth) holds(name string) bool {
	own := numbered.FindStringSubmatch(name)
	for other := range tr.there {
		o := numbered.FindStringSubmatch(other)
		if o[2] < own[2] && (own[1] != "__READ__" || o[1] != "__READ__") {
			return false
		}
	}
	return true
}

// check compares a queue with the truth.
func (tr *truth) check(t *testing.T, queue []recipes.Contender, counts map[string]int) {
	t.Helper()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	const off = 2 * time.Millisecond
	for _, c := range queue {
		if !c.Holder {
			if c.Held != (recipes.Since{}) || !c.HeldSince.IsZero() {
				t.Errorf("a waiter: %+v", c)
			}
			continue
		}
		at, ok := tr.since[path.Base(c.Path)]
		switch {
		case !ok:
			t.Errorf("%s never held", c.Path)
			continue
		case !c.Held.Earliest.IsZero() && at.Before(c.Held.Earliest.Add(-off)):
			t.Errorf("%s holds since %v, said not before %v", c.Path, at, c.Held.Earliest)
		case !c.Held.Latest.IsZero() && at.After(c.Held.Latest.Add(off)):
			t.Errorf("%s holds since %v, said from %v on (queued %v, since %v)", c.Path, at, c.Held.Latest, c.QueuedSince, c.HeldSince)
		}
		switch {
		case c.Held.Exact():
			counts["exact"]++
			if !c.HeldSince.Equal(c.Held.Earliest) {
				t.Errorf("%+v", c)
			}
		case !c.HeldSince.IsZero():
			t.Errorf("%+v", c)
		case c.Held.Earliest.IsZero():
			counts["none"]++
		case c.Held.Latest.IsZero():
			counts["earliest"]++
		default:
			counts["both"]++
		}
	}
}

// What Queue, Participants and Leader say of a hold's beginning is true whatever comes and goes, and
// whichever server answers: by the server's own transactions.
func TestHeldIsTrue(t *testing.T) {
	t.Parallel()
	for server, opts := range map[string][]zktest.Option{"ZooKeeper": nil, "Keeper": {zktest.WithProfile(zktest.ClickHouseKeeper)}} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			all := map[string]int{} // how often which bounds were said
			t.Run("of", func(t *testing.T) {
				for _, kind := range []string{"rw", "mutex", "latch"} {
					t.Run(kind, func(t *testing.T) {
						t.Parallel()
						for seed := range uint64(3) {
							counts := heldIsTrue(t, kind, seed, opts)
							mu.Lock()
							for said, n := range counts {
								all[said] += n
							}
							mu.Unlock()
						}
					})
				}
			})
			// One seed alone may have no hold that is known exactly: then all of its holders had to wait.
			if all["none"] > 0 || all["earliest"] < 10 || opts == nil && (all["exact"] < 10 || all["both"] < 10) {
				t.Errorf("%v", all)
			}
		})
	}
}

func heldIsTrue(t *testing.T, kind string, seed uint64, opts []zktest.Option) map[string]int {
	t.Helper()
	counts := map[string]int{}
	bubbleWith(t, func(r *rig) {
		tr := newTruth(r.Srv, dir)
		ctx, stop := context.WithCancel(r.Ctx)
		var wg sync.WaitGroup
		for i := range 5 {
			name := fmt.Sprint("c", i)
			c := r.Connect(name)
			next := rand.New(rand.NewPCG(seed, uint64(i)))
			pause := func(most time.Duration) time.Duration { return time.Duration(next.Int64N(int64(most))) }
			wg.Go(func() {
				contends(ctx, r, c, kind, name, next, pause)
			})
		}
		for i := range 2 { // foreigners, by Curator's names
			c := r.Connect(fmt.Sprint("f", i))
			next := rand.New(rand.NewPCG(seed, uint64(100+i)))
			wg.Go(func() {
				tags := map[string][]string{"mutex": {"lock-"}, "latch": {"latch-"}, "rw": {"__READ__", "__WRIT__"}}[kind]
				for ctx.Err() == nil {
					time.Sleep(time.Duration(next.Int64N(int64(5 * time.Second))))
					if next.IntN(4) == 0 { // a child that is no contender
						p, err := c.Create(ctx, dir+"/config", nil, client.Sequential(), client.Ephemeral())
						if err == nil && next.IntN(2) == 0 {
							_ = c.Delete(ctx, p, client.AnyVersion)
						}
						continue
					}
					id := fmt.Sprintf("_c_0c708091-6d54-4320-8594-f6fdb7%06x-", next.IntN(1<<24))
					p, err := c.Create(ctx, dir+"/"+id+tags[next.IntN(len(tags))], []byte("10.0.0.7"), client.Sequential(), client.Ephemeral())
					if err != nil {
						continue
					}
					time.Sleep(time.Duration(next.Int64N(int64(4 * time.Second))))
					_ = c.Delete(ctx, p, client.AnyVersion)
				}
			})
		}
		wg.Go(func() { // an enemy
			next := rand.New(rand.NewPCG(seed, 77))
			for ctx.Err() == nil {
				time.Sleep(time.Duration(next.Int64N(int64(9 * time.Second))))
				switch name := fmt.Sprint("c", next.IntN(5)); next.IntN(6) {
				case 0:
					r.Srv.Client(name).Cut()
				case 1:
					r.Srv.Client(name).ExpireSession()
				case 2:
					l := r.Srv.Client(name)
					l.Freeze()
					time.Sleep(time.Duration(next.Int64N(int64(12 * time.Second))))
					l.Thaw()
				case 3:
					if in := r.Srv.Children(dir); len(in) > 0 {
						_ = r.Srv.Delete(dir + "/" + in[next.IntN(len(in))])
					}
				case 4:
					l := r.Srv.Client(name)
					l.PartitionReplies()
					time.Sleep(time.Duration(next.Int64N(int64(3 * time.Second))))
					l.Heal()
				case 5:
					if in := r.Srv.Children(dir); len(in) > 0 {
						_ = r.Srv.SetData(dir+"/"+in[next.IntN(len(in))], []byte("__REVOKE__"))
					}
				}
			}
		})
		inspector := r.Connect("inspector")
		var list func() ([]recipes.Contender, error)
		switch kind {
		case "rw":
			l := r.rw(inspector)
			list = func() ([]recipes.Contender, error) { return l.Queue(r.Ctx) }
		case "mutex":
			m := r.mutex(inspector)
			list = func() ([]recipes.Contender, error) { return m.Queue(r.Ctx) }
		default:
			e, err := recipes.NewLeaderLatch(inspector, dir)
			r.Check(err)
			turn := 0
			list = func() ([]recipes.Contender, error) {
				if turn++; turn%3 == 0 {
					p, err := e.Leader(r.Ctx)
					if err != nil {
						return nil, nil //nolint:nilerr // nobody leads
					}
					return []recipes.Contender{p.Contender}, nil
				}
				ps, err := e.Participants(r.Ctx)
				var all []recipes.Contender
				for _, p := range ps {
					all = append(all, p.Contender)
				}
				return all, err
			}
		}
		next := rand.New(rand.NewPCG(seed, 78))
		for range 600 {
			time.Sleep(time.Duration(next.Int64N(int64(300 * time.Millisecond))))
			q, err := list()
			r.Check(err)
			tr.check(t, q, counts)
			if t.Failed() {
				break
			}
		}
		stop()
		wg.Wait()
	}, opts...)
	return counts
}

// contends acquires, holds and releases again and again, until ctx ends.
func contends(ctx context.Context, r *rig, c *client.Client, kind, id string, next *rand.Rand, pause func(time.Duration) time.Duration) {
	e, err := recipes.NewLeaderLatch(c, dir, recipes.WithID(id))
	r.Check(err)
	m, l := r.mutex(c), r.rw(c)
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(ctx, pause(6*time.Second))
		switch kind {
		case "latch":
			if t, err := e.Campaign(within); err == nil {
				time.Sleep(pause(2 * time.Second))
				if next.IntN(2) == 0 {
					_ = t.HandOver(within, fmt.Sprint("c", next.IntN(5)))
				}
				_ = t.Release(r.Ctx)
			}
		case "mutex":
			if h, err := m.Acquire(within); err == nil {
				time.Sleep(pause(2 * time.Second))
				_ = h.Release(r.Ctx)
			}
		case "rw":
			if next.IntN(2) == 0 {
				if h, err := l.ReadLock().Acquire(within); err == nil {
					time.Sleep(pause(3 * time.Second))
					_ = h.Release(r.Ctx)
				}
				break
			}
			w, err := l.WriteLock().Acquire(within)
			if err != nil {
				break
			}
			time.Sleep(pause(2 * time.Second))
			switch next.IntN(3) {
			case 0:
				if h, err := w.Downgrade(within); err == nil {
					time.Sleep(pause(2 * time.Second))
					_ = h.Release(r.Ctx)
				}
			case 1:
				if h, err := l.ReadLock().Acquire(w.Context()); err == nil {
					time.Sleep(pause(2 * time.Second))
					_ = w.Release(r.Ctx)
					time.Sleep(pause(2 * time.Second))
					_ = h.Release(r.Ctx)
				}
			}
			_ = w.Release(r.Ctx)
		}
		cancel()
		time.Sleep(pause(3 * time.Second))
	}
}

// A directory of ClickHouse Keeper does not tell that a child was deleted: a holder that had to wait
// is known by the time of its node alone, also when others come behind it.
func TestHeldOnKeeper(t *testing.T) {
	t.Parallel()
	bubbleWith(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		h := r.held(m)
		waits := acquire(r.Ctx, r.mutex(r.Connect("b")))
		time.Sleep(30 * time.Minute)
		r.Check(h.Release(r.Ctx))
		res := <-waits
		r.Check(res.err)
		want := func() {
			q := r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.Ctx) })
			if q[0].Held != (recipes.Since{Earliest: q[0].QueuedSince}) || !q[0].HeldSince.IsZero() {
				t.Errorf("%+v, held since %v", q[0].Held, q[0].HeldSince)
			}
		}
		want()
		waits = acquire(r.Ctx, m)
		time.Sleep(time.Minute)
		want()
		r.Check(res.hold.Release(r.Ctx))
		r.Check((<-waits).err)
	}, zktest.WithProfile(zktest.ClickHouseKeeper))
}

// A holder's node and a later one may be stamped by two servers, the second of which has a clock that is behind.
func TestHeldByTwoClocks(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		h := r.held(m)
		second := acquire(r.Ctx, r.mutex(r.Connect("b")))
		time.Sleep(time.Minute)
		r.Check(h.Release(r.Ctx))
		h = (<-second).hold
		r.Srv.JumpClock(-time.Hour)
		third := acquire(r.Ctx, m)
		time.Sleep(time.Minute)
		q := r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.Ctx) })
		if len(q) != 2 || q[0].Held != (recipes.Since{Earliest: q[0].QueuedSince}) {
			t.Errorf("%+v of %v", q[0].Held, q)
		}
		r.Check(h.Release(r.Ctx))
		r.Check((<-third).err)
	})
}

// A participant that leads as those before it leave while Participants reads has a bound, too.
func TestHeldByTheNextInLine(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		e, err := recipes.NewLeaderLatch(r.Connect("a"), dir)
		r.Check(err)
		term, err := e.Campaign(r.Ctx)
		r.Check(err)
		other, err := recipes.NewLeaderLatch(r.Connect("b"), dir)
		r.Check(err)
		ctx, cancel := context.WithCancel(r.Ctx)
		defer cancel()
		go func() { _, _ = other.Campaign(ctx) }()
		time.Sleep(time.Minute)
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpGetData, Path: term.Path(), Times: 1}, func(context.Context, zktest.Request) {
			_ = r.Srv.Delete(term.Path())
		})
		all, err := e.Participants(r.Ctx)
		r.Check(err)
		if len(all) != 1 || !all[0].Holder || all[0].Held != (recipes.Since{Earliest: all[0].QueuedSince}) {
			t.Errorf("%v: %+v", all, all)
		}
	})
}

// Curator makes a lease before it has the permit.
func TestHeldByCuratorsLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.Connect("a"), 1)
		l := r.lease(s, 1)
		curators, err := r.Connect("curator").Create(r.Ctx, poolLeases+"/_c_0c708091-6d54-4320-8594-f6fdb71d5f95-lease-", nil, client.Ephemeral(), client.Sequential())
		r.Check(err)
		time.Sleep(time.Hour / 2)
		r.Check(l.Release(r.Ctx)) // it holds now
		time.Sleep(time.Minute)
		q, err := s.Queue(r.Ctx)
		r.Check(err)
		if len(q) != 1 || q[0].Path != curators || !q[0].HeldSince.IsZero() || q[0].QueuedSince.IsZero() || q[0].Held != (recipes.Since{Earliest: q[0].QueuedSince}) {
			t.Errorf("%+v", q)
		}
	})
}
