package simulation_test

import (
	"errors"

	sim "github.com/docent-go/docent/internal/simulation"
	"github.com/docent-go/docent/recipes"
)

// totals says how much a schedule tested.
type totals struct {
	Attempts, Grants, Waits, Busy, Reentries, Failed int
	SessionsLost, Suspensions, PartitionsHit         int
	RepliesLost, Dropped, Forced, HoldsLost, Refused int
}

// count adds an attempt that has ended.
func (t *totals) count(a *sim.Attempt) {
	t.Attempts++
	switch {
	case a.Outer != nil && a.Hold != nil:
		t.Reentries++
	case a.Hold != nil:
		t.Grants++
		if a.Call == "acquire" && a.Ended-a.Begun > 4*latencyHi {
			t.Waits++
		}
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
}
