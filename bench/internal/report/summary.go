// Package report makes tables and plots of results.
package report

import (
	"math"

	"github.com/docent-go/docent/bench/internal/measure"
	"github.com/docent-go/docent/bench/internal/plan"
	"github.com/docent-go/docent/bench/internal/run"
)

// row is the medians of one peer in one workload and setting. What there is not is NaN.
type row struct {
	peer      plan.Peer
	failed    string
	has       bool // was measured
	rate      float64
	low, high float64 // of the rate
	lone      float64 // rate of a lone contender
	loneCycle float64 // the median of its cycle
	cycle     []float64
	handOver  []float64
	requests  float64
	events    float64
	server    float64
	client    float64
}

// block is one workload in one setting.
type block struct {
	setting  plan.Setting
	workload plan.Workload
	rows     []row // of every peer of the run, in the order of the plan
}

// blocks sorts results by setting and workload.
func blocks(r *run.Results) []block {
	type key struct{ setting, workload, peer string }
	cells := map[key]*run.Cell{}
	there := map[string]bool{}      // names of peers that were measured
	blocked := map[[2]string]bool{} // settings and workloads that were
	for i, c := range r.Cells {
		cells[key{c.Setting, c.Workload, c.Peer}] = &r.Cells[i]
		there[c.Peer] = true
		blocked[[2]string{c.Setting, c.Workload}] = true
	}
	var all []block
	for _, s := range plan.Settings() {
		for _, w := range plan.Workloads() {
			if !blocked[[2]string{s.Name, w.Name}] {
				continue
			}
			b := block{setting: s, workload: w}
			for _, p := range plan.Peers() {
				c := cells[key{s.Name, w.Name, p.Name}]
				if c == nil && (p.Floor || !there[p.Name]) {
					continue // a floor that was not measured has no row
				}
				b.rows = append(b.rows, summary(p, c))
			}
			all = append(all, b)
		}
	}
	return all
}

// summary makes a row of a cell; nil is a peer that has no such lock.
func summary(p plan.Peer, c *run.Cell) row {
	r := row{peer: p, low: math.NaN(), high: math.NaN()}
	var rounds []measure.Sample
	if c != nil {
		rounds, r.failed, r.has = c.Rounds, c.Failed, len(c.Rounds) > 0
	}
	of := func(figure func(measure.Sample) float64) float64 {
		var all []float64
		for _, s := range rounds {
			all = append(all, figure(s))
		}
		return measure.Median(all)
	}
	r.rate = of(func(s measure.Sample) float64 { return s.Rate })
	r.lone = of(func(s measure.Sample) float64 { return s.Lone })
	r.loneCycle = of(func(s measure.Sample) float64 { return at(s.LoneCycle, 0) })
	for i, s := range rounds {
		if i == 0 || s.Rate < r.low {
			r.low = s.Rate
		}
		if i == 0 || s.Rate > r.high {
			r.high = s.Rate
		}
	}
	for i := range measure.Percents() {
		r.cycle = append(r.cycle, of(func(s measure.Sample) float64 { return at(s.Cycle, i) }))
		r.handOver = append(r.handOver, of(func(s measure.Sample) float64 { return at(s.HandOver, i) }))
	}
	r.requests = of(func(s measure.Sample) float64 { return s.Requests })
	r.events = of(func(s measure.Sample) float64 { return s.Events })
	r.server = of(func(s measure.Sample) float64 { return s.ServerCPU })
	r.client = of(func(s measure.Sample) float64 { return s.ClientCPU })
	return r
}

func at(all []float64, i int) float64 {
	if i >= len(all) {
		return math.NaN()
	}
	return all[i]
}

// find returns the row of a peer; one without figures if there is none.
func (b *block) find(peer string) row {
	for _, r := range b.rows {
		if r.peer.Name == peer {
			return r
		}
	}
	return summary(plan.Peer{}, nil)
}

// floor is the row that the others are compared to.
func (b *block) floor() row { return b.find(b.workload.Floor()) }
