package recipes_test

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// One collection frees what a released hold refers to. Otherwise each collection keeps
// all that the holds since the one before refer to, connections among it.
//
//nolint:paralleltest // other tests would collect as well
func TestReleasedHoldIsCollectedAtOnce(t *testing.T) {
	const holds = 30
	freed := make(chan struct{}, holds)
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		for i := range holds {
			type value struct{ _ [1 << 10]byte }
			type key struct{}
			v := new(value)
			runtime.AddCleanup(v, func(int) { freed <- struct{}{} }, 0)
			h, err := m.Acquire(context.WithValue(r.Ctx, key{}, v))
			r.Check(err)
			if i%2 == 0 {
				r.Check(h.Close())
			} else {
				r.Check(h.Release(r.Ctx))
			}
		}
	})
	runtime.GC()
	limit := time.After(10 * time.Second)
	for n := range holds - 3 { // the last ones may be on a stack
		select {
		case <-freed:
		case <-limit:
			t.Fatalf("%d of %d released holds were collected", n, holds)
		}
	}
}
