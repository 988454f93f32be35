package load_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/bench/internal/load"
)

// slow is a lock that is always free and takes its time.
type slow struct{ acquire, release time.Duration }

func (l slow) Acquire(ctx context.Context) error { return wait(ctx, l.acquire) }
func (l slow) Release(ctx context.Context) error { return wait(ctx, l.release) }

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// started starts one contender of a lock that takes 2 s to acquire and 1 s to release.
func started(t *testing.T, polls bool) *load.Engine {
	t.Helper()
	spec := &load.Spec{Kind: load.Mutex, Contenders: 1, Sessions: 1, Locks: 1}
	field := &load.Field{
		Contenders: []load.Contender{{Lock: slow{2 * time.Second, time.Second}}},
		Polls:      polls,
		Close:      func(context.Context) {},
	}
	e := load.Start(t.Context(), spec, field)
	t.Cleanup(func() {
		e.Quit(t.Context())
		e.Open() // so that its goroutine ends
		synctest.Wait()
	})
	return e
}

// TestClock: the clock stands still while the gate is closed, and so does the contender.
func TestClock(t *testing.T) {
	t.Parallel()
	for _, polls := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := started(t, polls)
			time.Sleep(time.Hour)
			e.Open()
			e.Begin()
			time.Sleep(100 * time.Second)
			e.Close() // in the middle of something
			first := e.End()
			time.Sleep(time.Hour)
			if again := e.End(); first.Nanos != int64(100*time.Second) || again.Nanos != first.Nanos {
				t.Errorf("polls %v: %d ns, and an hour later %d, want 100 s", polls, first.Nanos, again.Nanos)
			}
			if first.Cycles < 32 || first.Cycles > 34 {
				t.Errorf("polls %v: %d cycles of 3 s in 100 s", polls, first.Cycles)
			}
			e.Begin()
			time.Sleep(time.Hour)
			if n := e.Count(); n != 0 {
				t.Errorf("polls %v: %d cycles while the gate was closed", polls, n)
			}
			e.Open()
			time.Sleep(10 * time.Second)
			second := e.End()
			if second.Nanos != int64(10*time.Second) {
				t.Errorf("polls %v: %d ns in the second round", polls, second.Nanos)
			}
			for _, took := range append(first.Cycle, second.Cycle...) {
				if took < 0 || took > int64(3*time.Second) {
					t.Errorf("polls %v: a cycle of %v", polls, time.Duration(took))
				}
			}
		})
	}
}
