package barrier_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

// A member comes into an open round, and that ends while the member withdraws. If the next
// round is opened with its node, the member passes with that round.
func TestRoundEndsBeforeWithdrawal(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		rounds := barrier.WithRounds()
		a, b, c := r.double(r.Connect("a"), 2, rounds), r.double(r.Connect("b"), 2, rounds), r.double(r.Connect("c"), 2, rounds)
		held := func(m zktest.Match) (*zktest.Rule, func()) {
			until := make(chan struct{})
			return r.Srv.BeforeApply(m, func(context.Context, zktest.Request) { <-until }), func() { close(until) }
		}
		// c sees no round, and makes its node when the others have begun to leave.
		_, join := held(zktest.Match{Client: "c", Op: zktest.OpCreate, PathPrefix: path})
		late := r.enter(r.Ctx, c)
		time.Sleep(time.Second)
		ms := r.inside(r.enter(r.Ctx, a), r.enter(r.Ctx, b))
		_, leave := held(zktest.Match{Op: zktest.OpMulti, Path: ready})
		left := []<-chan error{r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1])}
		time.Sleep(time.Second)
		rule, withdraw := held(zktest.Match{Client: "c", PathPrefix: path, Where: func(q zktest.Request) bool {
			return q.Op == zktest.OpDelete || q.Op == zktest.OpMulti
		}})
		join()
		r.Check(rule.Wait(r.Ctx, 1))
		leave()
		r.gone(left...)
		again := r.enter(r.Ctx, a)
		time.Sleep(time.Second)
		withdraw()
		ms = r.inside(again, late)
		r.gone(r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1]))
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
				r.Srv.BeforeApply(second, func(context.Context, zktest.Request) { r.Srv.Client(name).Partition() })
				all = append(all, r.enter(r.Ctx, r.double(r.Connect(name), 3, opts...)))
			}
			r.standing(2)
			ms := r.inside(r.enter(r.Ctx, r.double(r.Connect("c"), 3, opts...)))
			waiting(r, all[0])
			r.standing(1)
			r.Srv.Client("a").Heal()
			r.standing(2)
			ms = append(ms, r.inside(all[0])...)
			left := r.leave(r.Ctx, ms[0])
			time.Sleep(time.Second)
			r.Srv.Client("b").Heal()
			ms = append(ms, r.inside(all[1])...)
			r.gone(left, r.leave(r.Ctx, ms[1]), r.leave(r.Ctx, ms[2]))
			r.clean()
		})
	}
}

// A wait that ends before the members were listed does not say that no member has
// come.
func TestGiveUpBeforeTheFirstLook(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		b := r.double(c, 3)
		var all []<-chan entered
		for range 2 {
			all = append(all, r.enter(r.Ctx, b))
		}
		r.standing(2)
		check := func(err error) {
			w := (*barrier.WaitError)(nil)
			if !errors.As(err, &w) || w.Stood != -1 || strings.Contains(err.Error(), "0 of 3") || strings.Contains(err.Error(), "for 0") {
				r.Errorf("%v", err)
			}
			testrig.WantErr(t, err, context.Canceled)
		}
		_, err := b.Enter(cancelled(r.Ctx))
		check(err)
		ms := r.inside(append(all, r.enter(r.Ctx, b))...)
		check(ms[0].Leave(cancelled(r.Ctx)))
		r.gone(r.leave(r.Ctx, ms[1]), r.leave(r.Ctx, ms[2]))
		r.clean()
	})
}

// A member makes its node while a round is open, and that ends before the member looks. A
// Leave that has seen the node does not wait for it: it waits for another round itself.
func TestLeaveBesideOneThatWaits(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]barrier.Option{nil, {barrier.WithRounds()}} {
		bubble(t, func(r *rig) {
			a, b, c := r.double(r.Connect("a"), 2, opts...), r.double(r.Connect("b"), 2, opts...), r.double(r.Connect("c"), 2, opts...)
			barrier.SetNames(b, func() string { return low })
			join, look := make(chan struct{}), make(chan struct{})
			r.Srv.BeforeApply(zktest.Match{Client: "c", Op: zktest.OpCreate}, func(context.Context, zktest.Request) { <-join })
			late := r.enter(r.Ctx, c)
			ms := r.inside(r.enter(r.Ctx, a), r.enter(r.Ctx, b))
			second := r.leave(r.Ctx, ms[1])
			time.Sleep(time.Second)
			rule := r.Srv.BeforeApply(zktest.Match{Client: "c", Op: zktest.OpGetData, Path: ready}, func(context.Context, zktest.Request) { <-look })
			close(join)
			r.Check(rule.Wait(r.Ctx, 1))
			r.gone(r.leave(r.Ctx, ms[0]), second)
			close(look)
			ms = r.inside(late, r.enter(r.Ctx, a))
			r.gone(r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1]))
			r.clean()
		})
	}
}

// The ready node names a member that joins an open round. A Leave that has seen the node
// waits for the member, and so does the ready node.
func TestLeaveBesideOneThatJoinedLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b, c := r.double(r.Connect("a"), 2), r.double(r.Connect("b"), 2), r.double(r.Connect("c"), 2)
		barrier.SetNames(b, func() string { return low })
		ms := r.inside(r.enter(r.Ctx, a), r.enter(r.Ctx, b))
		second := r.leave(r.Ctx, ms[1])
		time.Sleep(time.Second)
		late := r.inside(r.enter(r.Ctx, c))[0]
		if node, _ := r.Srv.Node(ready); !strings.HasSuffix(string(node.Data), ","+late.Path()[len(path)+1:]) {
			r.Errorf("the ready node has %q", node.Data)
		}
		if node, _ := r.Srv.Node(late.Path()); !strings.HasSuffix(string(node.Data), " members=2 late") {
			r.Errorf("the late member has %q", node.Data)
		}
		first := r.leave(r.Ctx, ms[0])
		r.gone(second)
		waiting(r, first)
		r.Check(r.Srv.Delete(ready)) // as a Leave of Curator's does
		waiting(r, first)
		r.gone(r.leave(r.Ctx, late), first)
		r.clean()
	})
}

// A member joins an open round while the last one of it leaves. The ready node stands until
// the late member has left, so nobody takes its node for one that waits.
func TestLateMemberKeepsTheRoundOpen(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b, c := r.double(r.Connect("a"), 2), r.double(r.Connect("b"), 2), r.double(r.Connect("c"), 2)
		ms := r.inside(r.enter(r.Ctx, a), r.enter(r.Ctx, b))
		until := make(chan struct{})
		rule := r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Path: ready}, func(context.Context, zktest.Request) { <-until })
		left := []<-chan error{r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1])}
		r.Check(rule.Wait(r.Ctx, 1))
		late := r.inside(r.enter(r.Ctx, c))[0]
		close(until)
		r.gone(left...)
		if _, open := r.Srv.Node(ready); !open {
			r.Error("the ready node is gone, and a member is inside")
		}
		r.gone(r.leave(r.Ctx, late))
		r.clean()
	})
}
