package client_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
)

// suspended is a machine whose clocks tests can set.
type suspended struct{ slept, step atomic.Int64 }

func (m *suspended) clock() client.Option {
	return client.WithClock(
		func() time.Time { return time.Now().Add(time.Duration(m.step.Load())) },
		func() time.Duration { return time.Duration(m.slept.Load()) })
}

// The monotonic clock and the timers stand still while the machine is suspended.
// The first question after the machine wakes finds the hold lost. Without a
// question the hold ends a second later.
func TestSuspensionCounts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		slept, step time.Duration
		lost        bool
	}{
		"longer than the lease":       {slept: testrig.SessionTimeout, lost: true},
		"shorter than the lease":      {slept: time.Second},
		"wall clock set forward":      {step: time.Hour, lost: true},
		"wall clock set back":         {step: -time.Hour},
		"snapshot restored":           {step: 5 * time.Minute, lost: true},
		"suspended and then set back": {slept: testrig.SessionTimeout, step: -time.Hour, lost: true},
	} {
		for _, ask := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					var m suspended
					c := r.Connect("a", m.clock())
					h := r.hold(c, "/e")
					time.Sleep(10 * time.Second)
					deadline := h.Deadline()
					m.slept.Store(int64(tt.slept))
					m.step.Store(int64(tt.step))
					if moved := h.Deadline().Sub(deadline); moved > 0 || tt.lost && moved > -testrig.SessionTimeout/2 {
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
		c := r.Connect("a", m.clock())
		h := r.hold(c, "/e")
		time.Sleep(10 * time.Second)
		m.step.Store(int64(-time.Hour))
		time.Sleep(5 * time.Second)
		cut := time.Now()
		r.Srv.Client("a").Partition()
		testrig.WantErr(t, r.loss(h), client.ErrLeaseExpired)
		if took := time.Since(cut); took > testrig.SessionTimeout-time.Second {
			t.Errorf("lost %v after the silence began", took)
		}
	})
}

// A session whose timeout has passed while the machine was suspended is over at
// the first question of any caller. Its context ends a second later at most. A
// session that nothing was asked of lives through a shorter suspension.
func TestSuspensionEndsTheSession(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		slept, step time.Duration
		lost        bool
	}{
		"longer than the session":  {slept: time.Hour, lost: true},
		"shorter than the session": {slept: testrig.SessionTimeout / 2},
		"snapshot restored":        {step: time.Hour, lost: true},
		"wall clock set back":      {step: -time.Hour},
	} {
		for question, alive := range map[string]func(*client.Client, *client.Session) bool{
			"Err":    func(_ *client.Client, s *client.Session) bool { return s.Err() == nil },
			"State":  func(c *client.Client, _ *client.Session) bool { return c.State() == client.Connected },
			"States": func(c *client.Client, s *client.Session) bool { return firstState(s.Context(), c) == client.Connected },
			"Context": func(_ *client.Client, s *client.Session) bool {
				time.Sleep(time.Second)
				synctest.Wait()
				return s.Context().Err() == nil
			},
		} {
			t.Run(question+" "+name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					var m suspended
					c := r.Connect("a", m.clock())
					s := r.Session(c)
					time.Sleep(time.Minute)
					m.slept.Add(int64(tt.slept))
					m.step.Add(int64(tt.step))
					if got := !alive(c, s); got != tt.lost {
						t.Errorf("over: %v, want %v", got, tt.lost)
					}
					if tt.lost {
						testrig.WantErr(t, s.Err(), client.ErrSessionLost)
						return
					}
					time.Sleep(time.Minute)
					if s.Err() != nil {
						t.Errorf("a minute later: %v", s.Err())
					}
				})
			})
		}
	}
}

func firstState(ctx context.Context, c *client.Client) client.State {
	for ch := range c.States(ctx) {
		return ch.State
	}
	return client.Closed
}

// Many short suspensions do not add up, also where nothing but pings is sent.
func TestShortSuspensionsDoNotAddUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var m suspended
		c := r.Connect("a", m.clock(), client.WithLeasePolicy(client.LeasePolicy{Heartbeat: client.HeartbeatPings}))
		s := r.Session(c)
		for range 20 {
			time.Sleep(testrig.SessionTimeout)
			m.slept.Add(int64(testrig.SessionTimeout / 4))
			time.Sleep(testrig.SessionTimeout / 10)
			if err := s.Err(); err != nil {
				t.Fatalf("slept for a quarter of the timeout: %v", err)
			}
		}
		if c.State() != client.Connected {
			t.Errorf("state %v", c.State())
		}
	})
}
