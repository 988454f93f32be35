package barrier_test

import (
	"context"
	"testing"

	"github.com/docent-go/docent/zktest"
)

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
