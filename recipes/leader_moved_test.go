package recipes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// nodeOf is the node of the participant with that id.
func (r *rig) nodeOf(e *recipes.Election, id string) string {
	r.Helper()
	all, err := e.Participants(r.Ctx)
	r.Check(err)
	for _, p := range all {
		if p.ID == id {
			return p.Path
		}
	}
	r.Fatalf("%q does not stand in line: %v", id, all)
	return ""
}

// An operator deletes the node of a participant that waits. It stands in line again at
// once, while the leader and the participant before it stay.
func TestParticipantLooksAfterItsOwnNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		one := r.latch(r.Connect("a"), "a")
		first := r.leads(one)
		second := r.campaign(r.Ctx, r.latch(r.Connect("b"), "b"), 2)
		third := r.campaign(r.Ctx, r.latch(r.Connect("c"), "c"), 3)
		for _, id := range []string{"c", "b"} {
			r.Check(r.Srv.Delete(r.nodeOf(one, id)))
			time.Sleep(100 * time.Millisecond)
			r.inElection(3)
		}
		r.Check(first.Close())
		for _, wait := range []<-chan campaigned{third, second} {
			next := <-wait
			r.Check(next.err)
			r.Check(next.term.Close())
		}
		r.inElection(0)
		if n := r.Srv.WatchCount(); n != 0 {
			r.Errorf("watches left: %v", r.Srv.Watches())
		}
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// The context of a hand-over ends while its transaction is applied. The term goes on, and
// the participant that was moved stands in line again.
func TestHandOverEndsWhileItMoves(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		one := r.latch(r.Connect("a"), "a")
		term := r.leads(one)
		second := r.campaign(r.Ctx, r.latch(r.Connect("b"), "b"), 2)
		third := r.campaign(r.Ctx, r.latch(r.Connect("c"), "c"), 3)
		r.Srv.DelayReply(zktest.Match{Client: "a", Op: zktest.OpMulti}, 2*time.Second)
		testrig.WantErr(t, term.HandOver(r.Within(time.Second), "c"), context.DeadlineExceeded)
		r.Check(term.Err())
		r.inElection(3)
		if ids := r.ids(one); ids[1] != "c" || ids[2] != "b" {
			r.Errorf("in line: %v", ids)
		}
		r.Check(term.Close())
		for _, wait := range []<-chan campaigned{third, second} {
			next := <-wait
			r.Check(next.err)
			r.Check(next.term.Close())
		}
		r.inElection(0)
	})
}

// The preferred process dies before it leads, and again whenever it was started. The
// others wait for one of its sessions to end, and then lead.
func TestPreferredThatDies(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		prefer := recipes.WithPreferred("best")
		first := r.leads(r.latch(r.Connect("first"), "first", prefer))
		var waits []<-chan campaigned
		for i := range 3 {
			waits = append(waits, r.campaign(r.Ctx, r.latch(r.Connect(name(i)), name(i), prefer), i+2))
		}
		ctx, cancel := context.WithCancel(r.Ctx)
		start := func(i int) {
			id := fmt.Sprintf("best%d", i)
			e := r.latch(r.Connect(id), "best", prefer)
			go func() { _, _ = e.Campaign(ctx) }()
			time.Sleep(100 * time.Millisecond)
			r.Srv.Client(id).Partition()
		}
		start(0)
		r.Check(first.Release(r.Ctx))
		released := time.Now()
		led := make(chan campaigned, len(waits))
		for _, w := range waits {
			go func() { led <- <-w }()
		}
		var next campaigned
		for i := 1; next.term == nil; i++ {
			select {
			case next = <-led:
				r.Check(next.err)
			case <-time.After(8 * time.Second):
				start(i)
			}
		}
		if took := time.Since(released); took > testrig.SessionTimeout+2*time.Second {
			r.Errorf("no leader for %v", took)
		}
		cancel()
		r.Check(next.term.Close())
		for range 2 {
			next = <-led
			r.Check(next.err)
			r.Check(next.term.Close())
		}
	})
}

// A mutex on the path of a selector is not moved, however young its node is: the term
// goes on, and the mutex is granted next, with no leader beside it.
func TestHandOverPassesNoMutex(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		selector := func(c *client.Client, id string) *recipes.Election {
			s, err := recipes.NewLeaderSelector(c, dir, recipes.WithID(id))
			r.Check(err)
			return s.Election
		}
		c := r.Connect("m")
		term := r.leads(selector(r.Connect("a"), "a"))
		got := acquire(r.Ctx, r.mutex(c))
		for len(r.line()) < 2 {
			time.Sleep(100 * time.Microsecond)
		}
		last := make(chan campaigned, 1)
		e := selector(r.Connect("b"), "b")
		go func() {
			t, err := e.Campaign(r.Ctx)
			last <- campaigned{t, err}
		}()
		for len(r.line()) < 3 {
			time.Sleep(100 * time.Microsecond)
		}
		testrig.WantErr(t, term.HandOver(r.Ctx, "b"), recipes.ErrNotMovable)
		r.Check(term.Err())
		r.Check(term.Close())
		h := <-got
		r.Check(h.err)
		time.Sleep(time.Second)
		r.Check(h.hold.Err())
		select {
		case next := <-last:
			r.Errorf("leads beside the mutex: %+v", next)
		default:
		}
		r.Check(h.hold.Close())
		next := <-last
		r.Check(next.err)
		r.Check(next.term.Close())
		r.empty()
	})
}
