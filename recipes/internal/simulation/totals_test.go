package simulation_test

import (
	"errors"
	"testing"

	"github.com/docent-go/docent/recipes"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
)

// totals says how much a schedule tested.
type totals struct {
	Attempts, Grants, Waits, Busy, Reentries, Failed int
	SessionsLost, Suspensions, PartitionsHit         int
	RepliesLost, Dropped, Forced, HoldsLost, Refused int
	Closed                                           int
	Beside, Downgraded, Several, Hopeless, Few       int
	AtOnce, Withdrawn, Handed, Together              int // of permits
	HandedOver, Moved, Drained, Sights, Doubts       int
	Anew                                             int // directories that an operator has deleted
	Strange                                          int // refusals of another recipe on the path

	situations, words ledger
}

// counts is what there is for people: without the ledgers, which are long.
func (t *totals) counts() totals {
	short := *t
	short.situations, short.words = nil, nil
	return short
}

// granted adds a hold of several locks, or of one.
func (t *totals) granted(gs []*sim.Hold) {
	if len(gs) > 1 {
		t.Several++
	}
	if gs[0].From != nil {
		t.Downgraded++
	}
}

// count adds an attempt that has ended.
func (t *totals) count(a *sim.Attempt) {
	t.Attempts++
	switch {
	case a.Hopeless:
		t.Hopeless++
	case a.Outer != nil && a.Hold != nil:
		t.Reentries++
	case a.Hold != nil:
		t.Grants++
		if a.Call == "acquire" && a.Ended-a.Begun > 4*latencyHi {
			t.Waits++
		}
	case errors.Is(a.Err, recipes.ErrTooManyPermits):
		t.Few++
	case errors.Is(a.Err, recipes.ErrForeignLock):
		t.Strange++
	case errors.Is(a.Err, recipes.ErrBusy):
		t.Busy++
	default:
		t.Failed++
	}
}

func (t *totals) add(o totals) {
	t.Attempts += o.Attempts
	t.Grants += o.Grants
	t.Waits += o.Waits
	t.Busy += o.Busy
	t.Reentries += o.Reentries
	t.Failed += o.Failed
	t.SessionsLost += o.SessionsLost
	t.Suspensions += o.Suspensions
	t.PartitionsHit += o.PartitionsHit
	t.RepliesLost += o.RepliesLost
	t.Dropped += o.Dropped
	t.Forced += o.Forced
	t.HoldsLost += o.HoldsLost
	t.Refused += o.Refused
	t.Closed += o.Closed
	t.Beside += o.Beside
	t.Downgraded += o.Downgraded
	t.Several += o.Several
	t.Hopeless += o.Hopeless
	t.Few += o.Few
	t.AtOnce += o.AtOnce
	t.Withdrawn += o.Withdrawn
	t.Handed += o.Handed
	t.Together += o.Together
	t.HandedOver += o.HandedOver
	t.Moved += o.Moved
	t.Drained += o.Drained
	t.Sights += o.Sights
	t.Doubts += o.Doubts
	t.Anew += o.Anew
	t.Strange += o.Strange
}

// wantAtLeast fails when so many schedules should have tested more than they
// did. The limits are about a third of what is usual.
func (t *totals) wantAtLeast(tb testing.TB, schedules int) {
	tb.Helper()
	per := atLeast(tb, schedules)
	per("re-entries", t.Reentries, 8)
	per("old tokens that were refused", t.Refused, 0.005)
	per("directories that an operator has deleted", t.Anew, 0.1)
	t.wantFaults(tb, schedules)
}

// wantGames does so for the other kinds of locks.
func (t *totals) wantGames(tb testing.TB, schedules int) {
	tb.Helper()
	per := atLeast(tb, schedules)
	per("re-entries", t.Reentries, 2)
	per("grants beside others", t.Beside, 2)
	per("downgrades", t.Downgraded, 0.5)
	per("grants of several locks", t.Several, 4)
	per("re-entries that were refused", t.Hopeless, 4)
	per("permits that were granted at once", t.AtOnce, 2)
	per("permits that were withdrawn", t.Withdrawn, 2)
	per("permits that a release handed over", t.Handed, 0.7)
	per("permits that were granted to several together", t.Together, 0.25)
	t.wantFaults(tb, schedules)
}

// wantElections does so for elections.
func (t *totals) wantElections(tb testing.TB, schedules int) {
	tb.Helper()
	per := atLeast(tb, schedules)
	per("re-entries that were refused", t.Hopeless, 4)
	per("terms that were handed over", t.HandedOver, 0.3)
	per("participants that were moved behind", t.Moved, 0.04)
	per("terms that were drained", t.Drained, 2)
	per("leaderships that were observed", t.Sights, 80)
	per("observers in doubt", t.Doubts, 2)
	t.wantFaults(tb, schedules)
}

// wantFaults asks for contention and for every kind of trouble.
func (t *totals) wantFaults(tb testing.TB, schedules int) {
	tb.Helper()
	per := atLeast(tb, schedules)
	per("grants", t.Grants, 25)
	per("waits for others", t.Waits, 8)
	per("busy locks", t.Busy, 4)
	per("failed attempts", t.Failed, 8)
	per("lost sessions", t.SessionsLost, 0.4)
	per("suspended sessions", t.Suspensions, 1.5)
	per("partitions that were noticed", t.PartitionsHit, 0.4)
	per("lost replies", t.RepliesLost, 0.15)
	per("dropped requests", t.Dropped, 0.1)
	per("acts of force", t.Forced, 0.3)
	per("lost holds", t.HoldsLost, 0.1)
	per("clients closed at work", t.Closed, 0.05)
}

// atLeast returns what fails for less than so many in each schedule.
func atLeast(tb testing.TB, schedules int) func(what string, n int, least float64) {
	tb.Helper()
	return func(what string, n int, least float64) {
		tb.Helper()
		if n < int(least*float64(schedules)) {
			tb.Errorf("%d %s in %d schedules, want at least %v in each", n, what, schedules, least)
		}
	}
}
