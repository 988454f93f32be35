// Package path_test measures what one request costs on its way through the client.
package path_test

import (
	"context"
	"fmt"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/recipes"
)

// What one round of each race does. A caller's round takes 20 to 200 ms.
const (
	getsInRound   = 300
	cyclesInRound = 100
	manyInRound   = 400
	manyCallers   = 8
	warmRounds    = 10 // before the first that counts: the server compiles itself
)

// BenchmarkPath measures what a request costs on its way through the client,
// beside the same request of go-zookeeper's own zk.Conn:
//
//	cd bench
//	go test -run '^$' -bench Path -benchtime 200x ./path | tr '\t' '\n'
//
// One iteration is one short round of every caller, in turn, on one server:
//
//   - get: client.Get of one node, beside Conn.Get of the same node, and beside the
//     floor: a Write, a Read on another goroutine and nothing else;
//   - alone: the same, but the caller of the floor reads the answer itself;
//   - lock: a free recipes.InterProcessMutex, acquired and released, beside an
//     ephemeral sequential node, created and deleted;
//   - listed: the create and list of a lock, and Delete, beside the same;
//   - locks8: eight free mutexes, each with a path and a goroutine of its own,
//     on one client, beside eight such goroutines on one Conn.
//
// Every figure is the median over the rounds. A ratio compares the two of one
// race in one round. "get-p50-x-raw" is the client's median time by that of the
// Conn: less is better. "...-rate-x-raw" is the client's cycles in a second by
// the Conn's: more is better. "-q1" and "-q3" are the quartiles of a ratio.
// Allocations and wake-ups are this process's for one call or cycle, while only
// that caller is at work. A wake-up is a goroutine that begins to run. Of each
// goroutine the runtime counts every eighth, so a figure is true to a tenth.
func BenchmarkPath(b *testing.B) {
	ctx := b.Context()
	races := races(ctx, b, server(ctx, b))
	for range warmRounds {
		for _, r := range races {
			r.round(ctx, b, false)
		}
	}
	for _, r := range races {
		r.docentCosts, r.rawCosts, r.floorCosts = nil, nil, nil
	}
	b.ResetTimer()
	for n := range b.N {
		for _, r := range races {
			r.round(ctx, b, n%2 == 1)
		}
	}
	b.StopTimer()
	b.ReportMetric(0, "ns/op") // of a round of every caller: says nothing
	for _, r := range races {
		r.report(b)
	}
}

// race is one request of Docent's beside that of go-zookeeper.
type race struct {
	name   string
	calls  int // in a round
	cycles bool
	docent []func(context.Context) error // one for each goroutine
	raw    []func(context.Context) error
	floor  []func(context.Context) error // nil: there is none

	docentCosts, rawCosts, floorCosts []cost // by round
}

// races connects every caller to the server at addr.
func races(ctx context.Context, b *testing.B, addr string) []*race {
	b.Helper()
	c := connect(ctx, b, addr)
	conn := dial(b, addr)
	locks := func(n int) (docent, raw []func(context.Context) error) {
		for range n {
			m, err := recipes.NewInterProcessMutex(c, directory(b, conn))
			if err != nil {
				b.Fatal(err)
			}
			docent = append(docent, docentCycle(m))
			raw = append(raw, rawCycle(conn, directory(b, conn)))
		}
		return docent, raw
	}
	get := &race{name: "get", calls: getsInRound}
	get.docent, get.raw, get.floor = gets(ctx, b, c, conn, addr)
	alone := &race{name: "alone", calls: getsInRound, docent: get.docent, raw: get.raw}
	alone.floor = append(alone.floor, aloneGet(ctx, b, addr, "/"))
	lock := &race{name: "lock", calls: cyclesInRound, cycles: true}
	lock.docent, lock.raw = locks(1)
	listed := &race{name: "listed", calls: cyclesInRound, cycles: true}
	listed.docent = listings(ctx, b, c, directory(b, conn))
	listed.raw = lock.raw
	listed.floor = append(listed.floor, floorLock(ctx, b, addr, directory(b, conn)))
	many := &race{name: fmt.Sprintf("locks%d", manyCallers), calls: manyInRound, cycles: true}
	many.docent, many.raw = locks(manyCallers)
	return []*race{get, alone, lock, listed, many}
}

// gets read one node of some bytes.
func gets(ctx context.Context, b *testing.B, c *client.Client, conn *zk.Conn, addr string) (docent, raw, floor []func(context.Context) error) {
	b.Helper()
	path := directory(b, conn)
	if _, err := conn.Set(path, []byte("some bytes"), -1); err != nil {
		b.Fatal(err)
	}
	docent = append(docent, func(ctx context.Context) error {
		_, _, err := c.Get(ctx, path)
		return err
	})
	raw = append(raw, func(context.Context) error {
		_, _, err := conn.Get(path)
		return err
	})
	return docent, raw, append(floor, floorGet(ctx, b, addr, path))
}

