package observe

import (
	"context"
	"sync"
)

// Sink is a library of metrics. Its methods, and the functions that they return, must
// be safe for concurrent use, and may not block.
//
// values are those of the metric's labels, in their order. An empty value means a
// label that is not there. [Measures] asks once for each metric and values, keeps the
// function, and calls it for every value.
type Sink interface {
	// Histogram returns the function that records a value of a histogram.
	Histogram(m Metric, values ...string) func(ctx context.Context, value float64)
	// Sum returns the function that adds to a counter or to a gauge. The sum is 0
	// before the first call, and is exported from then on.
	Sum(m Metric, values ...string) func(ctx context.Context, n int64)
	// Ask tells of a value of the kind [Asked]: value is called whenever the value is exported.
	Ask(m Metric, value func() float64, values ...string)
}

// series keeps what was made for each key.
type series[K comparable, V any] struct {
	mu      sync.RWMutex
	made    map[K]V
	missing func(K) V
}

func newSeries[K comparable, V any](of func(K) V) *series[K, V] {
	return &series[K, V]{made: map[K]V{}, missing: of}
}

// of returns what belongs to the key, and makes it the first time.
func (s *series[K, V]) of(key K) V {
	s.mu.RLock()
	v, ok := s.made[key]
	s.mu.RUnlock()
	if ok {
		return v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.made[key]; ok {
		return v
	}
	v = s.missing(key)
	s.made[key] = v
	return v
}
