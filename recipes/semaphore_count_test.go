package recipes_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
)

// A count of another client is out of reach. A waiter whose own place is lost is
// told, and no waiter waits past the end of its context. The count makes no room
// by itself.
func TestSemaphoreCountOutOfReach(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		count, err := shared.NewSharedCount(b, "/count", 3)
		r.Check(err)
		s, err := recipes.NewInterProcessSemaphoreV2FromCount(a, "/pool", count)
		r.Check(err)
		l, err := s.Acquire(r.Ctx, 3)
		r.Check(err)
		acquire := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() { _, err := s.Acquire(ctx, 1); done <- err }()
			time.Sleep(time.Second)
			return done
		}
		late, lost := acquire(r.Within(8*time.Second)), acquire(r.Ctx)
		r.Srv.Client("b").Freeze()
		began := time.Now()
		testrig.WantErr(t, <-late, context.DeadlineExceeded)
		r.Check(l.Release(r.Ctx)) // there is room, and the first waiter cannot know
		time.Sleep(3 * testrig.SessionTimeout)
		select {
		case err := <-lost:
			t.Fatalf("it knew how many there are: %v", err)
		default:
		}
		ended := time.Now()
		r.Srv.ExpireSession(r.SessionID(a))
		testrig.WantErr(t, <-lost, client.ErrSessionLost)
		if took := time.Since(ended); took > time.Second {
			t.Errorf("told after %v, %v after the count went out of reach", took, time.Since(began))
		}
		r.Srv.Client("b").Thaw()
		l, err = s.Acquire(r.Ctx, 3)
		r.Check(err)
		r.Check(l.Release(r.Ctx))
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// A number of permits that no request can carry is refused, and nothing is left.
func TestSemaphoreMorePermitsThanARequestCarries(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s, err := recipes.NewInterProcessSemaphoreV2(r.Connect("a"), "/pool", math.MaxInt)
		r.Check(err)
		for _, n := range []int{20_000, 1 << 17, math.MaxInt} {
			_, err := s.Acquire(r.Ctx, n)
			testrig.WantErr(t, err, client.ErrTooLarge)
			_, err = s.TryAcquire(r.Ctx, n)
			testrig.WantErr(t, err, client.ErrTooLarge)
		}
		time.Sleep(time.Second)
		r.WantNoChild("/pool/locks")
		l, err := s.Acquire(r.Ctx, 2000) // their heartbeats' answers would be longer than 16 KiB
		r.Check(err)
		time.Sleep(2 * testrig.SessionTimeout)
		r.Check(l.Confirm(r.Ctx))
		r.Check(l.Release(r.Ctx))
		if left := r.Srv.Children("/pool/leases"); len(left) != 0 {
			t.Errorf("%d leases are left", len(left))
		}
	})
}
