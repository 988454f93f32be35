package client_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// A period is what the policy says, within bounds that follow from the timeout.
func TestPeriod(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		policy        client.LeasePolicy
		timeout, want time.Duration
	}{
		{client.LeasePolicy{}, 15 * s, 2500 * ms},
		{client.LeasePolicy{}, 60 * s, 5 * s},
		{client.LeasePolicy{HeartbeatPeriod: 3 * s}, 15 * s, 3 * s},
		{client.LeasePolicy{HeartbeatPeriod: time.Hour}, 15 * s, 3962 * ms},
		{client.LeasePolicy{HeartbeatPeriod: time.Hour, SafetyMargin: 5 * s}, 15 * s, 2795 * ms},
		{client.LeasePolicy{HeartbeatPeriod: time.Hour, TickTime: 6 * s}, 15 * s, 3295 * ms},
		{client.LeasePolicy{HeartbeatPeriod: time.Hour}, 60 * s, 16847 * ms},
		{client.LeasePolicy{HeartbeatPeriod: 1}, 15 * s, 500 * ms},
		{client.LeasePolicy{HeartbeatPeriod: time.Hour, SafetyMargin: 12 * s}, 15 * s, 500 * ms}, // a third would be 462 ms
	} {
		if got := tt.policy.Period(tt.timeout).Round(ms); got != tt.want {
			t.Errorf("%+v, T=%v: a heartbeat every %v, want %v", tt.policy, tt.timeout, got, tt.want)
		}
	}
}

// Whatever period is asked for, a timeout that is safe without it stays safe, with a
// period to spare when a heartbeat is due.
func TestEveryPeriodLeavesTime(t *testing.T) {
	t.Parallel()
	for timeout := 100 * time.Millisecond; timeout <= 2*time.Minute; timeout += 100 * time.Millisecond {
		for _, period := range []time.Duration{1, timeout / 10, timeout / 4, timeout, time.Hour} {
			p := client.LeasePolicy{HeartbeatPeriod: period}
			if _, _, _, beat, spare := client.Terms(p, timeout); beat <= 0 || spare < beat {
				t.Fatalf("%+v, T=%v: a heartbeat every %v and %v to spare", p, timeout, beat, spare)
			}
		}
	}
}

// The longest period is enough to hold for ever, also on an ensemble with the
// slowest way of telling the leader. It never leaves less than one period.
func TestLongestPeriodKeepsTheHold(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{4 * time.Second, 15 * time.Second, 40 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				p := client.LeasePolicy{HeartbeatPeriod: time.Hour}
				c := r.Connect("a", client.WithSessionTimeout(timeout), client.WithLeasePolicy(p))
				h := r.hold(c, "/e")
				period, margin := p.Period(timeout), margin(p, timeout)
				time.Sleep(timeout)
				n := r.beats()
				const periods = 100
				least := timeout
				for begun := time.Now(); time.Since(begun) < periods*period; time.Sleep(period / 50) {
					least = min(least, time.Until(h.Deadline())-margin)
				}
				if least < period-50*time.Millisecond {
					t.Errorf("only %v were left of the hold, with a heartbeat every %v", least, period)
				}
				if got := n.Load(); got < periods-2 || got > periods+2 {
					t.Errorf("%d heartbeats in %d periods", got, periods)
				}
				if len(h.lost) != 0 {
					t.Errorf("lost: %v", <-h.lost)
				}
				h.Done()
			}, zktest.WithTick(2*time.Second))
		})
	}
}

// However long the period, a holding that hears no more ends its margin before its
// deadline, and that deadline is before the server's.
func TestLongestPeriodInSilence(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, time.Second, 3500 * time.Millisecond} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				const timeout = 15 * time.Second
				p := client.LeasePolicy{HeartbeatPeriod: time.Hour}
				c := r.Connect("a", client.WithSessionTimeout(timeout), client.WithLeasePolicy(p))
				h := r.hold(c, "/e")
				time.Sleep(time.Minute + after)
				r.Srv.Client("a").Partition()
				silent := time.Now()
				testrig.WantErr(t, r.loss(h), client.ErrLeaseExpired)
				told := time.Now()
				if early := time.Until(h.Deadline()); early < margin(p, timeout)-time.Millisecond {
					t.Errorf("told %v before the deadline", early)
				}
				period := p.Period(timeout)
				if survived := told.Sub(silent); survived < period-50*time.Millisecond {
					t.Errorf("survived %v, less than a period of %v", survived, period)
				}
				if _, there := r.Srv.Node("/e"); !there {
					t.Error("the node went before the holder was told")
				}
				time.Sleep(time.Until(h.Deadline()))
				if _, there := r.Srv.Node("/e"); !there {
					t.Error("the node went before the deadline")
				}
				h.Done()
				r.Srv.Client("a").Heal()
			})
		})
	}
}

// Reads prove nothing, so a holder that reads all the time sends its heartbeats. Writes
// of any kind prove the session, so a holder that writes sends none.
func TestOnlyWritesSpareHeartbeats(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		spares bool
		act    func(r *rig, c *client.Client) error
	}{
		{"get", false, func(r *rig, c *client.Client) error {
			_, _, err := c.Get(r.Ctx, "/e")
			return err
		}},
		{"sync", false, func(r *rig, c *client.Client) error { return c.Sync(r.Ctx, "/e") }},
		{"set", true, func(r *rig, c *client.Client) error {
			_, err := c.Set(r.Ctx, "/e", nil, client.AnyVersion)
			return err
		}},
		{"create and delete", true, func(r *rig, c *client.Client) error {
			if _, err := c.Create(r.Ctx, "/other", nil, client.Ephemeral()); err != nil {
				return err
			}
			return c.Delete(r.Ctx, "/other", client.AnyVersion)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				const timeout, periods = 12 * time.Second, 20
				period := client.LeasePolicy{}.Period(timeout)
				c := r.Connect("a", client.WithSessionTimeout(timeout))
				h := r.hold(c, "/e")
				synctest.Wait()
				n := r.beats()
				for range 5 * periods {
					time.Sleep(period / 5)
					r.Check(tt.act(r, c))
				}
				least, most := int32(periods-2), int32(periods+1)
				if tt.spares {
					least, most = 0, 0
				}
				if got := n.Load(); got < least || got > most {
					t.Errorf("%d heartbeats in %d periods, want %d to %d", got, periods, least, most)
				}
				h.Done()
			})
		})
	}
}

func margin(p client.LeasePolicy, timeout time.Duration) time.Duration {
	_, margin, _, _, _ := client.Terms(p, timeout)
	return margin
}
