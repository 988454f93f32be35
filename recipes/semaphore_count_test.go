package recipes_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
)

// A count of another client is out of reach. A waiter whose own place is lost is
// told, and no waiter waits past the end of its context. The count makes no room
// by itself.
func TestSemaphoreCountOutOfReach(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.connect("a"), r.connect("b")
		count, err := shared.NewSharedCount(b, "/count", 3)
		r.check(err)
		s, err := recipes.NewInterProcessSemaphoreV2FromCount(a, "/pool", count)
		r.check(err)
		l, err := s.Acquire(r.ctx, 3)
		r.check(err)
		acquire := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() { _, err := s.Acquire(ctx, 1); done <- err }()
			time.Sleep(time.Second)
			return done
		}
		late, lost := acquire(r.within(8*time.Second)), acquire(r.ctx)
		r.srv.Client("b").Freeze()
		began := time.Now()
		wantErr(t, <-late, context.DeadlineExceeded)
		r.check(l.Release(r.ctx)) // there is room, and the first waiter cannot know
		time.Sleep(3 * sessionTimeout)
		select {
		case err := <-lost:
			t.Fatalf("it knew how many there are: %v", err)
		default:
		}
		ended := time.Now()
		r.srv.ExpireSession(r.session(a))
		wantErr(t, <-lost, client.ErrSessionLost)
		if took := time.Since(ended); took > time.Second {
			t.Errorf("told after %v, %v after the count went out of reach", took, time.Since(began))
		}
		r.srv.Client("b").Thaw()
		l, err = s.Acquire(r.ctx, 3)
		r.check(err)
		r.check(l.Release(r.ctx))
		wantNoGoroutine(t)
	})
}

// A number of permits that no request can carry is refused, and nothing is left.
func TestSemaphoreMorePermitsThanARequestCarries(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s, err := recipes.NewInterProcessSemaphoreV2(r.connect("a"), "/pool", math.MaxInt)
		r.check(err)
		for _, n := range []int{20_000, 1 << 17, math.MaxInt} {
			_, err := s.Acquire(r.ctx, n)
			wantErr(t, err, client.ErrTooLarge)
			_, err = s.TryAcquire(r.ctx, n)
			wantErr(t, err, client.ErrTooLarge)
		}
		time.Sleep(time.Second)
		if left := r.srv.Children("/pool/locks"); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		l, err := s.Acquire(r.ctx, 2000) // their heartbeats' answers would be longer than 16 KiB
		r.check(err)
		time.Sleep(2 * sessionTimeout)
		r.check(l.Confirm(r.ctx))
		r.check(l.Release(r.ctx))
		if left := r.srv.Children("/pool/leases"); len(left) != 0 {
			t.Errorf("%d leases are left", len(left))
		}
	})
}
