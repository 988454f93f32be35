package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// rwWitness is told of every grant and looks whether it may be.
type rwWitness struct {
	*rig
	mu sync.Mutex // guards the rest

	inside              map[*rwGrant]struct{}
	readToken, newToken int64 // newest of a writer; newest of anybody
	reads, writes       int   // grants
	shared, downgraded  int   // reads beside others; downgrades
}

type rwGrant struct {
	hold        *recipes.Hold
	write       bool
	downgrading bool
}

// lives reports whether its owner believes to hold, and to write. A downgrade
// ends the write hold before it returns the read hold, and reads in between.
func (g *rwGrant) lives() (holds, writes bool) {
	err := g.hold.Err()
	reads := g.downgrading && errors.Is(err, recipes.ErrReleased)
	return err == nil || reads, g.write && !reads
}

// granted checks that writers are alone, and that who asked earlier was granted
// earlier if one of the two is a writer: a reader's token is newer than every
// writer's so far, and a writer's newer than everybody's.
func (w *rwWitness) granted(h *recipes.Hold, write bool) *rwGrant {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := &rwGrant{hold: h, write: write}
	if holds, _ := g.lives(); holds {
		for other := range w.inside {
			switch holds, writes := other.lives(); {
			case holds && (write || writes):
				w.Errorf("%s (write=%v) beside %s (write=%v)", h.Path(), write, other.hold.Path(), writes)
			case holds:
				w.shared++
			}
		}
	}
	if token := h.FencingToken(); token <= w.readToken || write && token <= w.newToken {
		w.Errorf("%s with token %d after %d of a writer, %d of anybody", h.Path(), token, w.readToken, w.newToken)
	}
	w.newToken = max(w.newToken, h.FencingToken())
	if write {
		w.readToken = h.FencingToken()
		w.writes++
	} else {
		w.reads++
	}
	w.inside[g] = struct{}{}
	return g
}

func (w *rwWitness) left(g *rwGrant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inside, g)
}

// downgrade keeps the place of a write hold while it is downgraded.
func (w *rwWitness) downgrade(ctx context.Context, g *rwGrant, hold *recipes.WriteHold) {
	w.mu.Lock()
	g.downgrading = true
	w.mu.Unlock()
	h, err := hold.Downgrade(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	g.downgrading = false
	if err != nil {
		return // the write hold is as it was
	}
	if h.FencingToken() != hold.FencingToken() {
		w.Errorf("token %d of %d", h.FencingToken(), hold.FencingToken())
	}
	g.hold, g.write = h, false
	w.downgraded++
}

// worker takes the lock in all ways.
func (w *rwWitness) worker(rnd *rand.Rand, l *recipes.InterProcessReadWriteLock, rounds int) {
	for range rounds {
		time.Sleep(time.Duration(rnd.IntN(20_000)) * time.Microsecond)
		ctx, cancel := context.WithTimeout(w.ctx, time.Duration(rnd.IntN(2_000_000))*time.Microsecond)
		if rnd.IntN(4) > 0 {
			cancel()
			ctx, cancel = context.WithTimeout(w.ctx, 2*time.Minute)
		}
		w.round(ctx, rnd, l)
		cancel()
	}
}

func (w *rwWitness) round(ctx context.Context, rnd *rand.Rand, l *recipes.InterProcessReadWriteLock) {
	stay := time.Duration(rnd.IntN(30_000)) * time.Microsecond
	acquire := rwAcquire
	if rnd.IntN(5) == 0 {
		acquire = rwTry
	}
	switch rnd.IntN(5) {
	case 0: // a writer that becomes a reader
		hold, err := l.WriteLock().Acquire(ctx)
		if w.failed(err) {
			return
		}
		g := w.granted(hold.Hold, true)
		time.Sleep(stay)
		short, cancel := context.WithTimeout(w.ctx, time.Duration(rnd.IntN(20))*time.Millisecond)
		w.downgrade(short, g, hold)
		cancel()
		time.Sleep(stay)
		_ = g.hold.Close() // or lost
		_ = hold.Close()
		w.left(g)
	case 1: // a writer
		h, err := acquire(ctx, l, true)
		if w.failed(err) {
			return
		}
		g := w.granted(h, true)
		time.Sleep(stay)
		_ = h.Close()
		w.left(g)
	default:
		h, err := acquire(ctx, l, false)
		if w.failed(err) {
			return
		}
		g := w.granted(h, false)
		time.Sleep(stay)
		_ = h.Close()
		w.left(g)
	}
}

// failed knows the errors that a fault may bring.
func (w *rwWitness) failed(err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, recipes.ErrBusy), errors.Is(err, context.DeadlineExceeded), errors.Is(err, client.ErrSessionLost):
	default:
		w.Errorf("unexpected: %v", err)
	}
	return true
}

// Readers share, writers exclude, nobody overtakes whom it must not, a
// downgrade lets no writer in between, all get through, and nothing is left;
// with lost requests, cut connections, partitions, and deadlines of all kinds.
func TestRWLockStress(t *testing.T) {
	t.Parallel()
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				const clients, workers, rounds = 4, 3, 12
				w := &rwWitness{rig: r, inside: make(map[*rwGrant]struct{})}
				faults := []func(zktest.Match) *zktest.Rule{r.srv.LoseReply, r.srv.DropBefore, r.srv.DropAfter, r.srv.StallReply}
				for i, op := range []zktest.Op{zktest.OpCreate, zktest.OpMulti, zktest.OpDelete, zktest.OpGetData, zktest.OpGetChildren2} {
					faults[(int(seed)+i)%len(faults)](zktest.Match{Op: op, PathPrefix: dir, Prob: 0.02})
				}
				var all sync.WaitGroup
				for c := range clients {
					l := r.rw(r.connect(name(c)))
					for i := range workers {
						rnd := rand.New(rand.NewPCG(seed, uint64(c*workers+i)))
						all.Go(func() { w.worker(rnd, l, rounds) })
					}
				}
				ended := make(chan struct{})
				go func() { all.Wait(); close(ended) }()
				w.disturb(rand.New(rand.NewPCG(seed, 1<<32)), clients, ended)
				r.srv.ClearRules()
				r.srv.Heal()
				if w.reads < 20 || w.writes < 10 || w.downgraded == 0 || w.shared == 0 {
					r.Errorf("%d reads, %d shared, %d writes, %d downgraded: hardly anything is tested", w.reads, w.shared, w.writes, w.downgraded)
				}
				time.Sleep(2 * sessionTimeout)
				r.rwEmpty()
			})
		})
	}
}

// disturb cuts connections and partitions clients until ended.
func (w *rwWitness) disturb(rnd *rand.Rand, clients int, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(time.Duration(rnd.IntN(1500)) * time.Millisecond):
		}
		link := w.srv.Client(name(rnd.IntN(clients)))
		switch rnd.IntN(4) {
		case 0:
			w.srv.CutAll()
		case 1:
			link.Partition()
			time.AfterFunc(time.Duration(rnd.IntN(20_000))*time.Millisecond, link.Heal)
		default:
		}
	}
}
