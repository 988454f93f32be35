package client_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
)

// A hold that is younger than one heartbeat hears of a suspension as early as an
// older one: at the next comparison of the clocks. That happens once a second.
// The session timeout does not matter.
func TestYoungHoldHearsOfSuspension(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{10 * time.Second, 30 * time.Second, time.Minute} {
		t.Run(timeout.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var m suspended
				c := r.Connect("a", m.clock(), client.WithSessionTimeout(timeout))
				h := r.hold(c, "/e")
				time.Sleep(10 * time.Millisecond)
				m.slept.Store(int64(timeout * 92 / 100)) // the session may live, the hold may not
				r.Srv.Client("a").Partition()            // the network is not up yet
				woke := time.Now()
				testrig.WantErr(t, r.loss(h), client.ErrLeaseExpired)
				if took := time.Since(woke); took > time.Second {
					t.Errorf("told %v after the machine woke", took)
				}
				h.Done()
				r.Srv.Client("a").Heal()
			})
		})
	}
}

// stoppable is a clock whose reader can be stopped once, after it has read.
type stoppable struct{ stop atomic.Int64 }

func (s *stoppable) clock() client.Option {
	return client.WithClock(func() time.Time {
		now := time.Now()
		time.Sleep(time.Duration(s.stop.Swap(0)))
		return now
	}, nil)
}

// The process may be stopped between the look at the proof and the start of the
// hold's timer. The holder is told before the hold's deadline all the same, unless
// the process was stopped for longer.
func TestHoldAfterAPauseEndsInTime(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{
		testrig.SessionTimeout / 2,
		testrig.SessionTimeout * 85 / 100, // beyond the next second the deadline has passed
	} {
		t.Run(pause.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var s stoppable
				c := r.Connect("a", s.clock())
				session := r.Session(c)
				_, err := session.Create(r.Ctx, "/e", nil, client.Ephemeral())
				r.Check(err)
				time.Sleep(10 * time.Millisecond) // the client has learned what the server is
				r.Srv.Client("a").Partition()
				s.stop.Store(int64(pause))
				begun := time.Now()
				h := r.holdAs(session, "/e")
				if took := time.Since(begun); took != pause {
					t.Fatalf("the pause took %v", took)
				}
				deadline := h.Deadline()
				testrig.WantErr(t, r.loss(h), client.ErrLeaseExpired)
				if late := time.Since(deadline); late > -time.Second {
					t.Errorf("told %v after the deadline, want a safety margin before it", late)
				}
				h.Done()
				r.Srv.Client("a").Heal()
			})
		})
	}
}
