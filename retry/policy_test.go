package retry_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/retry"
)

const (
	ms      = time.Millisecond
	forever = time.Duration(math.MaxInt64)
)

// take returns the first n pauses of b, fewer when it stops.
func take(b backoff.BackOff, n int) []time.Duration {
	var got []time.Duration
	for range n {
		d := b.NextBackOff()
		if d == backoff.Stop {
			break
		}
		got = append(got, d)
	}
	return got
}

func half() float64 { return 0.5 }

func TestPolicyPauses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		p    retry.Policy
		want []time.Duration // the first 5 pauses; fewer: the policy stops there
	}{
		{"zero", retry.Policy{}, nil},
		{"none", retry.None(), nil},
		{"default", retry.Default(), []time.Duration{25 * ms, 50 * ms, 100 * ms, 200 * ms, 400 * ms}},
		{"exponential reaches max", retry.Exponential(10*ms, 50*ms), []time.Duration{5 * ms, 10 * ms, 20 * ms, 25 * ms, 25 * ms}},
		{"exponential base above max", retry.Exponential(time.Second, 50*ms), []time.Duration{25 * ms, 25 * ms, 25 * ms, 25 * ms, 25 * ms}},
		{"bounded", retry.BoundedExponential(10*ms, time.Second, 3), []time.Duration{5 * ms, 10 * ms, 20 * ms}},
		{"n times", retry.NTimes(2, 7*ms), []time.Duration{7 * ms, 7 * ms}},
		{"once", retry.Once(7 * ms), []time.Duration{7 * ms}},
		{"forever", retry.Forever(7 * ms), []time.Duration{7 * ms, 7 * ms, 7 * ms, 7 * ms, 7 * ms}},
		{"cap bounds the range, not the draw", retry.Exponential(10*ms, time.Second).WithCap(20 * ms), []time.Duration{5 * ms, 10 * ms, 10 * ms, 10 * ms, 10 * ms}},
		{"cap below base", retry.Exponential(10*ms, time.Second).WithCap(4 * ms), []time.Duration{2 * ms, 2 * ms, 2 * ms, 2 * ms, 2 * ms}},
		{"cap on a constant", retry.NTimes(2, time.Second).WithCap(4 * ms), []time.Duration{4 * ms, 4 * ms}},
		{"cap above the pause", retry.Once(2 * ms).WithCap(time.Hour), []time.Duration{2 * ms}},
		{"the shortest cap holds", retry.Forever(time.Hour).WithCap(3 * ms).WithCap(9 * ms), []time.Duration{3 * ms, 3 * ms, 3 * ms, 3 * ms, 3 * ms}},
		{"cap of none", retry.None().WithCap(ms), nil},
		{"n times without pause", retry.NTimes(2, 0), []time.Duration{0, 0}},

		{"negative pause", retry.NTimes(2, -ms), []time.Duration{0, 0}},
		{"negative n", retry.NTimes(-1, ms), nil},
		{"zero attempts", retry.BoundedExponential(ms, ms, 0), nil},
		{"negative total", retry.UntilElapsed(-ms, ms), nil},
		{"forever without pause", retry.Forever(0), []time.Duration{ms, ms, ms, ms, ms}},
		{"zero base", retry.Exponential(0, 4*ms), []time.Duration{ms / 2, ms, 2 * ms, 2 * ms, 2 * ms}},
		{"zero max", retry.Exponential(8*ms, 0), []time.Duration{4 * ms, 4 * ms, 4 * ms, 4 * ms, 4 * ms}},
		{"milliseconds taken for nanoseconds", retry.Exponential(50, 2000), []time.Duration{ms / 2, ms / 2, ms / 2, ms / 2, ms / 2}},
		{"zero cap", retry.Forever(time.Hour).WithCap(0), []time.Duration{ms, ms, ms, ms, ms}},
		{"huge base does not overflow", retry.Exponential(forever, forever), []time.Duration{forever/2 + 1, forever/2 + 1, forever/2 + 1, forever/2 + 1, forever/2 + 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := tt.p.WithRand(half).BackOff()
			for _, round := range []string{"first", "after Reset"} {
				got := take(b, 5)
				if len(got) != len(tt.want) {
					t.Fatalf("%v %s: pauses %v, want %v", tt.p, round, got, tt.want)
				}
				for i := range got {
					if got[i] != tt.want[i] {
						t.Errorf("%v %s: pause %d = %v, want %v", tt.p, round, i, got[i], tt.want[i])
					}
				}
				b.Reset()
			}
		})
	}
}

func TestUntilElapsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := retry.UntilElapsed(100*ms, 40*ms).BackOff()
		for _, step := range []struct{ spend, want time.Duration }{
			{0, 40 * ms},
			{45 * ms, 40 * ms},
			{40 * ms, 15 * ms}, // cut: 85 ms have passed
			{14 * ms, ms},
			{ms, backoff.Stop},
			{time.Hour, backoff.Stop},
		} {
			time.Sleep(step.spend)
			if got := b.NextBackOff(); got != step.want {
				t.Errorf("after another %v: NextBackOff() = %v, want %v", step.spend, got, step.want)
			}
		}
		b.Reset()
		if got := b.NextBackOff(); got != 40*ms {
			t.Errorf("after Reset: NextBackOff() = %v, want 40ms", got)
		}
		capped := retry.UntilElapsed(time.Hour, time.Minute).WithCap(time.Second).BackOff()
		if got := capped.NextBackOff(); got != time.Second {
			t.Errorf("capped: NextBackOff() = %v, want 1s", got)
		}
	})
}

func TestPolicyString(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]retry.Policy{
		"None()":                                       {},
		"Exponential(50ms, 2s)":                        retry.Default(),
		"Exponential(50ms, 2s).WithCap(1s)":            retry.Default().WithCap(time.Second).WithCap(time.Hour),
		"Exponential(1ms, 1ms)":                        retry.Exponential(50, 2000),
		"BoundedExponential(50ms, 2s, 7)":              retry.BoundedExponential(50*ms, 2*time.Second, 7),
		"NTimes(3, 10ms)":                              retry.NTimes(3, 10*ms),
		"NTimes(1, 0s)":                                retry.Once(-1),
		"UntilElapsed(1m0s, 1s)":                       retry.UntilElapsed(time.Minute, time.Second),
		"Forever(1s).WithCap(500ms)":                   retry.Forever(time.Second).WithCap(500 * ms).WithRand(half),
		"BoundedExponential(1ms, 1ms, 1).WithCap(1ms)": retry.BoundedExponential(-1, -1, 1).WithCap(-1),
	} {
		if got := p.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

func TestWithMethodsLeaveTheirReceiver(t *testing.T) {
	t.Parallel()
	p := retry.Exponential(10*ms, time.Second)
	_ = p.WithCap(ms).WithRand(func() float64 { return 0 })
	if got := take(p.WithRand(half).BackOff(), 2); got[1] != 10*ms {
		t.Errorf("second pause = %v, want 10ms: a copy changed its original", got[1])
	}
}

func TestNilFunctionsPanic(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(){
		"WithRand": func() { retry.Default().WithRand(nil) },
		"OnRetry":  func() { retry.OnRetry(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Errorf("%s(nil) did not panic", name)
				}
			}()
			f()
		})
	}
}

func TestPolicyBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		p    retry.Policy
		want bool
	}{
		{retry.Policy{}, true},
		{retry.None(), true},
		{retry.Default(), false},
		{retry.Forever(ms), false},
		{retry.Once(ms), true},
		{retry.NTimes(3, ms).WithCap(ms), true},
		{retry.UntilElapsed(time.Second, ms), true},
		{retry.BoundedExponential(ms, ms, 3), true},
	} {
		if got := tt.p.Bounded(); got != tt.want {
			t.Errorf("%v: Bounded() = %v", tt.p, got)
		}
	}
}
