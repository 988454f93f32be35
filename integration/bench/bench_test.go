// Package bench_test measures Docent's mutex beside go-zookeeper's own lock and
// beside the floor, which is the requests alone with no lock around them.
//
// All of them run in short rounds in turn against one real server without
// fsync, so that their ratios come from the same minutes:
//
//	cd integration
//	export ZOOKEEPER_IMAGE=$(../scripts/zookeeper-image.sh)
//	go test -run '^$' -bench Lock -benchmem -benchtime 30x ./bench
//
// One iteration is one round of each. "x-raw" is Docent's rate divided by that
// of "raw", the median over the rounds; allocs/op and B/op are Docent's for one
// cycle of acquire and release. Absolute rates hold for one machine and hour.
package bench_test

import (
	"context"
	"testing"

	"github.com/docent-go/docent/integration/harness"
)

// workload is how many goroutines contend, and over how many sessions.
type workload struct {
	name     string
	routines int
	sessions int
	cycles   int      // in a round
	peers    []maker  // Docent first
	trips    bool     // round trips mean something: nobody shares a connection
	floors   []string // peers whose ratio is of interest
}

// workloads are what is measured.
func workloads() []workload {
	alone := []maker{docent, zkLock, raw, rawNoList}
	queue := []maker{docent, zkLock, rawHandOver}
	return []workload{
		{"free", 1, 1, 300, alone, true, []string{"zklock", "raw", "raw-nolist"}},
		{"8 waiters with a session each", 8, 8, 400, queue, true, []string{"zklock", "raw-handover"}},
		{"8 waiters on one session", 8, 1, 400, queue, false, []string{"zklock", "raw-handover"}},
		{"64 waiters on one session", 64, 1, 400, queue, false, []string{"zklock", "raw-handover"}},
	}
}

// BenchmarkLock is everybody in turn; choose with -bench Lock/free and the
// like.
func BenchmarkLock(b *testing.B) {
	ctx := b.Context()
	node := harness.StartServer(ctx, b)
	for _, w := range workloads() {
		b.Run(w.name, func(b *testing.B) { w.run(ctx, b, node) })
	}
}

// BenchmarkDocent is Docent alone, one iteration a cycle, for the profiler:
//
//	go test -run '^$' -bench Docent/free -benchmem -benchtime 10000x -cpuprofile cpu.out -memprofile mem.out -memprofilerate 1 ./bench
func BenchmarkDocent(b *testing.B) {
	ctx := b.Context()
	node := harness.StartServer(ctx, b)
	for _, w := range workloads() {
		b.Run(w.name, func(b *testing.B) {
			f := docent(ctx, b, node.Addr(), &w)
			s := f.round(ctx, b, max(b.N, 2)) // times itself, without its beginning and end
			b.ReportMetric(float64(s.took.Nanoseconds())/float64(s.cycles), "ns/op")
			b.ReportMetric(s.allocs, "allocs/op")
			b.ReportMetric(s.bytes, "B/op")
		})
	}
}

// run is b.N rounds of each peer, the order turned by one each time.
func (w *workload) run(ctx context.Context, b *testing.B, node *harness.Node) {
	b.Helper()
	fields := make([]*field, len(w.peers))
	for i, peer := range w.peers {
		fields[i] = peer(ctx, b, node.Addr(), w)
		fields[i].round(ctx, b, w.cycles/4) // warm
	}
	b.ResetTimer()
	rounds := make([][]sample, len(fields))
	for n := range b.N {
		for i := range fields {
			at := (i + n) % len(fields)
			rounds[at] = append(rounds[at], fields[at].round(ctx, b, w.cycles))
		}
	}
	b.StopTimer()
	b.ReportMetric(0, "ns/op") // of a round of everybody: says nothing
	for i, f := range fields {
		describe(b, f.name, rounds[i], i == 0, w.routines > 1)
		for _, floor := range w.floors {
			if floor == f.name {
				b.ReportMetric(ratio(rounds[0], rounds[i]), "x-"+f.name)
			}
		}
		w.count(ctx, b, node, w.peers[i])
	}
}

// describe reports what a cycle of one peer costs.
func describe(b *testing.B, name string, rounds []sample, first, queued bool) {
	b.Helper()
	b.ReportMetric(median(rounds, sample.rate), name+"-cycles/s")
	b.ReportMetric(median(rounds, func(s sample) float64 { return s.cpu }), name+"-cpu-us/cycle")
	if queued {
		b.ReportMetric(median(rounds, func(s sample) float64 { return s.handOver }), name+"-handover-us")
	}
	allocs := median(rounds, func(s sample) float64 { return s.allocs })
	bytes := median(rounds, func(s sample) float64 { return s.bytes })
	if first {
		b.ReportMetric(allocs, "allocs/op")
		b.ReportMetric(bytes, "B/op")
		return
	}
	b.ReportMetric(allocs, name+"-allocs/cycle")
	b.ReportMetric(bytes, name+"-B/cycle")
}
