package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/retry"
)

// noServer takes the server away, and waits until the clients know.
func (r *rig) noServer() {
	r.Srv.Refuse()
	r.Srv.CutAll()
	time.Sleep(time.Second)
}

// A policy that gives up by itself bounds the wait for a connection as well. A
// call without a deadline fails when the pauses are used up. The error says why.
func TestBoundedPolicyBoundsTheWait(t *testing.T) {
	t.Parallel()
	const third = testrig.SessionTimeout / 3 // no pause is longer
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
				c := r.Connect("a", client.WithRetry(tt.policy))
				s := r.Session(c)
				r.noServer()
				for name, run := range map[string]func(context.Context) error{
					"get":     func(ctx context.Context) error { _, _, err := c.Get(ctx, "/"); return err },
					"create":  func(ctx context.Context) error { _, err := c.Create(ctx, "/a", nil); return err },
					"session": func(ctx context.Context) error { _, err := c.Session(ctx); return err },
				} {
					start := time.Now()
					err := run(context.WithoutCancel(r.Ctx))
					if took := time.Since(start); took.Round(time.Millisecond) != tt.want.Round(time.Millisecond) {
						t.Errorf("%s took %v, want %v", name, took, tt.want)
					}
					testrig.WantErr(t, err, client.ErrNotConnected)
					wantOutcome(t, err, client.OutcomeNeverSent)
					wantErrText(t, err, "not connected for longer than the retry policy "+tt.policy.String(), "context")
					wantErrText(t, err, "connection refused", "\n")
					if !client.SafeToRetry(err) {
						t.Errorf("%s: %v: nothing was sent", name, err)
					}
				}
				if s.Err() == nil {
					_, _, err := s.Get(r.Ctx, "/")
					testrig.WantErr(t, err, client.ErrNotConnected)
				}
				r.Srv.Accept()
				r.Session(r.Connect("b"))
			})
		})
	}
}

// The connection is used as soon as there is one, whatever is left of a pause.
func TestBoundedPolicyUsesAConnection(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithRetry(retry.NTimes(5, 3*time.Second)))
		for range 3 { // every call has all of its pauses
			r.noServer()
			time.AfterFunc(4*time.Second, r.Srv.Accept)
			start := time.Now()
			_, _, err := c.Get(r.Ctx, "/")
			r.Check(err)
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
		c := r.Connect("a")
		r.noServer()
		time.AfterFunc(30*time.Minute, r.Srv.Accept)
		_, _, err := c.Get(context.WithoutCancel(r.Ctx), "/")
		r.Check(err)
		r.noServer()
		_, _, err = c.Get(r.Within(time.Minute), "/")
		testrig.WantErr(t, err, context.DeadlineExceeded, client.ErrNotConnected)
		if !client.SafeToRetry(err) {
			t.Errorf("%v: nothing was sent", err)
		}
		r.Srv.Accept()
	})
}

// A copy of a client has a policy of its own, and so have the namespaces and sessions
// that come from it. The client's own policy stays.
func TestRetrying(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		quick := r.Connect("a", client.WithNamespace("ns"), client.WithRetry(retry.None()))
		patient := quick.Retrying(retry.Default())
		below, err := patient.Namespace("below")
		r.Check(err)
		hasty := below.Retrying(retry.None())
		_, err = hasty.Create(r.Ctx, "/n", nil)
		r.Check(err)
		slow, fast := r.Session(below), r.Session(hasty)
		r.noServer()
		for name, get := range map[string]func(context.Context, string) ([]byte, *zk.Stat, error){
			"the client": quick.Get, "a copy of a copy": hasty.Get, "its session": fast.Get,
		} {
			start := time.Now()
			_, _, err := get(r.Ctx, "/n")
			testrig.WantErr(t, err, client.ErrNotConnected)
			if took := time.Since(start); took != 0 {
				t.Errorf("%s waited %v", name, took)
			}
		}
		time.AfterFunc(2*time.Second, r.Srv.Accept)
		_, _, err = slow.Get(r.Ctx, "/n")
		r.Check(err)
		r.noServer()
		time.AfterFunc(time.Minute, r.Srv.Accept)
		_, _, err = below.Get(r.Ctx, "/n")
		r.Check(err)
	})
}

// A watch is done when the session is lost, while nothing can be read. A loop that
// reads with patience then goes on with the next session.
func TestFollowThroughAnOutage(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/instances/a", "")
		quick := r.Connect("a", client.WithRetry(retry.None()))
		_, _, w, err := quick.ChildrenW(r.Ctx, "/instances")
		r.Check(err)
		r.noServer()
		r.await("the watch", w.Done())
		_, _, _, err = quick.ChildrenW(r.Ctx, "/instances")
		testrig.WantErr(t, err, client.ErrNotConnected)
		r.create("/instances/b", "")
		time.AfterFunc(time.Minute, r.Srv.Accept)
		names, _, w, err := quick.Retrying(retry.Default()).ChildrenW(r.Ctx, "/instances")
		if err != nil || len(names) != 2 {
			t.Errorf("%v, %v", names, err)
		}
		w.Stop()
	})
}
