package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// fleet is an ensemble of three in a bubble, with the tick of ensemble, which is
// ZooKeeper's default and that of the measured runs. The third member leads.
type fleet struct {
	*testing.T
	e       *zktest.Ensemble
	ctx     context.Context
	timeout time.Duration
	policy  client.LeasePolicy
}

func newFleet(t *testing.T, timeout time.Duration, policy client.LeasePolicy) *fleet {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return &fleet{T: t, ctx: ctx, timeout: timeout, policy: policy, e: zktest.NewEnsemble(t, members,
		zktest.WithTick(ensemble.tick), zktest.WithLatency(time.Microsecond, time.Millisecond))}
}

func (f *fleet) mutex(name, servers string) *recipes.InterProcessMutex {
	f.Helper()
	c := testrig.Connect(f.ctx, f.T, servers, f.e.Client(name).DialContext,
		client.WithSessionTimeout(f.timeout), client.WithLeasePolicy(f.policy), client.WithConnectTimeout(time.Hour),
		client.WithRand(func() float64 { return 0.999 })) // servers in the given order
	m, err := recipes.NewInterProcessMutex(c, "/locks/a")
	if err != nil {
		f.Fatal(err)
	}
	return m
}

// separation is a way to part a holder from its leader while both can be reached.
type separation struct {
	holder, waiter string // their servers
	strike         func(e *zktest.Ensemble)
}

// The runs r1 and r13 on real servers: there two clients held for seconds.
var (
	partitionedFollower = separation{"zk1:2181", "zk3:2181", func(e *zktest.Ensemble) { e.Isolate(1) }}
	deposedLeader       = separation{"zk3:2181", "zk1:2181,zk2:2181", func(e *zktest.Ensemble) { depose(e, e.Server(3)) }}
)

// acquires calls for the lock, and sends how that ended.
func acquires(ctx context.Context, m *recipes.InterProcessMutex) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := m.Acquire(ctx)
		done <- err
	}()
	return done
}

// slack lets one client hold and another wait, and strikes when the hold is that
// old. It returns how long the holder had been told before the waiter held, and
// how long the holder's deadline had passed.
func (f *fleet) slack(ft separation, age time.Duration) (told, deadline time.Duration) {
	f.Helper()
	a, b := f.mutex("a", ft.holder), f.mutex("b", ft.waiter)
	h, err := a.Acquire(f.ctx)
	if err != nil {
		f.Fatal(err)
	}
	next := acquires(f.ctx, b)
	time.Sleep(age)
	if err := h.Err(); err != nil {
		f.Fatalf("lost before anything happened: %v", err)
	}
	ft.strike(f.e)
	ended := make(chan time.Time, 1)
	go func() {
		<-h.Context().Done()
		ended <- time.Now()
		_ = h.Close()
	}()
	err = <-next
	granted := time.Now()
	if err != nil {
		f.Fatal(err)
	}
	at := <-ended
	f.e.Heal()
	var e *client.LeaseExpiredError
	switch {
	case errors.As(context.Cause(h.Context()), &e):
		deadline = granted.Sub(e.Deadline)
	case f.policy.Heartbeat == client.HeartbeatWrites:
		f.Fatalf("told %v", context.Cause(h.Context()))
	}
	return granted.Sub(at), deadline
}

// slacks plays a fault at many moments of the servers' and the lease's rhythm.
func slacks(t *testing.T, ft separation, timeout time.Duration, policy client.LeasePolicy) (told, deadline []time.Duration) {
	t.Helper()
	for phase := range 24 {
		synctest.Test(t, func(t *testing.T) {
			a, b := newFleet(t, timeout, policy).slack(ft, time.Duration(phase)*timeout/16+time.Duration(phase)*17*time.Millisecond)
			told, deadline = append(told, a), append(deadline, b)
		})
	}
	slices.Sort(told)
	slices.Sort(deadline)
	return told, deadline
}

var measuredTimeouts = []time.Duration{4 * time.Second, 6 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second}

// A holder is parted from its leader, and can still read its own node. It hears
// of that before the next waiter holds. The waiter never holds before the
// holder's deadline.
func TestHolderIsToldFirst(t *testing.T) {
	t.Parallel()
	for name, ft := range map[string]separation{"partitioned follower": partitionedFollower, "deposed leader": deposedLeader} {
		for _, timeout := range measuredTimeouts {
			t.Run(fmt.Sprintf("%s, T=%v", name, timeout), func(t *testing.T) {
				t.Parallel()
				wantToldFirst(t, ft, timeout, client.LeasePolicy{})
			})
			t.Run(fmt.Sprintf("%s, T=%v, longest period", name, timeout), func(t *testing.T) {
				t.Parallel()
				wantToldFirst(t, ft, timeout, longestPeriod)
			})
		}
	}
}

func wantToldFirst(t *testing.T, ft separation, timeout time.Duration, policy client.LeasePolicy) {
	t.Helper()
	told, deadline := slacks(t, ft, timeout, policy)
	n := len(told)
	t.Logf("told %v before at least, %v in the median; deadline passed %v before at least, %v in the median",
		told[0].Round(time.Millisecond), told[n/2].Round(time.Millisecond),
		deadline[0].Round(time.Millisecond), deadline[n/2].Round(time.Millisecond))
	if told[0] <= 0 || deadline[0] < 0 {
		t.Errorf("told %v before the next holder, deadline passed %v before", told[0], deadline[0])
	}
}

// With pings for proof the faults show, so the test above can fail; they stay
// within what the policy says.
func TestPingsLetTwoHold(t *testing.T) {
	t.Parallel()
	pings := client.LeasePolicy{Heartbeat: client.HeartbeatPings}
	for name, ft := range map[string]separation{"partitioned follower": partitionedFollower, "deposed leader": deposedLeader} {
		for _, timeout := range measuredTimeouts[:3] {
			t.Run(fmt.Sprintf("%s, T=%v", name, timeout), func(t *testing.T) {
				t.Parallel()
				told, _ := slacks(t, ft, timeout, pings)
				worst := -told[0]
				t.Logf("both held for %v at most", worst.Round(time.Millisecond))
				if worst < time.Second || worst > pings.Exposure(timeout) {
					t.Errorf("both held for %v, want more than 1s and no more than %v", worst, pings.Exposure(timeout))
				}
			})
		}
	}
}

// If another server can be reached in time, the hold is kept. The client gives up
// the connection whose heartbeat is not answered for one to that server.
func TestHoldSurvivesAPartitionedFollower(t *testing.T) {
	t.Parallel()
	for _, timeout := range measuredTimeouts[2:] {
		t.Run(timeout.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, timeout, client.LeasePolicy{})
				h, err := f.mutex("a", "zk1:2181,zk2:2181,zk3:2181").Acquire(f.ctx)
				if err != nil {
					t.Fatal(err)
				}
				next := acquires(f.ctx, f.mutex("b", "zk3:2181"))
				time.Sleep(timeout)
				f.e.Isolate(1)
				select {
				case <-h.Jeopardy():
				case <-h.Context().Done():
					t.Fatalf("lost without a warning: %v", context.Cause(h.Context()))
				}
				time.Sleep(2 * timeout)
				if err := h.Err(); err != nil || len(next) != 0 {
					t.Fatalf("lost: %v", err)
				}
				if err := h.Release(f.ctx); err != nil {
					t.Error(err)
				}
				if err := <-next; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
