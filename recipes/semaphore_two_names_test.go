package recipes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// A program names one semaphore through its client, and through a namespace of that client. An
// operator deletes the queue with the node of a waiter. New waiters make the queue again, and its
// numbers begin at 0 again. None of them may believe what was known of the queue before.
func TestSemaphoreOfTwoNamesInQueueMadeAgain(t *testing.T) {
	t.Parallel()
	for name, named := range map[string]bool{"one name": false, "two names": true} {
		t.Run(name, func(t *testing.T) { t.Parallel(); madeAgain(t, named) })
	}
}

func madeAgain(t *testing.T, named bool) {
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		one := r.semaphore(c, 1)
		two := r.semaphore(c, 1)
		if named {
			at := strings.LastIndexByte(pool, '/')
			in, err := c.Namespace(pool[1:at])
			r.Check(err)
			two, err = recipes.NewInterProcessSemaphoreV2(in, pool[at:], 1)
			r.Check(err)
		}
		waits := func(s *recipes.InterProcessSemaphoreV2) <-chan *recipes.Lease {
			got := make(chan *recipes.Lease, 1)
			go func() {
				h, err := s.Acquire(r.Ctx, 1)
				if err != nil {
					t.Log(err)
				}
				got <- h
			}()
			time.Sleep(20 * time.Millisecond)
			return got
		}

		first, err := two.Acquire(r.Ctx, 1) // has number 0
		r.Check(err)
		second, swept := waits(two), waits(two)
		r.Check(first.Release(r.Ctx))
		held := <-second
		for _, node := range r.Srv.Children(poolQueue) {
			r.Check(r.Srv.Delete(poolQueue + "/" + node))
		}
		r.Check(r.Srv.Delete(poolQueue))

		a, b, last := waits(one), waits(one), waits(two) // have numbers 0 to 2
		r.Check(held.Release(r.Ctx))
		if h := <-swept; h != nil {
			t.Fatalf("%v without a node in the queue", h)
		}
		held = <-a
		r.Check(held.Release(r.Ctx))
		held = <-b
		select {
		case other := <-last:
			if held.Err() == nil && other.Err() == nil {
				t.Errorf("held at once: %v and %v", held, other)
			}
			r.Check(other.Release(r.Ctx))
			r.Check(held.Release(r.Ctx))
		case <-time.After(100 * time.Millisecond):
			r.Check(held.Release(r.Ctx))
			r.Check((<-last).Release(r.Ctx))
		}
		r.nothingIn(poolQueue, poolLeases)
		testrig.WantNoGoroutine(t, ourFrames)
	})
}
