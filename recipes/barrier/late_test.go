package barrier_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

// A member comes into an open round, and that ends while the member withdraws. If the next
// round is opened with its node, the member passes with that round.
func TestRoundEndsBeforeWithdrawal(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		rounds := barrier.WithRounds()
		a, b, c := r.double(r.connect("a"), 2, rounds), r.double(r.connect("b"), 2, rounds), r.double(r.connect("c"), 2, rounds)
		held := func(m zktest.Match) (*zktest.Rule, func()) {
			until := make(chan struct{})
			return r.srv.BeforeApply(m, func(context.Context, zktest.Request) { <-until }), func() { close(until) }
		}
		// c sees no round, and makes its node when the others have begun to leave.
		_, join := held(zktest.Match{Client: "c", Op: zktest.OpCreate, PathPrefix: path})
		late := r.enter(r.ctx, c)
		time.Sleep(time.Second)
		ms := r.inside(r.enter(r.ctx, a), r.enter(r.ctx, b))
		_, leave := held(zktest.Match{Op: zktest.OpMulti, Path: ready})
		left := []<-chan error{r.leave(r.ctx, ms[0]), r.leave(r.ctx, ms[1])}
		time.Sleep(time.Second)
		rule, withdraw := held(zktest.Match{Client: "c", PathPrefix: path, Where: func(q zktest.Request) bool {
			return q.Op == zktest.OpDelete || q.Op == zktest.OpMulti
		}})
		join()
		r.check(rule.Wait(r.ctx, 1))
		leave()
		r.gone(left...)
		again := r.enter(r.ctx, a)
		time.Sleep(time.Second)
		withdraw()
		ms = r.inside(again, late)
		r.gone(r.leave(r.ctx, ms[0]), r.leave(r.ctx, ms[1]))
		r.clean()
	})
}

// A round is opened, and two of its members lose their sessions before they see that. They
// pass, also if all nodes of that time are gone and the third has begun to leave.
func TestSessionsLostWhenOpened(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]barrier.Option{nil, {barrier.WithRounds()}} {
		bubble(t, func(r *rig) {
			var all []<-chan entered
			for _, name := range []string{"a", "b"} {
				second := zktest.Match{Client: name, Op: zktest.OpGetData, Path: ready, Nth: 2}
				r.srv.BeforeApply(second, func(context.Context, zktest.Request) { r.srv.Client(name).Partition() })
				all = append(all, r.enter(r.ctx, r.double(r.connect(name), 3, opts...)))
			}
			r.standing(2)
			ms := r.inside(r.enter(r.ctx, r.double(r.connect("c"), 3, opts...)))
			waiting(r, all[0])
			r.standing(1)
			r.srv.Client("a").Heal()
			r.standing(2)
			ms = append(ms, r.inside(all[0])...)
			left := r.leave(r.ctx, ms[0])
			time.Sleep(time.Second)
			r.srv.Client("b").Heal()
			ms = append(ms, r.inside(all[1])...)
			r.gone(left, r.leave(r.ctx, ms[1]), r.leave(r.ctx, ms[2]))
			r.clean()
		})
	}
}

// A wait that ends before the members were listed does not say that no member has
// come.
func TestGiveUpBeforeTheFirstLook(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		b := r.double(c, 3)
		var all []<-chan entered
		for range 2 {
			all = append(all, r.enter(r.ctx, b))
		}
		r.standing(2)
		check := func(err error) {
			w := (*barrier.WaitError)(nil)
			if !errors.As(err, &w) || w.Stood != -1 || strings.Contains(err.Error(), "0 of 3") || strings.Contains(err.Error(), "for 0") {
				r.Errorf("%v", err)
			}
			wantErr(t, err, context.Canceled)
		}
		_, err := b.Enter(cancelled(r.ctx))
		check(err)
		ms := r.inside(append(all, r.enter(r.ctx, b))...)
		check(ms[0].Leave(cancelled(r.ctx)))
		r.gone(r.leave(r.ctx, ms[1]), r.leave(r.ctx, ms[2]))
		r.clean()
	})
}

