package zkserver_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// TestFollowerIsNotHeard cuts the way from a follower to its leader only.
func TestFollowerIsNotHeard(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a, b := on(t, e, "a", 1), on(t, e, "b", 2)
		e.CutOneWay(1, 3)
		start := time.Now()
		must(t, b, 1, create("/b"), 0)
		must(t, a, 3, exists("/b"), 0) // commits get here
		if _, err := a.send(1, create("/a")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(oneTick)
		must(t, b, 3, exists("/a"), -101)
		dropped(t, a, time.Minute)
		if took := time.Since(start); took < syncTime-oneTick || took > syncTime+oneTick {
			t.Errorf("dropped after %v, want when the leader has given the follower up", took)
		}
		must(t, b, 3, exists("/a"), -101)
		if e.Leader().ID() != 3 || e.Server(1).Serving() {
			t.Error("the leader has gone, or the follower has not noticed")
		}
		e.Heal()
		time.Sleep(time.Second)
		must(t, on(t, e, "c", 1), 3, exists("/b"), 0)
		sameState(t, e)
	})
}

// TestFollowerDoesNotHear cuts the way from the leader to a follower only.
func TestFollowerDoesNotHear(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a, b := on(t, e, "a", 1), on(t, e, "b", 2)
		e.CutOneWay(3, 1)
		start := time.Now()
		must(t, b, 1, create("/b"), 0)
		must(t, a, 3, exists("/b"), -101) // the past
		if _, err := a.send(1, create("/a")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(oneTick)
		must(t, b, 3, exists("/a"), 0) // done, though no answer comes
		dropped(t, a, time.Minute)
		if took := time.Since(start); took < syncTime-oneTick || took > syncTime+oneTick {
			t.Errorf("dropped after %v, want the sync limit", took)
		}
		e.Heal()
		time.Sleep(time.Second)
		must(t, on(t, e, "c", 1), 3, exists("/a"), 0)
		sameState(t, e)
	})
}

// TestOneWayCutDeposesLeader lets a leader send and not hear.
func TestOneWayCutDeposesLeader(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		e.CutOneWay(1, 3)
		e.CutOneWay(2, 3)
		if e.Leader() != nil {
			t.Error("a leader whose followers it does not hear has a quorum")
		}
		start := time.Now()
		l, err := e.AwaitLeader(t.Context())
		if err != nil || l.ID() == 3 {
			t.Fatalf("leader %v, %v", l, err)
		}
		if took := time.Since(start); took < syncTime-oneTick || took > syncTime+2*oneTick {
			t.Errorf("a new leader after %v", took)
		}
	})
}

// TestShortHaltLosesNothing lets a follower and then the leader stand still.
func TestShortHaltLosesNothing(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		for _, i := range []int{1, 3} {
			a := on(t, e, "a", i)
			e.Server(i).Halt()
			if _, err := a.send(1, sequentialAt("/n")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * oneTick)
			e.Server(i).Continue()
			if got, err := a.receive(); err != nil || got.err != 0 {
				t.Errorf("member %d answers %+v, %v", i, got, err)
			}
		}
		if l := e.Leader(); l == nil || l.ID() != 3 {
			t.Errorf("leader %v", l)
		}
		sameState(t, e)
	})
}

// TestHaltedLeaderWakesUp lets a leader stand still until another one leads: it
// wakes up in the past, and for a moment it serves it.
func TestHaltedLeaderWakesUp(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a := on(t, e, "a", 3)
		e.Server(3).Halt()
		l, err := e.AwaitLeader(t.Context())
		if err != nil || l.ID() == 3 {
			t.Fatalf("leader %v, %v", l, err)
		}
		must(t, on(t, e, "b", 1), 1, create("/new"), 0)
		if _, err := a.send(3, exists("/new")); err != nil {
			t.Fatal(err)
		}
		silent(t, a, 3*oneTick)
		e.Server(3).Continue()
		if got, err := a.receive(); err != nil || got.err != -101 {
			t.Errorf("the deposed leader answers %+v, %v, want its own past", got, err)
		}
		if took := dropped(t, a, time.Minute); took > oneTick {
			t.Errorf("it has served for %v", took)
		}
		time.Sleep(time.Second)
		sameState(t, e)
	})
}

// TestHealedCutTellsSignsOfLifeFirst heals a cut just before a session would be
// over at the leader. The pings that were held back are answered before anything
// else, with the signs of life of the meantime.
func TestHealedCutTellsSignsOfLifeFirst(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a := memoryConn(t, e.Client("a").To(1))
		if err := a.handshake(0, 4000, 0, nil16()); err != nil {
			t.Fatal(err)
		}
		must(t, a, 1, ephemeral("/a"), 0)
		e.Isolate(1)
		for range 48 { // the session ends with the tick after its four seconds
			time.Sleep(100 * time.Millisecond)
			must(t, a, 11, nil, 0)
		}
		e.Heal()
		time.Sleep(3 * oneTick)
		if n := len(e.Leader().Sessions()); n != 1 {
			t.Errorf("%d sessions, want a's own", n)
		}
	})
}
