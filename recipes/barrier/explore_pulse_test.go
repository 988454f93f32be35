package barrier_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/explore"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

var errWaitsOn = errors.New("waits on, though the barrier was removed after its first look")

// TestExploreOrdersOfWaits plays a wait beside a removal and a set, in every order of requests,
// replies and events within a bound of switches.
func TestExploreOrdersOfWaits(t *testing.T) {
	t.Parallel()
	switches := 3
	if barrier.UnderRace {
		switches = 1
	}
	report, err := explore.Orders{Switches: switches}.Play(func(o *explore.Order) (err error) {
		synctest.Test(t, func(t *testing.T) { err = playPulse(t, o) })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Errorf("%v", f)
	}
	t.Logf("%d orders of up to %d steps, complete %v", report.Runs, report.Longest, report.Complete)
}

// playPulse is one order. The reference is the order of the server's changes.
func playPulse(t *testing.T, o *explore.Order) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	srv := zktest.NewServer(t, zktest.WithSeed(1))
	if err := errors.Join(srv.Create("/gates", nil), srv.Create(gate, nil)); err != nil {
		t.Fatal(err)
	}
	var clients []*client.Client
	var barriers []*barrier.DistributedBarrier
	for _, name := range []string{"a", "b"} {
		c := testrig.Connect(ctx, t, "zk", srv.Client(name).DialContext, client.WithRand(func() float64 { return 0.5 }))
		b, err := barrier.NewDistributedBarrier(c, gate)
		if err != nil {
			t.Fatal(err)
		}
		clients, barriers = append(clients, c), append(barriers, b)
	}
	var mu sync.Mutex                           // guards the rest
	var first, late, removed, passed, over bool // late: the first look came after the removal
	srv.OnRequest(func(r zktest.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Client == "a" && r.Op == zktest.OpGetData && r.Path == gate {
			late = late || !first && removed
			first = true
		}
	})
	srv.OnCommit(func(c zktest.Commit) {
		mu.Lock()
		defer mu.Unlock()
		removed = removed || slices.Contains(c.Deleted, gate)
	})
	parked := srv.NewGate(zktest.Match{PathPrefix: gate}, true)
	var all sync.WaitGroup
	all.Go(func() {
		err := barriers[0].Wait(ctx)
		mu.Lock()
		defer mu.Unlock()
		passed = err == nil
	})
	all.Go(func() {
		err := errors.Join(barriers[1].Remove(ctx), barriers[1].Set(ctx))
		mu.Lock()
		defer mu.Unlock()
		over = err == nil
	})
	explore.Programs[zktest.Parked]{
		Gate: parked, Rest: synctest.Wait,
		Over: func() bool {
			mu.Lock()
			defer mu.Unlock()
			return passed && over
		},
		Idle: func() { time.Sleep(time.Second) }, Idles: 3,
	}.Play(o)
	mu.Lock()
	waits := !passed && !late
	mu.Unlock()
	cancel()
	parked.Open()
	for _, c := range clients {
		_ = c.Close()
	}
	all.Wait()
	if waits {
		return errWaitsOn
	}
	return nil
}
