package zkserver_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// TestLeaderRestartsBehindACut lets a leader end while a follower is cut off. The
// process comes back when the cut is over. The follower does not go on with a
// process that is no leader.
func TestLeaderRestartsBehindACut(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a, b := on(t, e, "a", 1), on(t, e, "b", 2)
		must(t, a, 1, create("/n"), 0)
		e.Isolate(1)
		must(t, b, 2, body("/n", int32(-1)), 0) // which the first does not hear
		e.Server(3).Stop()
		e.Heal()
		e.Server(3).Resume()
		if took := dropped(t, a, time.Minute); took > 10*time.Millisecond {
			t.Errorf("the follower went on for %v", took)
		}
		time.Sleep(time.Second) // the election
		must(t, on(t, e, "c", 1), 3, exists("/n"), -101)
	})
}

// TestHaltEndsBehindACut lets a follower go on that hears its leader and cannot
// answer it. The follower gets what was decided meanwhile, before what was
// decided later.
func TestHaltEndsBehindACut(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a, b := on(t, e, "a", 1), on(t, e, "b", 2)
		must(t, b, 1, create("/n"), 0)
		e.Server(1).Halt()
		must(t, b, 2, body("/n", int32(-1)), 0)
		e.CutOneWay(1, 3)
		e.Server(1).Continue()
		must(t, b, 1, create("/late"), 0)
		must(t, a, 3, exists("/late"), 0)
		must(t, a, 3, exists("/n"), -101)
		e.Heal()
		must(t, a, 3, exists("/n"), -101)
	})
}

// TestFormerLeaderTakesNothing lets a follower that hears nothing send a write to
// a leader that has stepped down, and is elected again: it never happens.
func TestFormerLeaderTakesNothing(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a := on(t, e, "a", 1)
		e.CutOneWay(3, 1)
		if err := e.ChangeLeader(3); err != nil {
			t.Fatal(err)
		}
		if _, err := a.send(1, create("/late")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the election
		must(t, on(t, e, "b", 2), 3, exists("/late"), -101)
		e.Heal()
		dropped(t, a, time.Second)
		time.Sleep(time.Second)
		must(t, on(t, e, "c", 1), 3, exists("/late"), -101)
	})
}
