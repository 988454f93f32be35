// Package promdocent exports the metrics of Docent's clients to Prometheus.
//
//	metrics := promdocent.New()
//	prometheus.MustRegister(metrics)
//	c, err := client.Connect(ctx, servers, client.WithObserver(metrics.Observer()))
//
// The metrics are those of [observe.Metrics], with underscores for dots:
// docent_lock_acquire_duration_seconds. docs/observability.md says which of them to watch.
// observe/dashboard.json and observe/alerts.yaml are a dashboard for Grafana and rules for
// alerts.
package promdocent

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
)

// Collector has the metrics of any number of clients. It is a [prometheus.Collector], to
// be registered once. For constant labels register it with
// [prometheus.WrapRegistererWith]. All methods are safe for concurrent use.
type Collector struct {
	measures *observe.Measures
	metrics  []prometheus.Collector
	asked    *asked
}

// Option changes a Collector.
type Option func(*settings)

type settings struct{ name observe.LockName }

// WithLockName sets the function that gives the values of the labels "docent_lock_name",
// "docent_cache_name", "docent_node_name" and "docent_service_name", which are left out
// otherwise. After a hundred different values of one any other value is [observe.Other].
func WithLockName(name observe.LockName) Option {
	return func(s *settings) { s.name = name }
}

// New returns a Collector without clients.
func New(opts ...Option) *Collector {
	var s settings
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}
	c := &Collector{}
	v := vectors{histograms: map[string]*prometheus.HistogramVec{}, counters: map[string]*prometheus.CounterVec{}, gauges: map[string]*prometheus.GaugeVec{}}
	for _, m := range observe.Metrics() {
		if m.Kind != observe.Asked {
			c.metrics = append(c.metrics, v.add(m))
		}
	}
	c.asked = &asked{}
	c.measures = observe.NewMeasures(sink{v, c.asked}, s.name)
	return c
}

// Observer returns the hooks for one client, for [client.WithObserver]. Each client needs
// its own observer. The hooks never block.
func (c *Collector) Observer() client.Observer { return c.measures.Observer() }

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		m.Describe(to)
	}
	for _, m := range observe.Metrics() {
		if m.Kind == observe.Asked {
			to <- desc(m)
		}
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	for _, m := range c.metrics {
		m.Collect(to)
	}
	c.asked.collect(to)
}

func desc(m observe.Metric) *prometheus.Desc {
	return prometheus.NewDesc(m.PrometheusName(), m.Help, m.PrometheusLabels(), nil)
}

// asked are the values that are computed at each scrape.
type asked struct {
	mu  sync.Mutex
	all []func() prometheus.Metric
}

func (a *asked) collect(to chan<- prometheus.Metric) {
	a.mu.Lock()
	all := slices.Clone(a.all)
	a.mu.Unlock()
	for _, ask := range all {
		to <- ask()
	}
}

// sink is the [observe.Sink] for Prometheus.
type sink struct {
	vectors
	*asked
}

// Ask implements [observe.Sink].
func (a *asked) Ask(m observe.Metric, value func() float64, values ...string) {
	of := desc(m)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, func() prometheus.Metric {
		return prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value(), values...)
	})
}

// vectors are the sums and the histograms.
type vectors struct {
	histograms map[string]*prometheus.HistogramVec
	counters   map[string]*prometheus.CounterVec
	gauges     map[string]*prometheus.GaugeVec
}

// add makes the vector of a metric.
func (v vectors) add(m observe.Metric) prometheus.Collector {
	name, labels := m.PrometheusName(), m.PrometheusLabels()
	switch m.Kind {
	case observe.Histogram:
		v.histograms[m.Name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: m.Help, Buckets: m.Buckets}, labels)
		return v.histograms[m.Name]
	case observe.Counter:
		v.counters[m.Name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: m.Help}, labels)
		return v.counters[m.Name]
	default:
		v.gauges[m.Name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: m.Help}, labels)
		return v.gauges[m.Name]
	}
}

// Histogram implements [observe.Sink].
func (v vectors) Histogram(m observe.Metric, values ...string) func(context.Context, float64) {
	h := v.histograms[m.Name].WithLabelValues(values...)
	return func(_ context.Context, value float64) { h.Observe(value) }
}

// Sum implements [observe.Sink].
func (v vectors) Sum(m observe.Metric, values ...string) func(context.Context, int64) {
	if m.Kind == observe.Counter {
		c := v.counters[m.Name].WithLabelValues(values...)
		return func(_ context.Context, n int64) { c.Add(float64(n)) }
	}
	g := v.gauges[m.Name].WithLabelValues(values...)
	return func(_ context.Context, n int64) { g.Add(float64(n)) }
}
