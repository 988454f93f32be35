package recipes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// nodeOf is the node of the participant with that id.
func (r *rig) nodeOf(e *recipes.Election, id string) string {
	r.Helper()
	all, err := e.Participants(r.ctx)
	r.check(err)
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
		one := r.latch(r.connect("a"), "a")
		first := r.leads(one)
		second := r.campaign(r.ctx, r.latch(r.connect("b"), "b"), 2)
		third := r.campaign(r.ctx, r.latch(r.connect("c"), "c"), 3)
		for _, id := range []string{"c", "b"} {
			r.check(r.srv.Delete(r.nodeOf(one, id)))
			time.Sleep(100 * time.Millisecond)
			r.inElection(3)
		}
		r.check(first.Close())
		for _, wait := range []<-chan campaigned{third, second} {
			next := <-wait
			r.check(next.err)
			r.check(next.term.Close())
		}
		r.inElection(0)
		if n := r.srv.WatchCount(); n != 0 {
			r.Errorf("watches left: %v", r.srv.Watches())
		}
		wantNoGoroutine(t)
	})
}

// The context of a hand-over ends while its transaction is applied. The term goes on, and
// the participant that was moved stands in line again.
func TestHandOverEndsWhileItMoves(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		one := r.latch(r.connect("a"), "a")
		term := r.leads(one)
		second := r.campaign(r.ctx, r.latch(r.connect("b"), "b"), 2)
		third := r.campaign(r.ctx, r.latch(r.connect("c"), "c"), 3)
		r.srv.DelayReply(zktest.Match{Client: "a", Op: zktest.OpMulti}, 2*time.Second)
		wantErr(t, term.HandOver(r.within(time.Second), "c"), context.DeadlineExceeded)
		r.check(term.Err())
		r.inElection(3)
		if ids := r.ids(one); ids[1] != "c" || ids[2] != "b" {
			r.Errorf("in line: %v", ids)
		}
		r.check(term.Close())
		for _, wait := range []<-chan campaigned{third, second} {
			next := <-wait
			r.check(next.err)
			r.check(next.term.Close())
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
		first := r.leads(r.latch(r.connect("first"), "first", prefer))
		var waits []<-chan campaigned
		for i := range 3 {
			waits = append(waits, r.campaign(r.ctx, r.latch(r.connect(name(i)), name(i), prefer), i+2))
		}
		ctx, cancel := context.WithCancel(r.ctx)
		start := func(i int) {
			id := fmt.Sprintf("best%d", i)
			e := r.latch(r.connect(id), "best", prefer)
			go func() { _, _ = e.Campaign(ctx) }()
			time.Sleep(100 * time.Millisecond)
			r.srv.Client(id).Partition()
		}
		start(0)
		r.check(first.Release(r.ctx))
		released := time.Now()
		led := make(chan campaigned, len(waits))
		for _, w := range waits {
			go func() { led <- <-w }()
		}
		var next campaigned
		for i := 1; next.term == nil; i++ {
			select {
			case next = <-led:
				r.check(next.err)
			case <-time.After(8 * time.Second):
				start(i)
			}
		}
		if took := time.Since(released); took > sessionTimeout+2*time.Second {
			r.Errorf("no leader for %v", took)
		}
		cancel()
		r.check(next.term.Close())
		for range 2 {
			next = <-led
			r.check(next.err)
			r.check(next.term.Close())
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
			r.check(err)
			return s.Election
		}
		c := r.connect("m")
		term := r.leads(selector(r.connect("a"), "a"))
		got := acquire(r.ctx, r.mutex(c))
		for len(r.line()) < 2 {
			time.Sleep(100 * time.Microsecond)
		}
		last := make(chan campaigned, 1)
		e := selector(r.connect("b"), "b")
		go func() {
			t, err := e.Campaign(r.ctx)
			last <- campaigned{t, err}
		}()
		for len(r.line()) < 3 {
			time.Sleep(100 * time.Microsecond)
		}
		wantErr(t, term.HandOver(r.ctx, "b"), recipes.ErrNotMovable)
		r.check(term.Err())
		r.check(term.Close())
		h := <-got
		r.check(h.err)
		time.Sleep(time.Second)
		r.check(h.hold.Err())
		select {
		case next := <-last:
			r.Errorf("leads beside the mutex: %+v", next)
		default:
		}
		r.check(h.hold.Close())
		next := <-last
		r.check(next.err)
		r.check(next.term.Close())
		r.empty()
	})
}
