package recipes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// A hold's context that is first asked for after the hold has ended is done, with
// the cause that it would have had.
func TestContextAfterTheEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		released := r.held(r.mutex(c))
		r.Check(released.Release(r.Ctx))
		lost := r.held(r.mutex(c))
		r.Srv.ExpireSession(r.SessionID(c))
		synctest.Wait()
		gone := r.held(r.mutex(c))
		r.Check(r.Srv.Delete(gone.Path()))
		testrig.WantErr(t, gone.Confirm(r.Ctx), recipes.ErrLost)
		synctest.Wait()
		for _, tt := range []struct {
			of   *recipes.Hold
			want []error
		}{
			{released, []error{recipes.ErrReleased}},
			{lost, []error{recipes.ErrLost, client.ErrSessionLost}},
			{gone, []error{recipes.ErrLost, recipes.ErrNodeDeleted}},
		} {
			ctx := tt.of.Context()
			if ctx.Err() == nil {
				t.Errorf("after %v the context lives", tt.want)
			}
			testrig.WantErr(t, context.Cause(ctx), tt.want...)
			testrig.WantErr(t, tt.of.Err(), tt.want...)
		}
		_ = lost.Close() // it was lost
		_ = gone.Close() // it was lost
	})
}

// The context of a hold has no deadline of the Acquire's, also for Close.
func TestCloseAfterTheAcquiresDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		ctx := r.Within(time.Second)
		h, err := m.Acquire(ctx)
		r.Check(err)
		<-ctx.Done()
		r.Check(h.Close())
		r.empty()
	})
}
