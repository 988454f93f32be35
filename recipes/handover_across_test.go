package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
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
		c := r.Connect(name)
		if i == 0 {
			holder = r.held(r.mutex(c))
			continue
		}
		ctx, cancel := context.WithCancel(r.Ctx)
		waits, giveUp = append(waits, acquire(ctx, r.mutex(c))), append(giveUp, cancel)
		time.Sleep(5 * time.Millisecond)
	}
	return holder, waits, giveUp
}

// lists counts the lists of a client.
func (r *rig) lists(client string) (n int) {
	for _, q := range r.Srv.Log() {
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
			r.Check(h.Release(r.Ctx))
			res := <-waits[i]
			r.Check(res.err)
			if after := r.lists(name); after != before {
				r.Errorf("%s listed after the end of its predecessor", name)
			}
			h, listed[name] = res.hold, before
		}
		r.Check(h.Release(r.Ctx))
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
					testrig.WantErr(t, (<-waits[i]).err, context.Canceled)
				}
				time.Sleep(time.Second)
				select {
				case res := <-last:
					r.Fatalf("granted while the lock is held: %v, %v", res.hold, res.err)
				default:
				}
				for i, wait := range waits {
					if i != quitters[0] && i != quitters[len(quitters)-1] {
						r.Check(h.Release(r.Ctx))
						res := <-wait
						r.Check(res.err)
						h = res.hold
					}
				}
				r.Check(h.Release(r.Ctx))
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
		if n := r.Srv.WatchCount(); n != 3+2+1 { // own nodes, those directly ahead, that before
			r.Errorf("%d watches", n)
		}
		giveUp[1]()
		testrig.WantErr(t, (<-waits[1]).err, context.Canceled)
		time.Sleep(3 * time.Second) // watches without a reader stay for a second
		if n := r.Srv.WatchCount(); n != 2+1 {
			r.Errorf("%d watches after the last waiter has gone", n)
		}
		r.Check(h.Release(r.Ctx))
		r.Check((<-waits[0]).hold.Release(r.Ctx))
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
			for _, node := range r.Srv.Children(dir) {
				if path := dir + "/" + node; path != h.Path() {
					r.Check(r.Srv.Delete(path))
				}
			}
			r.Check(r.Srv.Delete(h.Path()))
			if res := <-waits[0]; !errors.Is(res.err, recipes.ErrNodeDeleted) {
				r.Errorf("acquire: %v, %v", res.hold, res.err)
			}
			_ = h.Release(r.Ctx)
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
		for _, node := range r.Srv.Children(dir) {
			if path := dir + "/" + node; path != h.Path() {
				r.Check(r.Srv.Delete(path))
			}
		}
		r.Check(h.Release(r.Ctx))
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

// After a lost connection a waiter watches again, and lists once.
func TestWaiterAfterReconnection(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h, waits, _ := r.oneEach("a", "b", "c")
		time.Sleep(2 * time.Second) // they watch their own nodes
		watches := r.Srv.WatchCount()
		r.Srv.CutAll()
		time.Sleep(5 * time.Second)
		for _, name := range []string{"b", "c"} {
			if n := r.lists(name); n > 2 {
				r.Errorf("%d lists of %s", n, name)
			}
		}
		if n := r.Srv.WatchCount(); n != watches {
			r.Errorf("%d watches after the reconnection, %d before", n, watches)
		}
		r.Check(h.Release(r.Ctx))
		b := <-waits[0]
		r.Check(b.hold.Release(r.Ctx))
		r.Check((<-waits[1]).hold.Release(r.Ctx))
	})
}

// A waiter whose node another client has replaced is told.
func TestWaiterReplaced(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h, waits, _ := r.oneEach("a", "b")
		time.Sleep(time.Second)
		for _, node := range r.Srv.Children(dir) {
			if path := dir + "/" + node; path != h.Path() {
				r.Check(r.Srv.Delete(path))
				r.Check(r.Srv.Create(path, nil))
			}
		}
		testrig.WantErr(t, (<-waits[0]).err, recipes.ErrNodeDeleted)
		r.Check(h.Release(r.Ctx))
	})
}

// A predecessor may go between the list and the read. The watch on the contender before
// it is given up then.
func TestPredecessorGoneBeforeTheRead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h, waits, giveUp := r.oneEach("a", "b")
		time.Sleep(time.Second)
		c := r.Connect("c")
		r.Srv.DelayReply(zktest.Match{Client: "c", Op: zktest.OpGetChildren2}, 50*time.Millisecond)
		time.AfterFunc(20*time.Millisecond, giveUp[0])
		ctx, cancel := context.WithCancel(r.Ctx)
		last := acquire(ctx, r.mutex(c))
		testrig.WantErr(t, (<-waits[0]).err, context.Canceled)
		time.Sleep(time.Second)
		cancel()
		testrig.WantErr(t, (<-last).err, context.Canceled)
		time.Sleep(3 * time.Second)
		if n := r.Srv.WatchCount(); n != 1 { // of the holder
			r.Errorf("%d watches: %v", n, r.Srv.Watches())
		}
		r.Check(h.Release(r.Ctx))
	})
}

// A wait that ends while the contender before the predecessor is read still says what it
// knows of the predecessor.
func TestWaitErrorOfWhatWasRead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h, waits, giveUp := r.oneEach("a", "b", "c")
		d := r.Connect("d")
		ctx, cancel := context.WithCancel(r.Ctx)
		last := acquire(ctx, r.mutex(d))
		time.Sleep(100 * time.Millisecond)
		r.Srv.StallReply(zktest.Match{Client: "d", Op: zktest.OpGetData, Path: h.Path()})
		giveUp[0]() // the last but one before d
		time.Sleep(100 * time.Millisecond)
		cancel()
		var said *recipes.WaitError
		if err := (<-last).err; !errors.As(err, &said) || said.Ahead.Unreadable || said.Ahead.Session == 0 {
			r.Errorf("%v", err)
		}
		r.Check(h.Release(r.Ctx))
		r.Check((<-waits[1]).hold.Release(r.Ctx))
	})
}