// inner is what package client does for recipes alone.
var inner = inside.Of[client.Client, client.Session, client.Op]()

// listings is what a lock asks of the client, without the lock.
func listings(ctx context.Context, b *testing.B, c *client.Client, dir string) []func(context.Context) error {
	b.Helper()
	s, err := c.Session(ctx)
	if err != nil {
		b.Fatal(err)
	}
	return []func(context.Context) error{func(ctx context.Context) error {
		e, err := inner.CreateAndList(ctx, s, inside.Node[client.Client]{Dir: dir, Prefix: "lock-"})
		if err != nil {
			return err
		}
		return s.Delete(ctx, e.Path, client.AnyVersion)
	}}
}

// round is one round of each, one after the other, backwards if asked.
func (r *race) round(ctx context.Context, b *testing.B, backwards bool) {
	b.Helper()
	turns := []func(){
		func() { r.docentCosts = append(r.docentCosts, spend(ctx, b, r.docent, r.calls)) },
		func() { r.rawCosts = append(r.rawCosts, spend(ctx, b, r.raw, r.calls)) },
	}
	if r.floor != nil {
		turns = append(turns, func() { r.floorCosts = append(r.floorCosts, spend(ctx, b, r.floor, r.calls)) })
	}
	if backwards {
		slices.Reverse(turns)
	}
	for _, turn := range turns {
		turn()
	}
}

// report gives the medians over the rounds.
func (r *race) report(b *testing.B) {
	b.Helper()
	figure, unit, quotient := cost.middle, "p50-us", "p50-x-raw"
	if r.cycles {
		figure, unit, quotient = cost.rate, "cycles/s", "rate-x-raw"
	}
	one := func(name string, costs []cost) {
		b.ReportMetric(median(costs, figure), name+unit)
		b.ReportMetric(median(costs, func(c cost) float64 { return c.allocs }), name+"allocs")
		b.ReportMetric(median(costs, func(c cost) float64 { return c.wakeups }), name+"wakeups")
	}
	beside := func(name string, costs []cost) {
		ratios := make([]float64, len(costs))
		for i := range ratios {
			ratios[i] = figure(costs[i]) / figure(r.rawCosts[i])
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[len(ratios)/2], name+quotient)
		b.ReportMetric(ratios[len(ratios)/4], name+quotient+"-q1")
		b.ReportMetric(ratios[len(ratios)*3/4], name+quotient+"-q3")
	}
	one(r.name+"-", r.docentCosts)
	one(r.name+"-raw-", r.rawCosts)
	beside(r.name+"-", r.docentCosts)
	if r.floor != nil {
		one(r.name+"-floor-", r.floorCosts)
		beside(r.name+"-floor-", r.floorCosts)
	}
}

// cost is what one round has measured; allocations and wake-ups for one call.
type cost struct {
	took            time.Duration
	calls           []time.Duration // sorted
	allocs, wakeups float64
}

func (c cost) middle() float64 { return float64(c.calls[len(c.calls)/2].Nanoseconds()) / 1e3 }
func (c cost) rate() float64   { return float64(len(c.calls)) / c.took.Seconds() }

// spend makes so many calls, shared by a goroutine for each caller. A lone
// caller runs on the calling goroutine.
func spend(ctx context.Context, b *testing.B, callers []func(context.Context) error, calls int) cost {
	b.Helper()
	var (
		next  atomic.Int64
		took  = make([]time.Duration, calls)
		begin = make(chan struct{})
		wg    sync.WaitGroup
	)
	work := func(call func(context.Context) error) {
		for {
			n := int(next.Add(1)) - 1
			if n >= calls {
				return
			}
			at := time.Now()
			if err := call(ctx); err != nil {
				b.Error(err)
				return
			}
			took[n] = time.Since(at)
		}
	}
	for _, call := range callers[1:] {
		wg.Go(func() {
			<-begin
			work(call)
		})
	}
	woken := wakeups()
	before := read()
	close(begin)
	work(callers[0])
	wg.Wait()
	after := read()
	woken = wakeups() - woken
	if b.Failed() {
		b.FailNow()
	}
	slices.Sort(took)
	per := 1 / float64(calls)
	return cost{
		took:    after.at.Sub(before.at),
		calls:   took,
		allocs:  float64(after.mallocs-before.mallocs) * per,
		wakeups: woken * per,
	}
}

// sampled is the part of wake-ups whose latency the runtime records.
const sampled = 8

// wakeups is about how many times a goroutine of this process began to run.
func wakeups() float64 {
	latencies := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(latencies)
	var n uint64
	for _, count := range latencies[0].Value.Float64Histogram().Counts {
		n += count
	}
	return float64(n * sampled)
}
