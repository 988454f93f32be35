package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/retry"
)

// noServer takes the server away, and waits until the clients know.
func (r *rig) noServer() {
	r.srv.Refuse()
	r.srv.CutAll()
	time.Sleep(time.Second)
}

// A policy that gives up by itself bounds the wait for a connection as well. A
// call without a deadline fails when the pauses are used up. The error says why.
func TestBoundedPolicyBoundsTheWait(t *testing.T) {
	t.Parallel()
	const third = sessionTimeout / 3 // no pause is longer
	half := func() float64 { return 0.5 }
	for _, tt := range []struct {
		policy retry.Policy
		want   time.Duration
	}{
		{retry.BoundedExponential(2*time.Second, 10*time.Second, 3).WithRand(half), time.Second + 2*third/2},
		{retry.NTimes(4, 250*time.Millisecond), time.Second},
		{retry.Once(time.Hour), third},
		{retry.UntilElapsed(7*time.Second, time.Second), 7 * time.Second},
		{retry.NTimes(3, 0), 0},
		{retry.None(), 0},
	} {
		t.Run(tt.policy.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.connect("a", client.WithRetry(tt.policy))
				s := r.session(c)
				r.noServer()
				for name, run := range map[string]func(context.Context) error{
					"get":     func(ctx context.Context) error { _, _, err := c.Get(ctx, "/"); return err },
					"create":  func(ctx context.Context) error { _, err := c.Create(ctx, "/a", nil); return err },
					"session": func(ctx context.Context) error { _, err := c.Session(ctx); return err },
				} {
					start := time.Now()
					err := run(context.WithoutCancel(r.ctx))
					if took := time.Since(start); took.Round(time.Millisecond) != tt.want.Round(time.Millisecond) {
						t.Errorf("%s took %v, want %v", name, took, tt.want)
					}
					wantErr(t, err, client.ErrNotConnected)
					wantOutcome(t, err, client.OutcomeNeverSent)
					wantErrText(t, err, "not connected for longer than the retry policy "+tt.policy.String(), "context")
					wantErrText(t, err, "connection refused", "\n")
					if !client.SafeToRetry(err) {
						t.Errorf("%s: %v: nothing was sent", name, err)
					}
				}
				if s.Err() == nil {
					_, _, err := s.Get(r.ctx, "/")
					wantErr(t, err, client.ErrNotConnected)
				}
				r.srv.Accept()
				r.session(r.connect("b"))
			})
		})
	}
}

// The connection is used as soon as there is one, whatever is left of a pause.
func TestBoundedPolicyUsesAConnection(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a", client.WithRetry(retry.NTimes(5, 3*time.Second)))
		for range 3 { // every call has all of its pauses
			r.noServer()
			time.AfterFunc(4*time.Second, r.srv.Accept)
			start := time.Now()
			_, _, err := c.Get(r.ctx, "/")
			r.check(err)
			if took := time.Since(start); took < 4*time.Second || took > 5900*time.Millisecond {
				t.Errorf("took %v, and the server was there after 4s", took)
			}
		}
	})
}

// The default policy has no end: without a deadline a call waits.
func TestDefaultPolicyWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		r.noServer()
		time.AfterFunc(30*time.Minute, r.srv.Accept)
		_, _, err := c.Get(context.WithoutCancel(r.ctx), "/")
		r.check(err)
		r.noServer()
		_, _, err = c.Get(r.within(time.Minute), "/")
		wantErr(t, err, context.DeadlineExceeded, client.ErrNotConnected)
		if !client.SafeToRetry(err) {
			t.Errorf("%v: nothing was sent", err)
		}
		r.srv.Accept()
	})
}
