package measure

import (
	"slices"
	"time"

	"github.com/docent-go/docent/bench/internal/load"
)

// Percents are the percentiles that are reported.
func Percents() []float64 { return []float64{50, 90, 99} }

// Sample is what one round of one peer has measured. Times are in microseconds; what is
// "per cycle" is divided by the cycles.
type Sample struct {
	Rate      float64   `json:"rate"`                // cycles per second, without those of a lone contender
	Lone      float64   `json:"lone,omitempty"`      // cycles per second of a lone contender
	LoneCycle []float64 `json:"loneCycle,omitempty"` // percentiles of its whole cycle, or empty
	Cycle     []float64 `json:"cycle"`               // percentiles of a whole cycle, or empty
	HandOver  []float64 `json:"handover,omitempty"`  // percentiles of a hand-over, or empty
	Requests  float64   `json:"requests"`            // per cycle, that the servers received
	Events    float64   `json:"events"`              // per cycle, that the servers sent
	ServerCPU float64   `json:"serverCPU"`           // per cycle, of all servers
	ClientCPU float64   `json:"clientCPU"`           // per cycle
}

// Meter is what was read at one moment.
type Meter struct {
	At               time.Time
	Requests, Events float64
	Server, Client   time.Duration
}

// NewSample makes a sample of a result and of the meters around it, and of the result of
// a lone contender unless it is nil. The meters are read a little before and after the
// results, so NewSample compares them by the second.
func NewSample(r, lone *load.Result, before, after Meter) Sample {
	span := after.At.Sub(before.At).Seconds()
	s := Sample{Rate: rate(r)}
	if lone != nil {
		s.Lone, s.LoneCycle = rate(lone), percentiles(lone.Cycle)
	}
	per := 1 / (span * (s.Rate + s.Lone))
	s.Requests = (after.Requests - before.Requests) * per
	s.Events = (after.Events - before.Events) * per
	s.ServerCPU = micros(int64(after.Server-before.Server)) * per
	s.ClientCPU = micros(int64(after.Client-before.Client)) * per
	s.Cycle = percentiles(r.Cycle)
	if lone == nil { // else neither process knows when the other one has released
		s.HandOver = percentiles(r.HandOver)
	}
	return s
}

func rate(r *load.Result) float64 { return float64(r.Cycles) / time.Duration(r.Nanos).Seconds() }

func micros(nanos int64) float64 { return float64(nanos) / float64(time.Microsecond) }

func percentiles(nanos []int64) []float64 {
	if len(nanos) == 0 {
		return nil
	}
	sorted := make([]float64, len(nanos))
	for i, n := range nanos {
		sorted[i] = micros(n)
	}
	slices.Sort(sorted)
	var all []float64
	for _, p := range Percents() {
		all = append(all, Percentile(sorted, p))
	}
	return all
}
