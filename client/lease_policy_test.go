package client_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
)

// exact is the policy without allowance for clocks, to compare with tables.
func exact(p client.LeasePolicy) client.LeasePolicy {
	p.ClockRateError, p.SchedulingSlack = 1e-12, 1
	return p
}

// How long a proof lasts that a heartbeat through a learner gives: T - P - g with
// g the period. The newest sign of life with the leader is then one relay
// interval and one period old.
func TestLeaseLastsByTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ timeout, beat, lasts time.Duration }{
		{4 * time.Second, 667 * time.Millisecond, 2333 * time.Millisecond},
		{6 * time.Second, time.Second, 4 * time.Second},
		{10 * time.Second, 1667 * time.Millisecond, 7333 * time.Millisecond},
		{15 * time.Second, 2500 * time.Millisecond, 11500 * time.Millisecond},
		{30 * time.Second, 5 * time.Second, 24 * time.Second},
		{40 * time.Second, 5 * time.Second, 34 * time.Second},
	} {
		life, _, relay, beat, _ := client.Terms(exact(client.LeasePolicy{}), tt.timeout)
		if lasts := life - relay - beat; lasts.Round(time.Millisecond) != tt.lasts || beat.Round(time.Millisecond) != tt.beat {
			t.Errorf("T=%v: lasts %v with a heartbeat every %v, want %v and %v", tt.timeout, lasts, beat, tt.lasts, tt.beat)
		}
	}
}

func TestLeaseTerms(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		policy              client.LeasePolicy
		timeout             time.Duration
		life, margin, relay time.Duration
	}{
		{client.LeasePolicy{}, s, 979 * ms, 250 * ms, 270 * ms},
		{client.LeasePolicy{}, 4 * s, 3916 * ms, s, 1080 * ms},
		{client.LeasePolicy{}, 10 * s, 9790 * ms, s, 1200 * ms},
		{client.LeasePolicy{}, 30 * s, 29370 * ms, 3 * s, 1600 * ms},
		{client.LeasePolicy{TickTime: 3 * s}, 10 * s, 9790 * ms, s, 1700 * ms},
		{client.LeasePolicy{SafetyMargin: 2 * s}, 10 * s, 9790 * ms, 2 * s, 1200 * ms},
		{client.LeasePolicy{SchedulingSlack: s}, 10 * s, 8990 * ms, s, 2 * s},
		{client.LeasePolicy{ClockRateError: 0.1}, 10 * s, 8800 * ms, s, 1200 * ms},
	} {
		life, margin, relay, _, _ := client.Terms(tt.policy, tt.timeout)
		if life != tt.life || margin != tt.margin || relay != tt.relay {
			t.Errorf("%+v, T=%v: life %v, margin %v, relay %v; want %v, %v, %v",
				tt.policy, tt.timeout, life, margin, relay, tt.life, tt.margin, tt.relay)
		}
	}
}

// Every timeout that servers grant by default is safe by default.
func TestDefaultPolicyFitsEveryTimeout(t *testing.T) {
	t.Parallel()
	for timeout := 100 * time.Millisecond; timeout <= 2*time.Minute; timeout += 100 * time.Millisecond {
		for _, p := range []client.LeasePolicy{{}, {Standalone: true}, {Heartbeat: client.HeartbeatPings}} {
			if _, _, _, beat, spare := client.Terms(p, timeout); spare <= 0 || timeout >= 4*time.Second && spare < beat/2 {
				t.Fatalf("%+v, T=%v: %v to spare", p, timeout, spare)
			}
		}
	}
}

func TestUnsafeTimeoutIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		policy client.LeasePolicy
		says   string
	}{
		{client.LeasePolicy{SafetyMargin: 6 * time.Second}, "10s, with a safety margin of 6s and a tick of 2s it takes 11.2s: raise WithSessionTimeout"},
		{client.LeasePolicy{TickTime: 12 * time.Second}, "with a safety margin of 1s and a tick of 12s it takes 11.5s"},
		{client.LeasePolicy{SafetyMargin: time.Hour}, "no timeout would do: lower LeasePolicy.SafetyMargin"},
	} {
		bubble(t, func(r *rig) {
			_, err := r.Open("zk:2181", "a", client.WithLeasePolicy(tt.policy))
			testrig.WantErr(r.T, err, client.ErrUnsafeTimeout)
			wantErrText(r.T, err, tt.says, "client: client:")
			time.Sleep(time.Second)
			if n := len(r.Srv.Sessions()); n != 0 {
				r.Errorf("%d sessions left", n)
			}
		})
	}
}

func TestInvalidPolicyIsRefused(t *testing.T) {
	t.Parallel()
	for _, p := range []client.LeasePolicy{
		{SafetyMargin: -1},
		{TickTime: -1},
		{SyncLimit: -1},
		{SchedulingSlack: -1},
		{ClockRateError: -0.1},
		{ClockRateError: 1},
		{Heartbeat: 2},
		{Heartbeat: -1},
	} {
		_, err := client.Connect(t.Context(), "nowhere", client.WithLeasePolicy(p))
		if err == nil || errors.Is(err, client.ErrNotConnected) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// What r1 and r13 measured on real servers stays within the bound.
func TestExposure(t *testing.T) {
	t.Parallel()
	p := exact(client.LeasePolicy{Heartbeat: client.HeartbeatPings})
	for timeout, want := range map[time.Duration]string{4 * time.Second: "12.3s", 10 * time.Second: "14.3s", 30 * time.Second: "21s"} {
		if got := fmt.Sprint(p.Exposure(timeout).Round(100 * time.Millisecond)); got != want {
			t.Errorf("T=%v: %v, want %v", timeout, got, want)
		}
	}
	p.TickTime, p.SyncLimit = time.Second, 2
	if got := p.Exposure(4 * time.Second).Round(100 * time.Millisecond); got != 3800*time.Millisecond {
		t.Errorf("tick 1s, sync limit 2: %v", got)
	}
}
