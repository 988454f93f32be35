package barrier_test

import (
	"context"
	"testing"

	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

// A member waits, and its session ends. Others open a round without it. It was not counted,
// so it waits for the next round, and passes with that.
func TestUncountedAfterLostSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		rounds := barrier.WithRounds()
		p, a, b := r.double(r.connect("p"), 2, rounds), r.double(r.connect("a"), 2, rounds), r.double(r.connect("b"), 2, rounds)
		one := r.enter(r.ctx, p)
		r.standing(1)
		r.srv.Client("p").Refuse()
		r.srv.Client("p").ExpireSession()
		r.standing(0)
		ms := r.inside(r.enter(r.ctx, a), r.enter(r.ctx, b))
		r.srv.Client("p").Accept()
		waiting(r, one)
		r.gone(r.leave(r.ctx, ms[0]), r.leave(r.ctx, ms[1]))
		ms = r.inside(one, r.enter(r.ctx, a))
		r.gone(r.leave(r.ctx, ms[0]), r.leave(r.ctx, ms[1]))
		r.clean()
	})
}

// A member was counted, and lost its session before it saw that. It is inside with a younger
// node, and all others have left. A newcomer must not take the round for over.
func TestNewcomerBesideRejoined(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		rounds := barrier.WithRounds()
		p, a, c := r.double(r.connect("p"), 2, rounds), r.double(r.connect("a"), 2, rounds), r.double(r.connect("c"), 2, rounds)
		r.srv.BeforeApply(zktest.Match{Client: "p", Op: zktest.OpGetData, Path: ready, Nth: 3}, func(context.Context, zktest.Request) {
			r.srv.Client("p").Partition()
		})
		one := r.enter(r.ctx, p)
		r.standing(1)
		two := r.inside(r.enter(r.ctx, a))
		waiting(r, one)
		r.standing(1) // p's session has ended
		r.srv.Client("p").Heal()
		ms := r.inside(one)
		r.check(two[0].Close())
		r.standing(1)
		newcomer := r.enter(r.ctx, c)
		waiting(r, newcomer)
		if now := len(r.srv.Children(path)); now != 2 { // p and ready
			r.Errorf("a newcomer has touched the round of another: %v", r.srv.Children(path))
		}
		r.gone(r.leave(r.ctx, ms[0]))
		ms = r.inside(newcomer, r.enter(r.ctx, a))
		r.gone(r.leave(r.ctx, ms[0]), r.leave(r.ctx, ms[1]))
		r.clean()
	})
}

// Another member, of Curator's, opens the round while this one is about to, and takes the
// ready node away as it leaves early (GH-1290). This member stood, so it passes.
func TestOpenedAndGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		r.check(r.srv.Create("/job", nil))
		r.check(r.srv.Create(path, nil))
		r.java(high)
		rule := r.srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Client: "a", Path: ready}, func(context.Context, zktest.Request) {
			r.check(r.srv.Create(ready, nil))
			r.check(r.srv.Delete(path + "/" + high))
			r.check(r.srv.Delete(ready))
		})
		r.inside(r.enter(r.ctx, r.double(c, 2)))
		if rule.Fired() != 1 {
			r.Error("nothing was tested")
		}
	})
}

// The ready node is there when the member sets its watch, and gone when it reads it.
func TestSeenAndGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		r.check(r.srv.Create("/job", nil))
		r.check(r.srv.Create(path, nil))
		r.java(high)
		m := zktest.Match{Op: zktest.OpExists, Client: "a", Path: ready}
		r.srv.BeforeApply(m, func(context.Context, zktest.Request) { r.check(r.srv.Create(ready, nil)) })
		rule := r.srv.BeforeReply(m, func(context.Context, zktest.Request) {
			r.check(r.srv.Delete(path + "/" + high))
			r.check(r.srv.Delete(ready))
		})
		r.inside(r.enter(r.ctx, r.double(c, 2)))
		if rule.Fired() != 1 {
			r.Error("nothing was tested")
		}
	})
}
