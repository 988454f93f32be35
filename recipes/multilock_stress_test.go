package recipes_test

import (
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

// multiWant is what one of a multi-lock's holders has of one path.
type multiWant struct {
	path  string
	units int // of as many as all together may have
	most  int
}

// multiWitness is told of every grant and looks whether it may be.
type multiWitness struct {
	*rig
	mu sync.Mutex // guards the rest

	inside  map[*recipes.MultiHold][]multiWant
	expired map[int64]bool // sessions that were taken away from their owners
}

// believed reports whether the owner of h relies on it and has not just been
// deprived of it by force.
func (w *multiWitness) believed(h *recipes.MultiHold) bool {
	if h.Err() != nil {
		return false
	}
	n, there := w.srv.Node(h.Holds()[0].Path())
	return there && !w.expired[n.Stat.EphemeralOwner]
}

func (w *multiWitness) granted(h *recipes.MultiHold, wants []multiWant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside[h] = wants
	if !w.believed(h) {
		return
	}
	for i, one := range h.Holds() {
		if _, there := w.srv.Node(one.Path()); !there && w.believed(h) {
			w.Errorf("%s is held without %s", wants[i].path, one.Path())
		}
		out := 0
		for other, theirs := range w.inside {
			for _, want := range theirs {
				if want.path == wants[i].path && w.believed(other) {
					out += want.units
				}
			}
		}
		if out > wants[i].most {
			w.Errorf("%d of %d of %s are out", out, wants[i].most, wants[i].path)
		}
	}
}

func (w *multiWitness) left(h *recipes.MultiHold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inside, h)
}

func (w *multiWitness) expire(rnd *rand.Rand) {
	all := w.srv.Sessions()
	if len(all) == 0 {
		return
	}
	id := all[rnd.IntN(len(all))].ID
	w.mu.Lock()
	w.expired[id] = true
	w.mu.Unlock()
	w.srv.ExpireSession(id)
}

// some are some locks of the five that all contend for, in one order.
func (w *multiWitness) some(rnd *rand.Rand, c *client.Client) (*recipes.InterProcessMultiLock, []multiWant) {
	const readers = 100
	var wants []multiWant
	var locks []recipes.Lock
	all := []string{"/rw", "/m", "/x", "/s", "/n"}
	for drop := rnd.IntN(len(all)); drop > 0; drop-- {
		i := rnd.IntN(len(all))
		all = slices.Delete(all, i, i+1)
	}
	for _, path := range all {
		want, lock := multiWant{path, 1, 1}, recipes.Lock(nil)
		var err error
		switch path {
		case "/m", "/n":
			lock, err = recipes.NewInterProcessMutex(c, path)
		case "/rw":
			var rw *recipes.InterProcessReadWriteLock
			if rw, err = recipes.NewInterProcessReadWriteLock(c, path); err != nil {
				break
			}
			lock, want = rw.ReadLock(), multiWant{path, 1, readers}
			if rnd.IntN(2) == 0 {
				lock, want.units = rw.WriteLock(), readers
			}
		case "/s":
			var s *recipes.InterProcessSemaphoreV2
			if s, err = recipes.NewInterProcessSemaphoreV2(c, path, 3); err != nil {
				break
			}
			want = multiWant{path, 1 + rnd.IntN(3), 3}
			lock = s.Permits(want.units)
		case "/x":
			lock, err = recipes.NewInterProcessSemaphoreMutex(c, path)
		}
		w.check(err)
		wants, locks = append(wants, want), append(locks, lock)
	}
	return w.multiOf(locks...), wants
}

// worker takes any of the locks together until it has had its rounds.
func (w *multiWitness) worker(rnd *rand.Rand, c *client.Client, rounds int) {
	for granted := 0; granted < rounds; {
		m, wants := w.some(rnd, c)
		limit, patient := time.Duration(rnd.IntN(20_000_000))*time.Microsecond, rnd.IntN(3) > 0
		acquire := m.Acquire
		if patient {
			limit = 20 * time.Minute
		} else if rnd.IntN(3) == 0 {
			acquire = m.TryAcquire
		}
		ctx, cancel := context.WithTimeout(w.ctx, limit)
		h, err := acquire(ctx)
		if err != nil {
			stuck := patient && ctx.Err() != nil
			cancel()
			if stuck || !slices.ContainsFunc([]error{
				context.DeadlineExceeded, client.ErrSessionLost, recipes.ErrLost, recipes.ErrBusy,
			}, func(expected error) bool { return errors.Is(err, expected) }) {
				w.Errorf("%s: %v", m.Path(), err)
				return
			}
			time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
			continue
		}
		granted++
		w.granted(h, wants)
		select {
		case <-time.After(time.Duration(rnd.IntN(500)) * time.Millisecond):
		case <-h.Context().Done():
		}
		w.left(h)
		_ = h.Close() // what is not removed now is removed later
		cancel()
	}
}

// Multi-locks of everything, under faults: nobody holds what another does,
// nobody is stuck, nothing is left.
func TestMultiLockStress(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { multiStress(t, seed) })
		})
	}
}

func multiStress(t *testing.T, seed uint64) {
	t.Helper()
	const clients, workers, rounds = 3, 2, 12
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	r := &rig{T: t, ctx: ctx, srv: zktest.NewServer(t, zktest.WithSeed(seed),
		zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, 2*time.Millisecond))}
	w := &multiWitness{rig: r, inside: map[*recipes.MultiHold][]multiWant{}, expired: map[int64]bool{}}
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpDelete, zktest.OpGetChildren2, zktest.OpGetData, zktest.OpExists} {
		for _, fault := range []func(zktest.Match) *zktest.Rule{r.srv.LoseReply, r.srv.DropBefore, r.srv.StallReply} {
			fault(zktest.Match{Op: op, PathPrefix: "/", Prob: 0.01, Times: zktest.Always})
		}
	}
	var all sync.WaitGroup
	for i := range clients {
		c := r.connect(name(i))
		for j := range workers {
			all.Go(func() { w.worker(rand.New(rand.NewPCG(seed, uint64(i*workers+j))), c, rounds) })
		}
	}
	done := make(chan struct{})
	var faults sync.WaitGroup
	faults.Go(func() {
		rnd := rand.New(rand.NewPCG(seed, 1<<32))
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Duration(200+rnd.IntN(8000)) * time.Millisecond):
			}
			link := r.srv.Client(name(rnd.IntN(clients)))
			switch rnd.IntN(4) {
			case 0:
				r.srv.CutAll()
			case 1:
				link.Partition()
				time.Sleep(time.Duration(rnd.IntN(2*int(sessionTimeout.Milliseconds()))) * time.Millisecond)
				link.Heal()
			case 2:
				w.expire(rnd)
			case 3:
				link.Freeze()
				time.Sleep(time.Duration(rnd.IntN(4000)) * time.Millisecond)
				link.Thaw()
			}
		}
	})
	all.Wait()
	close(done)
	faults.Wait()
	r.srv.ClearRules()
	r.srv.Heal()
	time.Sleep(2 * sessionTimeout)
	r.nothingIn("/m", "/n", "/rw", "/s/locks", "/s/leases", "/x/locks", "/x/leases")
	wantNoGoroutine(t)
}
