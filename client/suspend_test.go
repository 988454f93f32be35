package client_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
)

// suspended is a machine whose clocks tests can set.
type suspended struct{ slept, step atomic.Int64 }

func (m *suspended) clock() client.Option {
	return client.WithClock(
		func() time.Time { return time.Now().Add(time.Duration(m.step.Load())) },
		func() time.Duration { return time.Duration(m.slept.Load()) })
}

// The monotonic clock stands still while the machine is suspended, and timers
// with it: the first question after it wakes finds the hold lost, and nobody
// has to ask for its context to end.
func TestSuspensionCounts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		slept, step time.Duration
		lost        bool
	}{
		"longer than the lease":       {slept: sessionTimeout, lost: true},
		"shorter than the lease":      {slept: time.Second},
		"wall clock set forward":      {step: time.Hour, lost: true},
		"wall clock set back":         {step: -time.Hour},
		"snapshot restored":           {step: 5 * time.Minute, lost: true},
		"suspended and then set back": {slept: sessionTimeout, step: -time.Hour, lost: true},
	} {
		for _, ask := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					var m suspended
					c := r.connect("a", m.clock())
					h := r.hold(c, "/e")
					time.Sleep(10 * time.Second)
					deadline := h.s.Deadline()
					m.slept.Store(int64(tt.slept))
					m.step.Store(int64(tt.step))
					if moved := h.s.Deadline().Sub(deadline); moved > 0 || tt.lost && moved > -sessionTimeout/2 {
						t.Errorf("the deadline moved by %v", moved)
					}
					if ask {
						if got := h.Err() != nil; got != tt.lost {
							t.Errorf("Err = %v", h.Err())
						}
					} else {
						time.Sleep(time.Second)
					}
					synctest.Wait()
					if got := len(h.lost) == 1; got != tt.lost {
						t.Errorf("lost: %v, want %v", got, tt.lost)
					}
				})
			})
		}
	}
}

// A clock that was set back does not make the next lease last longer.
func TestClockSetBackProlongsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var m suspended
		c := r.connect("a", m.clock())
		h := r.hold(c, "/e")
		time.Sleep(10 * time.Second)
		m.step.Store(int64(-time.Hour))
		time.Sleep(5 * time.Second)
		cut := time.Now()
		r.srv.Client("a").Partition()
		wantErr(t, r.loss(h), client.ErrLeaseExpired)
		if took := time.Since(cut); took > sessionTimeout-time.Second {
			t.Errorf("lost %v after the silence began", took)
		}
	})
}
