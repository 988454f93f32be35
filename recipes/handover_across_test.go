package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
	"github.com/docent-go/docent/zktest"
)

// oneEach makes a holder and waiters of one mutex, a client each, in the order of names. Each
// waiter has seen its place.
func (r *rig) oneEach(names ...string) (*recipes.Hold, []<-chan result, []context.CancelFunc) {
	r.Helper()
	var holder *recipes.Hold
	var waits []<-chan result
	var giveUp []context.CancelFunc
	for i, name := range names {
		c := r.connect(name)
		if i == 0 {
			holder = r.held(r.mutex(c))
			continue
		}
		ctx, cancel := context.WithCancel(r.ctx)
		waits, giveUp = append(waits, acquire(ctx, r.mutex(c))), append(giveUp, cancel)
		time.Sleep(5 * time.Millisecond)
	}
	return holder, waits, giveUp
}

// lists counts the lists of a client.
func (r *rig) lists(client string) (n int) {
	for _, q := range r.srv.Log() {
		if q.Op == zktest.OpGetChildren2 && q.Client == client {
			n++
		}
	}
	return n
}

// A waiter lists when the contender before its predecessor goes, and not when its
// predecessor goes: that event is the grant.
func TestWaiterListsEarly(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h, waits, _ := r.oneEach("a", "b", "c", "d")
		listed := map[string]int{}
		for i, name := range []string{"b", "c", "d"} {
			time.Sleep(5 * time.Millisecond) // the list of the one behind
			before := r.lists(name)
			r.check(h.Release(r.ctx))
			res := <-waits[i]
			r.check(res.err)
			if after := r.lists(name); after != before {
				r.Errorf("%s listed after the end of its predecessor", name)
			}
			h, listed[name] = res.hold, before
		}
		r.check(h.Release(r.ctx))
		if listed["b"] != 1 || listed["c"] != 2 || listed["d"] != 2 { // the first is that of the acquire
			r.Errorf("lists %v", listed)
		}
		r.empty()
	})
}

// A predecessor, or the contender before it, that gives up hands nothing over.
func TestContendersAheadGiveUp(t *testing.T) {
	t.Parallel()
	for name, quitters := range map[string][]int{
		"predecessor": {1}, "the one before": {0}, "both": {0, 1}, "in turn": {1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				h, waits, giveUp := r.oneEach("a", "b", "c", "d")
				last := waits[2]
				for _, i := range quitters {
					giveUp[i]()
					wantErr(t, (<-waits[i]).err, context.Canceled)
				}
				time.Sleep(time.Second)
				select {
				case res := <-last:
					r.Fatalf("granted while the lock is held: %v, %v", res.hold, res.err)
				default:
				}
				for i, wait := range waits {
					if i != quitters[0] && i != quitters[len(quitters)-1] {
						r.check(h.Release(r.ctx))
						res := <-wait
						r.check(res.err)
						h = res.hold
					}
				}
				r.check(h.Release(r.ctx))
				r.empty()
			})
		})
	}
}

// A waiter that gives up leaves no watch on the contenders ahead.
func TestWaiterLeavesNoWatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h, waits, giveUp := r.oneEach("a", "b", "c")
		time.Sleep(time.Second)
		if n := r.srv.WatchCount(); n != 3+2+1 { // own nodes, those directly ahead, that before
			r.Errorf("%d watches", n)
		}
		giveUp[1]()
		wantErr(t, (<-waits[1]).err, context.Canceled)
		time.Sleep(3 * time.Second) // watches without a reader stay for a second
		if n := r.srv.WatchCount(); n != 2+1 {
			r.Errorf("%d watches after the last waiter has gone", n)
		}
		r.check(h.Release(r.ctx))
		r.check((<-waits[0]).hold.Release(r.ctx))
	})
}

// A waiter that knows that its node was deleted is not granted, also if it learns at the
// same moment that its predecessor has gone.
func TestDeletedWaiterIsNotGranted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for i := range 20 {
			names := []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}
			h, waits, _ := r.oneEach(names...)
			time.Sleep(seqqueue.WatchAfter)
			for _, node := range r.srv.Children("/locks/orders") {
				if path := "/locks/orders/" + node; path != h.Path() {
					r.check(r.srv.Delete(path))
				}
			}
			r.check(r.srv.Delete(h.Path()))
			if res := <-waits[0]; !errors.Is(res.err, recipes.ErrNodeDeleted) {
				r.Errorf("acquire: %v, %v", res.hold, res.err)
			}
			_ = h.Release(r.ctx)
		}
	})
}

// A waiter whose node was deleted a moment after it was made may still be granted. It is
// told as a holder of that age is.
func TestYoungWaiterDeleted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h, waits, _ := r.oneEach("a", "b")
		begun := time.Now()
		for _, node := range r.srv.Children("/locks/orders") {
			if path := "/locks/orders/" + node; path != h.Path() {
				r.check(r.srv.Delete(path))
			}
		}
		r.check(h.Release(r.ctx))
		res := <-waits[0]
		if res.err == nil {
			<-res.hold.Context().Done()
			res.err = res.hold.Err()
		}
		if took := time.Since(begun); took > seqqueue.WatchAfter+10*time.Millisecond || !errors.Is(res.err, recipes.ErrNodeDeleted) {
			t.Errorf("after %v: %v", took, res.err)
		}
		r.empty()
	})
}
