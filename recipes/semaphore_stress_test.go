package recipes_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// believers are the leases whose holders believe in them, and their sessions.
type believers struct {
	mu      sync.Mutex
	all     map[*recipes.Lease]int64
	expired map[int64]bool // by force: they hear of it when all others do
}

// enter returns how many permits are believed in.
func (b *believers) enter(r *rig, l *recipes.Lease) (permits int) {
	var owner int64
	if r.srv != nil {
		node, _ := r.srv.Node(l.Path())
		owner = node.Stat.EphemeralOwner
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[l] = owner
	for l, session := range b.all {
		if l.Err() == nil && !b.expired[session] {
			permits += l.Permits()
		}
	}
	return permits
}

func (b *believers) leave(l *recipes.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, l)
}

func (b *believers) expire(r *rig, session int64) {
	b.mu.Lock()
	b.expired[session] = true
	b.mu.Unlock()
	r.srv.ExpireSession(session)
}

// worker takes and returns permits in as many rounds, whatever happens.
func (b *believers) worker(r *rig, s *recipes.InterProcessSemaphoreV2, rnd *rand.Rand, rounds, most int, out func() int) {
	for rounds > 0 {
		limited, cancel := context.WithTimeout(r.ctx, time.Duration(1+rnd.IntN(60_000))*time.Millisecond)
		l, err := s.Acquire(limited, 1+rnd.IntN(most))
		cancel()
		if err != nil {
			if !slices.ContainsFunc([]error{
				context.DeadlineExceeded, client.ErrSessionLost, recipes.ErrTooManyPermits, recipes.ErrNodeDeleted, recipes.ErrLost,
			}, func(expected error) bool { return errors.Is(err, expected) }) {
				r.Errorf("Acquire = %v", err)
				return
			}
			time.Sleep(time.Duration(rnd.IntN(1000)) * time.Millisecond)
			continue
		}
		rounds--
		if believed, out := b.enter(r, l), out(); believed > most || out > most {
			r.Errorf("%d permits believed in, %d out, of %d", believed, out, most)
		}
		select {
		case <-time.After(time.Duration(rnd.IntN(3000)) * time.Millisecond):
		case <-l.Context().Done():
		}
		b.leave(l)
		_ = l.Close() // what is not removed now is removed later
	}
}

// Seeded schedules of lost requests, cuts, partitions, ended sessions, limits
// and a number of permits that changes: there are never more permits in use
// than there were at most, everybody gets theirs in the end, and nothing is
// left.
func TestSemaphoreStress(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { semaphoreStress(t, seed) })
		})
	}
}

func semaphoreStress(t *testing.T, seed uint64) {
	t.Helper()
	const clients, workers, rounds, most = 4, 2, 5, 4
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	r := &rig{T: t, ctx: ctx, srv: zktest.NewServer(t, zktest.WithSeed(seed),
		zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, 2*time.Millisecond))}
	r.sharedCount(r.connect("count"), most)
	for _, at := range []zktest.Match{
		{Op: zktest.OpCreate, PathPrefix: pool},
		{Op: zktest.OpMulti, PathPrefix: pool},
		{Op: zktest.OpDelete, PathPrefix: pool},
		{Op: zktest.OpGetChildren2, PathPrefix: pool},
		{Op: zktest.OpExists, PathPrefix: pool},
		{Op: zktest.OpGetData, PathPrefix: "/"},
	} {
		at.Times = zktest.Always
		for _, fault := range []func(zktest.Match) *zktest.Rule{r.srv.LoseReply, r.srv.DropBefore, r.srv.StallReply} {
			at.Prob = 0.01
			fault(at)
		}
	}
	in := believers{all: map[*recipes.Lease]int64{}, expired: map[int64]bool{0: true}} // a lease that is gone has no owner
	var wg sync.WaitGroup
	for i := range clients {
		c := r.connect(name(i))
		s := r.countedSemaphore(c, r.sharedCount(c, most))
		for j := range workers {
			rnd := rand.New(rand.NewPCG(seed, uint64(i*workers+j)))
			wg.Go(func() {
				in.worker(r, s, rnd, rounds, most, func() int { return len(r.named(poolLeases, leaseName)) })
			})
		}
	}
	done := make(chan struct{})
	var faults sync.WaitGroup
	faults.Go(func() {
		rnd := rand.New(rand.NewPCG(seed, 1<<32))
		count := r.sharedCount(r.connect("admin"), most)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Duration(200+rnd.IntN(8000)) * time.Millisecond):
			}
			who := name(rnd.IntN(clients))
			switch rnd.IntN(6) {
			case 0:
				r.srv.CutAll()
			case 1:
				r.srv.Client(who).Partition()
				time.Sleep(time.Duration(rnd.IntN(2*int(sessionTimeout.Milliseconds()))) * time.Millisecond)
				r.srv.Client(who).Heal()
			case 2:
				if all := r.srv.Sessions(); len(all) > 0 {
					in.expire(r, all[rnd.IntN(len(all))].ID)
				}
			case 3:
				r.srv.Client(who).Freeze()
				time.Sleep(time.Duration(rnd.IntN(4000)) * time.Millisecond)
				r.srv.Client(who).Thaw()
			case 4:
				_ = count.Set(r.ctx, int32(1+rnd.IntN(most)))
			case 5:
				if all := r.named(poolQueue, queueName); len(all) > 0 { // the first, who may be about to take
					slices.SortFunc(all, func(a, b string) int { return cmp.Compare(a[len(a)-10:], b[len(b)-10:]) })
					_ = r.srv.Delete(poolQueue + "/" + all[0])
				}
			}
		}
	})
	wg.Wait()
	close(done)
	faults.Wait()
	r.srv.ClearRules()
	time.Sleep(2 * sessionTimeout)
	r.drained()
	r.check(r.sharedCount(r.connect("last"), most).Set(r.ctx, most))
	c := r.connect("end")
	r.check(r.lease(r.countedSemaphore(c, r.sharedCount(c, most)), most).Close())
	wantNoGoroutine(t)
}