// A member makes its node while a round is open, and that ends before the member looks. A
// Leave that has seen the node does not wait for it: it waits for another round itself.
func TestLeaveBesideOneThatWaits(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]barrier.Option{nil, {barrier.WithRounds()}} {
		bubble(t, func(r *rig) {
			a, b, c := r.double(r.connect("a"), 2, opts...), r.double(r.connect("b"), 2, opts...), r.double(r.connect("c"), 2, opts...)
			barrier.SetNames(b, func() string { return low })
			join, look := make(chan struct{}), make(chan struct{})
			r.srv.BeforeApply(zktest.Match{Client: "c", Op: zktest.OpCreate}, func(context.Context, zktest.Request) { <-join })
			late := r.enter(r.ctx, c)
			ms := r.inside(r.enter(r.ctx, a), r.enter(r.ctx, b))
			second := r.leave(r.ctx, ms[1])
			time.Sleep(time.Second)
			rule := r.srv.BeforeApply(zktest.Match{Client: "c", Op: zktest.OpGetData, Path: ready}, func(context.Context, zktest.Request) { <-look })
			close(join)
			r.check(rule.Wait(r.ctx, 1))
			r.gone(r.leave(r.ctx, ms[0]), second)
			close(look)
			ms = r.inside(late, r.enter(r.ctx, a))
			r.gone(r.leave(r.ctx, ms[0]), r.leave(r.ctx, ms[1]))
			r.clean()
		})
	}
}

// The ready node names a member that joins an open round. A Leave that has seen the node
// waits for the member, and so does the ready node.
func TestLeaveBesideOneThatJoinedLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b, c := r.double(r.connect("a"), 2), r.double(r.connect("b"), 2), r.double(r.connect("c"), 2)
		barrier.SetNames(b, func() string { return low })
		ms := r.inside(r.enter(r.ctx, a), r.enter(r.ctx, b))
		second := r.leave(r.ctx, ms[1])
		time.Sleep(time.Second)
		late := r.inside(r.enter(r.ctx, c))[0]
		if node, _ := r.srv.Node(ready); !strings.HasSuffix(string(node.Data), ","+late.Path()[len(path)+1:]) {
			r.Errorf("the ready node has %q", node.Data)
		}
		if node, _ := r.srv.Node(late.Path()); !strings.HasSuffix(string(node.Data), " members=2 late") {
			r.Errorf("the late member has %q", node.Data)
		}
		first := r.leave(r.ctx, ms[0])
		r.gone(second)
		waiting(r, first)
		r.check(r.srv.Delete(ready)) // as a Leave of Curator's does
		waiting(r, first)
		r.gone(r.leave(r.ctx, late), first)
		r.clean()
	})
}

// A member joins an open round while the last one of it leaves. The ready node stands until
// the late member has left, so nobody takes its node for one that waits.
func TestLateMemberKeepsTheRoundOpen(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b, c := r.double(r.connect("a"), 2), r.double(r.connect("b"), 2), r.double(r.connect("c"), 2)
		ms := r.inside(r.enter(r.ctx, a), r.enter(r.ctx, b))
		until := make(chan struct{})
		rule := r.srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Path: ready}, func(context.Context, zktest.Request) { <-until })
		left := []<-chan error{r.leave(r.ctx, ms[0]), r.leave(r.ctx, ms[1])}
		r.check(rule.Wait(r.ctx, 1))
		late := r.inside(r.enter(r.ctx, c))[0]
		close(until)
		r.gone(left...)
		if _, open := r.srv.Node(ready); !open {
			r.Error("the ready node is gone, and a member is inside")
		}
		r.gone(r.leave(r.ctx, late))
		r.clean()
	})
}
