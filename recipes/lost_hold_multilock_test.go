package recipes_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// A hold that was lost with its session, and that the program has not released yet, contends
// for nothing. So a multi-lock joins the queue of its lock together with the others.
func TestMultiLockBesideLostHold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		h := r.held(r.mutex(c))
		r.Srv.Client("a").ExpireSession()
		<-h.Context().Done()
		time.Sleep(time.Second)
		m := r.multi(c, "/x", dir, "/y")
		r.Check(r.multiHeld(m).Release(r.Ctx))
		r.Srv.ResetCounts()
		r.Check(r.multiHeld(m).Release(r.Ctx))
		if alone := r.Srv.Counts()[zktest.OpCreate] + r.Srv.Counts()[zktest.OpCreate2]; alone != 0 {
			t.Errorf("%d queues were joined alone, though nobody contends", alone)
		}
		_ = h.Release(r.Ctx)
	})
}
