package recipes_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// A crowd in one process begins at one instant. Its nodes stay within the window from the first
// one on, so a goroutine of another process has each turn within 70 grants, the first one too.
func TestCrowdPastWindow(t *testing.T) {
	t.Parallel()
	lock := func(r *rig, c *client.Client, path string, opts ...recipes.LockOption) *recipes.InterProcessMutex {
		m, err := recipes.NewInterProcessMutex(c, path, opts...)
		r.Check(err)
		return m
	}
	of := func(r *rig, locks ...recipes.Lock) contending {
		m, err := recipes.NewInterProcessMultiLock(locks...)
		r.Check(err)
		return each(m)
	}
	for name, kind := range map[string]struct {
		queue string
		far   bool // a turn also waits in another queue, whose grants nobody counts
		of    func(r *rig, c *client.Client, i int) contending
	}{
		"control: mutex": {dir, false, func(r *rig, c *client.Client, _ int) contending { return each(r.mutex(c)) }},
		"control: multi-lock": {"/x", false, func(r *rig, c *client.Client, _ int) contending {
			return of(r, lock(r, c, "/x"), lock(r, c, "/y"))
		}},
		"multi-lock beside kazoo": {"/x", false, func(r *rig, c *client.Client, _ int) contending {
			return of(r, lock(r, c, "/x", recipes.WithKazoo()), lock(r, c, "/y", recipes.WithKazoo()))
		}},
		"multi-lock of an own lock and a common one": {"/y", false, func(r *rig, c *client.Client, i int) contending {
			return of(r, lock(r, c, fmt.Sprint("/x", i)), lock(r, c, "/y"))
		}},
		"multi-lock of a read lock and a mutex": {"/y", false, func(r *rig, c *client.Client, _ int) contending {
			l, err := recipes.NewInterProcessReadWriteLock(c, "/x")
			r.Check(err)
			return of(r, l.ReadLock(), lock(r, c, "/y"))
		}},
		"multi-lock of many permits and a mutex": {"/y", true, func(r *rig, c *client.Client, _ int) contending {
			s, err := recipes.NewInterProcessSemaphoreV2(c, pool, 1000)
			r.Check(err)
			return of(r, s.Permits(1), lock(r, c, "/y"))
		}},
		"selector and mutex": {dir, false, func(r *rig, c *client.Client, i int) contending {
			if i%2 == 0 {
				return each(r.mutex(c))
			}
			e, err := recipes.NewLeaderSelector(c, dir)
			r.Check(err)
			return campaigning(e.Election)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c, alone := r.Connect("crowd"), r.Connect("other")
				r.fromTheStart(kind.queue, kind.far, func(i int) contending { return kind.of(r, c, i) }, alone, kind.of(r, alone, -2))
			})
		})
	}
}

// A semaphore of which nobody has waited lately makes its leases before it stands in the queue.
// A crowd that comes at one instant then stands in the queue past the window.
func TestCrowdPastWindowOfCalmSemaphore(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"one permit": 1, "three permits": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				taking := func(s *recipes.InterProcessSemaphoreV2) contending {
					return func(ctx context.Context) (recipes.AnyHold, error) { return s.Acquire(ctx, n) }
				}
				s := r.calm(r.semaphore(r.Connect("crowd"), n))
				alone := r.Connect("other")
				r.fromTheStart(poolQueue, false, func(int) contending { return taking(s) }, alone, taking(r.semaphore(alone, n)))
			})
		})
	}
}

// A crowd asks for a multi-lock before its client is connected.
func TestCrowdPastWindowBeforeSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		link := r.Srv.Client("crowd")
		link.Refuse()
		c := r.Connect("crowd", client.WithLazyConnect())
		m := r.multi(c, "/x", "/y")
		alone := r.Connect("other")
		time.AfterFunc(10*time.Millisecond, link.Accept)
		r.fromTheStart("/x", false, func(int) contending { return each(m) }, alone, each(r.multi(alone, "/x", "/y")))
	})
}

// Readers wait in the window too, also those of a multi-lock: a writer holds, and they come.
func TestReadersPastWindow(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const window, readers = 64, 200
		of := func(c *client.Client, path string) *recipes.InterProcessReadWriteLock {
			l, err := recipes.NewInterProcessReadWriteLock(c, path)
			r.Check(err)
			return l
		}
		c := r.Connect("crowd")
		writer, err := of(r.Connect("other"), "/x").WriteLock().Acquire(r.Ctx)
		r.Check(err)
		m, err := recipes.NewInterProcessMultiLock(of(c, "/x").ReadLock(), of(c, "/y").ReadLock())
		r.Check(err)
		held := make(chan *recipes.MultiHold)
		for range readers {
			go func() {
				h, err := m.Acquire(r.Ctx)
				if err != nil {
					t.Error(err)
				}
				held <- h
			}()
		}
		time.Sleep(time.Second)
		if line := len(r.Srv.Children("/x")); line > window+1 {
			t.Errorf("%d nodes in the queue", line)
		}
		r.Check(writer.Release(r.Ctx))
		all := make([]*recipes.MultiHold, readers) // together
		for i := range all {
			all[i] = <-held
		}
		for _, h := range all {
			r.Check(h.Release(r.Ctx))
		}
		r.nothingIn("/x", "/y")
	})
}

