package bench_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/proxy"
)

// locker is one goroutine's handle of a lock.
type locker interface {
	acquire(ctx context.Context) error
	release(ctx context.Context) error
}

// maker connects a peer's sessions and returns a field of its lockers.
type maker func(ctx context.Context, b *testing.B, addr string, w *workload) *field

// field is the lockers of one peer that contend for one lock.
type field struct {
	name    string
	lockers []locker
}

// sample is what one round has measured. Per cycle: processor time of this
// process in microseconds, allocations and their bytes.
type sample struct {
	cycles   int
	took     time.Duration
	handOver float64 // median, in microseconds: from the call of release to the next holder
	cpu      float64
	allocs   float64
	bytes    float64
}

func (s sample) rate() float64 { return float64(s.cycles) / s.took.Seconds() }

// round lets everybody take the lock until it was taken so many times. The
// clock starts when everybody had time to stand in line, and ends with the
// last cycle that counts; those who still wait then leave untimed.
func (f *field) round(ctx context.Context, b *testing.B, cycles int) sample {
	b.Helper()
	warm := int64(2 * len(f.lockers))
	last := warm + int64(cycles)
	var (
		taken    atomic.Int64
		released atomic.Int64 // when, in nanoseconds since base
		base     = time.Now()
		begin    meter
		end      meter
		gaps     = make([]float64, 0, cycles)
		wg       sync.WaitGroup
	)
	for _, l := range f.lockers {
		wg.Go(func() {
			for {
				if err := l.acquire(ctx); err != nil {
					b.Error(f.name, err)
					return
				}
				now := time.Since(base).Nanoseconds()
				n := taken.Add(1)
				switch { // under the lock: no two goroutines are here
				case n == warm:
					begin = read()
				case n == last:
					end = read()
				case n > warm && n < last:
					gaps = append(gaps, float64(now-released.Load())/1e3)
				}
				released.Store(time.Since(base).Nanoseconds())
				if err := l.release(ctx); err != nil {
					b.Error(f.name, err)
					return
				}
				if n >= last {
					return
				}
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
	per := 1 / float64(cycles)
	slices.Sort(gaps)
	return sample{
		cycles:   cycles,
		took:     end.at.Sub(begin.at),
		handOver: gaps[len(gaps)/2],
		cpu:      float64((end.cpu - begin.cpu).Nanoseconds()) / 1e3 * per,
		allocs:   float64(end.mallocs-begin.mallocs) * per,
		bytes:    float64(end.bytes-begin.bytes) * per,
	}
}

// meter is the state of the process's counters at one moment.
type meter struct {
	at             time.Time
	cpu            time.Duration
	mallocs, bytes uint64
}

func read() meter {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail
	return meter{time.Now(), time.Duration(u.Utime.Nano() + u.Stime.Nano()), m.Mallocs, m.TotalAlloc}
}

// median of one figure over the rounds.
func median[T any](rounds []T, figure func(T) float64) float64 {
	all := make([]float64, len(rounds))
	for i, s := range rounds {
		all[i] = figure(s)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// ratio is the median of a's rate by b's, round by round.
func ratio(a, b []sample) float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i].rate() / b[i].rate()
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// count sends one round through proxies and reports what went over the wire.
// It is not timed.
func (w *workload) count(ctx context.Context, b *testing.B, node *harness.Node, peer maker) {
	b.Helper()
	px := proxy.Start(b, node.Addr())
	f := peer(ctx, b, px.Addr(), w)
	f.round(ctx, b, w.cycles/4)
	px.ResetStats()
	f.round(ctx, b, w.cycles)
	stats := px.Stats()
	requests := 0
	for op, n := range stats.Requests {
		if op != proxy.OpPing {
			requests += n
		}
	}
	// The round has a beginning and an end: everybody stands in line once more.
	per := 1 / float64(w.cycles+3*len(f.lockers)-1)
	b.ReportMetric(float64(requests)*per, f.name+"-requests/cycle")
	b.ReportMetric(float64(stats.Notifications)*per, f.name+"-events/cycle")
	if w.trips {
		b.ReportMetric(float64(stats.RoundTrips)*per, f.name+"-roundtrips/cycle")
	}
}
