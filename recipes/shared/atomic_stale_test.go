package shared_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
)

// What another client wrote before the operation began is no contention: it costs no
// try, although the number was known from the operation before.
func TestAtomicWrittenBefore(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.long(r.Connect("a"), shared.WithTries(retry.None())), r.long(r.Connect("b"))
		for want := int64(1); want < 7; want += 2 {
			v, err := a.Increment(r.Ctx)
			if err != nil || v.PostValue != want || v.Stats.OptimisticTries != 1 {
				r.Errorf("%+v, %v, want %d", v, err, want)
			}
			time.Sleep(300 * time.Millisecond)
			_, err = b.Increment(r.Ctx)
			r.Check(err)
			time.Sleep(300 * time.Millisecond)
		}
		r.rested()
	})
}
