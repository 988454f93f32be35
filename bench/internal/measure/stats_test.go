package measure_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/bench/internal/load"
	"github.com/docent-go/docent/bench/internal/measure"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, c := range []struct {
		sorted        []float64
		percent, want float64
	}{
		{hundred, 50, 50},
		{hundred, 90, 90},
		{hundred, 99, 99},
		{hundred, 100, 100},
		{hundred, 0, 1},
		{[]float64{7}, 50, 7},
		{[]float64{7}, 99, 7},
		{[]float64{1, 2, 3}, 50, 2},
		{[]float64{1, 2, 3, 4}, 50, 2},
		{[]float64{1, 2, 3}, 99, 3},
	} {
		if got := measure.Percentile(c.sorted, c.percent); got != c.want {
			t.Errorf("Percentile of %d values, %v %% = %v, want %v", len(c.sorted), c.percent, got, c.want)
		}
	}
	if got := measure.Percentile(nil, 50); !math.IsNaN(got) {
		t.Errorf("Percentile of nothing = %v", got)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{5}, 5},
		{[]float64{1, math.NaN(), 9, 5}, 5},
	} {
		given := slices.Clone(c.values)
		if got := measure.Median(c.values); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", given, got, c.want)
		}
		if !slices.EqualFunc(given, c.values, func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }) {
			t.Errorf("Median changed %v to %v", given, c.values)
		}
	}
	if got := measure.Median([]float64{math.NaN()}); !math.IsNaN(got) {
		t.Errorf("Median of nothing = %v", got)
	}
}

// TestTurns: in each round every peer has one turn. No peer always follows the
// same one or is always first.
func TestTurns(t *testing.T) {
	t.Parallel()
	const n, rounds = 5, 10
	first := map[int]int{}
	before := map[[2]int]int{}
	for round := range rounds {
		order := measure.Turns(round, n)
		seen := map[int]bool{}
		for i, who := range order {
			seen[who] = true
			if i > 0 {
				before[[2]int{order[i-1], who}]++
			}
		}
		if len(order) != n || len(seen) != n {
			t.Fatalf("round %d: %v", round, order)
		}
		first[order[0]]++
	}
	for who := range n {
		if first[who] != rounds/n {
			t.Errorf("%d is first in %d rounds of %d", who, first[who], rounds)
		}
	}
	for pair, times := range before {
		if times > rounds/2 {
			t.Errorf("%d follows %d in %d rounds of %d", pair[1], pair[0], times, rounds)
		}
	}
}

// TestSample: the meters' span is longer than the window, and what is per cycle is right
// all the same.
func TestSample(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	result := &load.Result{
		Cycles: 500, Nanos: int64(time.Second),
		Cycle: []int64{3000, 1000, 2000}, HandOver: []int64{4000},
	}
	before := measure.Meter{At: at, Requests: 100, Events: 10, Server: time.Second, Client: 2 * time.Second}
	after := measure.Meter{
		At: at.Add(2 * time.Second), Requests: 100 + 3000, Events: 10 + 1000,
		Server: time.Second + 400*time.Millisecond, Client: 2*time.Second + 100*time.Millisecond,
	}
	s := measure.NewSample(result, nil, before, after)
	for what, pair := range map[string][2]float64{
		"rate": {s.Rate, 500}, "requests": {s.Requests, 3}, "events": {s.Events, 1},
		"server": {s.ServerCPU, 400}, "client": {s.ClientCPU, 100},
		"cycle": {s.Cycle[0], 2}, "p99": {s.Cycle[2], 3}, "hand-over": {s.HandOver[0], 4},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s = %v, want %v", what, pair[0], pair[1])
		}
	}
	if s := measure.NewSample(&load.Result{Cycles: 1, Nanos: 1}, nil, before, after); s.HandOver != nil || s.Cycle != nil {
		t.Errorf("percentiles of nothing: %v, %v", s.HandOver, s.Cycle)
	}
}

// TestLone: what is per cycle is by the cycles of both processes, and the rates are not.
func TestLone(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	before, after := measure.Meter{At: at}, measure.Meter{At: at.Add(time.Second), Requests: 1500, Client: 50 * time.Millisecond}
	crowd := &load.Result{Cycles: 490, Nanos: int64(time.Second), HandOver: []int64{1000}}
	lone := &load.Result{Cycles: 10, Nanos: int64(time.Second), Cycle: []int64{7000}}
	s := measure.NewSample(crowd, lone, before, after)
	if s.Rate != 490 || s.Lone != 10 || s.Requests != 3 || s.ClientCPU != 100 || s.LoneCycle[0] != 7 || s.HandOver != nil {
		t.Errorf("a crowd of 490/s and a lone one of 10/s: %+v", s)
	}
	if s := measure.NewSample(crowd, &load.Result{Nanos: 1}, before, after); s.Lone != 0 || s.LoneCycle != nil {
		t.Errorf("a lone one without a turn: %+v", s)
	}
}
