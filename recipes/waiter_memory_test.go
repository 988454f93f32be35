package recipes_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A goroutine that waits for a lock costs less than 2 KiB of heap. That counts what the
// server of the test keeps for it, and not its stack. No other test may run meanwhile.
func TestWaiterMemory(t *testing.T) { //nolint:paralleltest // it reads the heap of the process
	bubble(t, func(r *rig) {
		const waiters = 4000
		m := r.mutex(r.Connect("a"))
		h := r.held(m)
		ctx, cancel := context.WithCancel(r.Ctx)
		defer cancel()
		before := heap()
		var all sync.WaitGroup
		for range waiters {
			all.Go(func() {
				if _, err := m.Acquire(ctx); err == nil {
					t.Error("a second holder")
				}
			})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		each := (heap() - before) / waiters
		t.Logf("%d bytes of heap for each of %d waiters", each, waiters)
		if each >= 2<<10 {
			t.Errorf("%d bytes of heap for each waiter", each)
		}
		cancel()
		all.Wait()
		r.Check(h.Release(r.Ctx))
		r.empty()
	})
}

// heap returns how many bytes of heap are in use, without stacks.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
