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
		p, a, b := r.double(r.Connect("p"), 2, rounds), r.double(r.Connect("a"), 2, rounds), r.double(r.Connect("b"), 2, rounds)
		one := r.enter(r.Ctx, p)
		r.standing(1)
		r.Srv.Client("p").Refuse()
		r.Srv.Client("p").ExpireSession()
		r.standing(0)
		ms := r.inside(r.enter(r.Ctx, a), r.enter(r.Ctx, b))
		r.Srv.Client("p").Accept()
		waiting(r, one)
		r.gone(r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1]))
		ms = r.inside(one, r.enter(r.Ctx, a))
		r.gone(r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1]))
		r.clean()
	})
}

// A member was counted, and lost its session before it saw that. It is inside with a younger
// node, and all others have left. A newcomer must not take the round for over.
func TestNewcomerBesideRejoined(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		rounds := barrier.WithRounds()
		p, a, c := r.double(r.Connect("p"), 2, rounds), r.double(r.Connect("a"), 2, rounds), r.double(r.Connect("c"), 2, rounds)
		r.Srv.BeforeApply(zktest.Match{Client: "p", Op: zktest.OpGetData, Path: ready, Nth: 3}, func(context.Context, zktest.Request) {
			r.Srv.Client("p").Partition()
		})
		one := r.enter(r.Ctx, p)
		r.standing(1)
		two := r.inside(r.enter(r.Ctx, a))
		waiting(r, one)
		r.standing(1) // p's session has ended
		r.Srv.Client("p").Heal()
		ms := r.inside(one)
		r.Check(two[0].Close())
		r.standing(1)
		newcomer := r.enter(r.Ctx, c)
		waiting(r, newcomer)
		if now := len(r.Srv.Children(path)); now != 2 { // p and ready
			r.Errorf("a newcomer has touched the round of another: %v", r.Srv.Children(path))
		}
		r.gone(r.leave(r.Ctx, ms[0]))
		ms = r.inside(newcomer, r.enter(r.Ctx, a))
		r.gone(r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1]))
		r.clean()
	})
}

// Another member, of Curator's, opens the round while this one is about to, and takes the
// ready node away as it leaves early (GH-1290). This member stood, so it passes.
func TestOpenedAndGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.Check(r.Srv.Create("/job", nil))
		r.Check(r.Srv.Create(path, nil))
		r.java(high)
		rule := r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, Client: "a", Path: ready}, func(context.Context, zktest.Request) {
			r.Check(r.Srv.Create(ready, nil))
			r.Check(r.Srv.Delete(path + "/" + high))
			r.Check(r.Srv.Delete(ready))
		})
		r.inside(r.enter(r.Ctx, r.double(c, 2)))
		if rule.Fired() != 1 {
			r.Error("nothing was tested")
		}
	})
}

// The ready node is there when the member sets its watch, and gone when it reads it.
func TestSeenAndGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.Check(r.Srv.Create("/job", nil))
		r.Check(r.Srv.Create(path, nil))
		r.java(high)
		m := zktest.Match{Op: zktest.OpExists, Client: "a", Path: ready}
		r.Srv.BeforeApply(m, func(context.Context, zktest.Request) { r.Check(r.Srv.Create(ready, nil)) })
		rule := r.Srv.BeforeReply(m, func(context.Context, zktest.Request) {
			r.Check(r.Srv.Delete(path + "/" + high))
			r.Check(r.Srv.Delete(ready))
		})
		r.inside(r.enter(r.Ctx, r.double(c, 2)))
		if rule.Fired() != 1 {
			r.Error("nothing was tested")
		}
	})
}
