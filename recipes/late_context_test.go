package recipes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// A hold's context that is first asked for after the hold has ended is done, with
// the cause that it would have had.
func TestContextAfterTheEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		released := r.held(r.mutex(c))
		r.check(released.Release(r.ctx))
		lost := r.held(r.mutex(c))
		r.srv.ExpireSession(r.session(c))
		synctest.Wait()
		gone := r.held(r.mutex(c))
		r.check(r.srv.Delete(gone.Path()))
		wantErr(t, gone.Confirm(r.ctx), recipes.ErrLost)
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
			wantErr(t, context.Cause(ctx), tt.want...)
			wantErr(t, tt.of.Err(), tt.want...)
		}
		_ = lost.Close() // it was lost
		_ = gone.Close() // it was lost
	})
}

// The context of a hold has no deadline of the Acquire's, also for Close.
func TestCloseAfterTheAcquiresDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.connect("a"))
		ctx := r.within(time.Second)
		h, err := m.Acquire(ctx)
		r.check(err)
		<-ctx.Done()
		r.check(h.Close())
		r.empty()
	})
}
