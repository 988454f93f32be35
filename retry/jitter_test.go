package retry_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/retry"
)

// Full jitter is uniform from 0 to the bound: each tenth of the range must get
// a tenth of the draws. The source is seeded, so the test cannot flake; the
// limit is the 99.9 % point of chi-square with 9 degrees of freedom.
func TestJitterIsUniform(t *testing.T) {
	t.Parallel()
	const (
		draws = 20_000
		bins  = 10
		limit = 27.88
	)
	for retryNo, bound := range []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 100 * ms, 100 * ms} {
		r := rand.New(rand.NewPCG(1, uint64(retryNo)))
		p := retry.Exponential(10*ms, time.Second).WithCap(100 * ms).WithRand(r.Float64)
		var count [bins]int
		for range draws {
			got := take(p.BackOff(), retryNo+1)
			d := got[retryNo]
			if d < 0 || d >= bound {
				t.Fatalf("retry %d: pause %v outside [0, %v)", retryNo, d, bound)
			}
			count[int(d*bins/bound)]++
		}
		chi := 0.0
		for _, n := range count {
			diff := float64(n) - draws/bins
			chi += diff * diff / (draws / bins)
		}
		if chi > limit {
			t.Errorf("retry %d: chi-square %.1f > %.1f, draws by tenth %v", retryNo, chi, limit, count)
		}
	}
}

// The default source is random: two clients that fail together part.
func TestDefaultSourceSpreads(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 50 {
		seen[retry.Exponential(time.Hour, time.Hour).BackOff().NextBackOff()] = true
	}
	if len(seen) < 45 {
		t.Errorf("50 draws from an hour gave only %d values", len(seen))
	}
}

func TestSourceOutOfRange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ f, want float64 }{
		{-1, 0},
		{math.Inf(-1), 0},
		{math.NaN(), 0},
		{1, float64(10*ms - 1)},
		{7, float64(10*ms - 1)},
		{math.Inf(1), float64(10*ms - 1)},
		{math.Nextafter(1, 0), float64(10*ms - 1)},
	} {
		p := retry.Exponential(10*ms, time.Second).WithRand(func() float64 { return tt.f })
		if got := p.BackOff().NextBackOff(); got != time.Duration(tt.want) {
			t.Errorf("source %v: pause %v, want %v", tt.f, got, time.Duration(tt.want))
		}
	}
}

// One policy, many goroutines: the counters of one call must not show in
// another. Run with -race.
func TestPolicyIsSharedSafely(t *testing.T) {
	t.Parallel()
	var (
		mu sync.Mutex
		r  = rand.New(rand.NewPCG(1, 2))
	)
	p := retry.BoundedExponential(ms, time.Second, 8).WithRand(func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Float64()
	})
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 50 {
				if n := len(take(p.BackOff(), 100)); n != 8 {
					t.Errorf("a call was allowed %d retries, want 8", n)
				}
			}
		})
	}
	wg.Wait()
}

// Whatever the parameters: no pause is negative, none exceeds its documented
// bound, and a policy with a limit of retries keeps it.
func FuzzPolicy(f *testing.F) {
	f.Add(int64(50*ms), int64(2*time.Second), int64(0), 5, 0.5)
	f.Add(int64(0), int64(0), int64(-1), -1, math.NaN())
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), math.MaxInt, 1.0)
	f.Add(int64(math.MinInt64), int64(1), int64(1), 1, math.Copysign(0, -1))
	f.Fuzz(func(t *testing.T, a, b, ceiling int64, n int, u float64) {
		base, maxPause := time.Duration(a), time.Duration(b)
		source := func() float64 { return u }
		limit := max(ms, base)
		if maxPause >= ms {
			limit = maxPause
		}
		policies := []struct {
			p       retry.Policy
			limit   time.Duration
			retries int
		}{
			{retry.Exponential(base, maxPause), limit, math.MaxInt},
			{retry.BoundedExponential(base, maxPause, n), limit, max(n, 0)},
			{retry.NTimes(n, base), max(base, 0), max(n, 0)},
			{retry.Once(base), max(base, 0), 1},
			{retry.UntilElapsed(maxPause, base), max(base, ms), math.MaxInt},
			{retry.Forever(base), max(base, ms), math.MaxInt},
		}
		for _, tt := range policies {
			checkPauses(t, tt.p.WithRand(source), tt.limit, tt.retries)
			capped := tt.p.WithRand(source).WithCap(time.Duration(ceiling))
			checkPauses(t, capped, min(tt.limit, max(time.Duration(ceiling), ms)), tt.retries)
		}
	})
}

func checkPauses(t *testing.T, p retry.Policy, limit time.Duration, retries int) {
	t.Helper()
	const looked = 70 // more than the doublings that overflow 63 bits
	b := p.BackOff()
	got := 0
	for range looked {
		d := b.NextBackOff()
		if d == backoff.Stop {
			break
		}
		if d < 0 || d > limit {
			t.Errorf("%v: pause %d is %v, outside [0, %v]", p, got, d, limit)
		}
		got++
	}
	if got > retries {
		t.Errorf("%v: %d retries, want at most %d", p, got, retries)
	}
}