// fromTheStart lets a crowd begin. As soon as nodes of it stand in the queue, a contender of
// another client comes, which must have each turn within 70 grants of the crowd.
func (r *rig) fromTheStart(queue string, far bool, crowd func(i int) contending, alone *client.Client, other contending) {
	r.Helper()
	const members, turns = 200, 3
	b, over := r.beside(queue, alone), make(chan struct{})
	var all sync.WaitGroup
	for i := range members {
		acquire := crowd(i)
		all.Go(func() { b.contend(acquire, over) })
	}
	for len(r.Srv.Children(queue)) < 32 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(5 * time.Millisecond)
	for range turns {
		if line := len(r.Srv.Children(queue)); line > 66 {
			r.Errorf("%d nodes in the queue", line)
		}
		b.turn(other, far)
	}
	close(over)
	all.Wait()
}

// A hold of the past does not stand in the way of a campaign in its context, so such campaigns
// stand in the window as well.
func TestElectionWindowAfterHold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const window, all = 64, 100
		e := r.latch(r.Connect("a"), "a")
		first := r.leads(e)
		past := context.WithoutCancel(first.Context())
		r.Check(first.Release(r.Ctx))
		leader := r.leads(e)
		ctx, cancel := context.WithCancel(past)
		var campaigns sync.WaitGroup
		for range all {
			campaigns.Go(func() {
				_, err := e.Campaign(ctx)
				testrig.WantErr(t, err, context.Canceled)
			})
		}
		time.Sleep(time.Second)
		if line := len(r.Srv.Children(leaders)); line > window {
			t.Errorf("%d campaigns of one client stand in line", line)
		}
		cancel()
		campaigns.Wait()
		r.Check(leader.Release(r.Ctx))
		r.inElection(0)
	})
}

// Acquires give up faster than the servers answer. Each of their nodes counts until it is gone, so
// no more than 64 stand at any time, and the lone contender of another process has its turn.
func TestWindowOfThoseWhoGiveUp(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]struct {
		queues []string
		of     func(r *rig, c *client.Client) contending
	}{
		"mutex":      {[]string{dir}, func(r *rig, c *client.Client) contending { return each(r.mutex(c)) }},
		"multi-lock": {[]string{"/x", "/y"}, func(r *rig, c *client.Client) contending { return each(r.multi(c, "/x", "/y")) }},
		"latch":      {[]string{leaders}, func(r *rig, c *client.Client) contending { return campaigning(r.latch(c, "a")) }},
		"semaphore": {[]string{poolQueue, poolLeases}, func(r *rig, c *client.Client) contending {
			m, err := recipes.NewInterProcessSemaphoreMutex(c, pool)
			r.Check(err)
			return each(m)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				const window, crowd = 64, 100
				acquire := kind.of(r, r.Connect("crowd"))
				h, err := acquire(r.Ctx) // the directories are there
				r.Check(err)
				r.Check(h.Release(r.Ctx))
				h, err = kind.of(r, r.Connect("other"))(r.Ctx)
				r.Check(err)
				link := r.Srv.Client("crowd")
				link.SetLatency(100*time.Millisecond, 110*time.Millisecond)
				var all sync.WaitGroup
				for i := range crowd {
					patience := time.Duration(20+i*4) * time.Millisecond // a round trip takes 200 to 220
					all.Go(func() {
						for range 20 {
							_, err := acquire(r.Within(patience))
							testrig.WantErr(t, err, context.DeadlineExceeded)
						}
					})
				}
				for range 200 {
					time.Sleep(10 * time.Millisecond)
					for _, queue := range kind.queues {
						if line := len(r.Srv.Children(queue)); line > window+1 {
							r.Fatalf("%d nodes in %s", line, queue)
						}
					}
				}
				all.Wait()
				link.SetLatency(time.Microsecond, time.Millisecond)
				r.Check(h.Release(r.Ctx))
				time.Sleep(time.Minute) // all is removed, and no room is lost
				r.nothingIn(kind.queues...)
				var held sync.WaitGroup
				for range 2 * window {
					held.Go(func() {
						h, err := acquire(r.Within(time.Minute))
						r.Check(err)
						r.Check(h.Release(r.Ctx))
					})
				}
				held.Wait()
			})
		})
	}
}
