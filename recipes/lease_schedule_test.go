package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// arbiter knows who holds, by what the holders were told.
type arbiter struct {
	mu        sync.Mutex
	holds     []*recipes.Hold // not released, lost or not
	granted   int
	lost      int
	overlaps  []string
	deadlines []string
}

// begin judges a grant: nobody else may hold, nor have a deadline to come.
func (a *arbiter) begin(h *recipes.Hold) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.granted++
	for _, o := range a.holds {
		cause := context.Cause(o.Context())
		var e *client.LeaseExpiredError
		switch {
		case cause == nil:
			a.overlaps = append(a.overlaps, fmt.Sprintf("%s beside %s", h.Path(), o.Path()))
		case errors.As(cause, &e) && time.Now().Before(e.Deadline):
			a.deadlines = append(a.deadlines, fmt.Sprintf("%s held %v before the deadline of %s: %v", h.Path(), time.Until(e.Deadline), o.Path(), e))
		}
	}
	a.holds = append(a.holds, h)
}

// end is called before the release.
func (a *arbiter) end(h *recipes.Hold) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors.Is(context.Cause(h.Context()), recipes.ErrLost) {
		a.lost++
	}
	for i, o := range a.holds {
		if o == h {
			a.holds = append(a.holds[:i], a.holds[i+1:]...)
			return
		}
	}
}

// contend holds the lock for random times until the end of ctx. Whoever loses
// it stays on for a while, so that its deadline can be judged.
func (a *arbiter) contend(ctx context.Context, m *recipes.InterProcessMutex, r *rand.Rand) {
	for ctx.Err() == nil {
		h, err := m.Acquire(ctx)
		if err != nil {
			nap(ctx, time.Second)
			continue
		}
		a.begin(h)
		nap(h.Context(), time.Duration(r.Int64N(int64(20*time.Second))))
		if h.Err() != nil {
			nap(ctx, time.Duration(r.Int64N(int64(10*time.Second))))
		}
		a.end(h)
		_ = h.Close()
	}
}

func nap(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// trouble does something to the servers or to the ways to them.
func trouble(r *rand.Rand, e *zktest.Ensemble, names []string) {
	link := e.Client(names[r.IntN(len(names))])
	i := 1 + r.IntN(3)
	switch r.IntN(12) {
	case 0, 1, 2:
		e.Isolate(i)
	case 3: // a deposed leader
		lead := e.Leader()
		if lead == nil {
			return
		}
		for i := 1; i <= 3; i++ {
			if e.Server(i) == lead {
				e.Isolate(i)
			}
		}
		for i := 1; i <= 3; i++ {
			if e.Server(i) != lead {
				e.Server(i).Stop()
				e.Server(i).Resume()
			}
		}
	case 4:
		e.Cut(i, 1+i%3)
	case 5:
		link.Partition()
	case 6:
		link.PartitionReplies()
	case 7:
		link.PartitionRequests()
	case 8:
		link.Freeze()
	case 9:
		link.Cut()
	case 10:
		e.SlowLog(time.Duration(r.IntN(3000)) * time.Millisecond)
	default:
		e.Server(i).Stop()
		e.Server(i).Resume()
	}
}

// play runs one schedule: three clients contend through three servers, while
// for half a minute things break and are mended.
func play(t *testing.T, seed uint64, policy client.LeasePolicy) *arbiter {
	t.Helper()
	a := &arbiter{}
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 0))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		f := &fleet{T: t, ctx: ctx, timeout: measuredTimeouts[r.IntN(4)], policy: policy, e: zktest.NewEnsemble(t, 3,
			zktest.WithSeed(seed), zktest.WithTick(measuredTick), zktest.WithLatency(50*time.Microsecond, 5*time.Millisecond))}
		servers := []string{"zk1:2181", "zk2:2181", "zk3:2181", "zk1:2181,zk2:2181,zk3:2181", "zk3:2181,zk2:2181"}
		names := []string{"a", "b", "c"}
		work, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		for i, name := range names {
			m, own := f.mutex(name, servers[r.IntN(len(servers))]), rand.New(rand.NewPCG(seed, uint64(i+1)))
			all.Go(func() { a.contend(work, m, own) })
		}
		for range 4 {
			time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
			trouble(r, f.e, names)
			time.Sleep(time.Duration(r.IntN(16000)) * time.Millisecond)
			if r.IntN(3) > 0 {
				mend(f.e, names)
			}
		}
		mend(f.e, names)
		time.Sleep(20 * time.Second)
		stop()
		all.Wait()
	})
	return a
}

func mend(e *zktest.Ensemble, names []string) {
	e.Heal()
	e.SlowLog(0)
	for _, n := range names {
		e.Client(n).Heal()
		e.Client(n).Thaw()
	}
}

// seeds is how many schedules to play: DOCENT_SIM_SEEDS, or some.
func seeds(t *testing.T, some int) int {
	t.Helper()
	text := os.Getenv("DOCENT_SIM_SEEDS")
	if text == "" {
		return some
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// In no schedule does anybody hold while another has not been told, or has a
// deadline to come.
func TestLeaseSchedules(t *testing.T) {
	t.Parallel()
	n, granted, lost := seeds(t, 60), 0, 0
	for seed := range n {
		a := play(t, uint64(seed), client.LeasePolicy{})
		granted, lost = granted+a.granted, lost+a.lost
		if len(a.overlaps)+len(a.deadlines) > 0 {
			t.Errorf("seed %d: %v %v", seed, a.overlaps, a.deadlines)
		}
	}
	t.Logf("%d schedules, %d grants, %d holds lost", n, granted, lost)
	if granted < 4*n || lost < n/4 {
		t.Errorf("%d grants and %d losses in %d schedules: nothing was tested", granted, lost, n)
	}
}

// With pings for proof the same schedules let two hold, so the judge can tell.
func TestLeaseSchedulesWithPings(t *testing.T) {
	t.Parallel()
	n, overlaps := 40, 0
	for seed := range n {
		overlaps += len(play(t, uint64(seed), client.LeasePolicy{Heartbeat: client.HeartbeatPings}).overlaps)
	}
	t.Logf("%d schedules, %d times two held", n, overlaps)
	if overlaps == 0 {
		t.Error("nobody ever held beside another")
	}
}
