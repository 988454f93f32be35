package oteldocent

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/docent-go/docent/observe"
)

// scope is the name of what makes the metrics and the spans.
const scope = "github.com/docent-go/docent/observe/oteldocent"

// NewMetrics returns the measures that go to the provider, for example to
// otel.GetMeterProvider(). [observe.Measures.Observer] gives each client its observer.
// The metrics are those of [observe.Metrics]; [observe.Gauge] is an up-down counter. name
// gives the values of the attributes "docent.lock.name", "docent.cache.name",
// "docent.node.name" and "docent.service.name"; nil leaves them out. After a hundred
// different values of one any other value is [observe.Other].
//
// It fails if the provider refuses an instrument.
func NewMetrics(provider metric.MeterProvider, name observe.LockName) (*observe.Measures, error) {
	meter := provider.Meter(scope)
	s := instruments{
		histograms: map[string]metric.Float64Histogram{}, counters: map[string]metric.Int64Counter{},
		gauges: map[string]metric.Int64UpDownCounter{}, asked: map[string]*asked{},
	}
	var errs []error
	for _, m := range observe.Metrics() {
		errs = append(errs, s.add(meter, m))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return observe.NewMeasures(s, name), nil
}

// instruments is the [observe.Sink] for OpenTelemetry.
type instruments struct {
	histograms map[string]metric.Float64Histogram
	counters   map[string]metric.Int64Counter
	gauges     map[string]metric.Int64UpDownCounter
	asked      map[string]*asked
}

// asked are the series of one observable gauge.
type asked struct {
	mu  sync.Mutex
	all []func(metric.Float64Observer)
}

func (a *asked) observe(_ context.Context, to metric.Float64Observer) error {
	a.mu.Lock()
	all := slices.Clone(a.all)
	a.mu.Unlock()
	for _, ask := range all {
		ask(to)
	}
	return nil
}

// add makes the instrument of a metric.
func (s instruments) add(meter metric.Meter, m observe.Metric) (err error) {
	switch m.Kind {
	case observe.Histogram:
		s.histograms[m.Name], err = meter.Float64Histogram(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Help),
			metric.WithExplicitBucketBoundaries(m.Buckets...))
	case observe.Counter:
		s.counters[m.Name], err = meter.Int64Counter(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Help))
	case observe.Asked:
		s.asked[m.Name] = &asked{}
		_, err = meter.Float64ObservableGauge(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Help),
			metric.WithFloat64Callback(s.asked[m.Name].observe))
	default:
		s.gauges[m.Name], err = meter.Int64UpDownCounter(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Help))
	}
	return err
}

// attributes are those of one series. A value that is empty is left out.
func attributes(m observe.Metric, values []string) metric.MeasurementOption {
	kv := make([]attribute.KeyValue, 0, len(values))
	for i, v := range values {
		if v != "" {
			kv = append(kv, attribute.String(m.Labels[i], v))
		}
	}
	return metric.WithAttributeSet(attribute.NewSet(kv...))
}

// Histogram implements [observe.Sink].
func (s instruments) Histogram(m observe.Metric, values ...string) func(context.Context, float64) {
	h, with := s.histograms[m.Name], []metric.RecordOption{attributes(m, values)}
	return func(ctx context.Context, value float64) { h.Record(ctx, value, with...) }
}

// Sum implements [observe.Sink].
func (s instruments) Sum(m observe.Metric, values ...string) func(context.Context, int64) {
	var sum interface {
		Add(ctx context.Context, n int64, options ...metric.AddOption)
	} = s.gauges[m.Name]
	if m.Kind == observe.Counter {
		sum = s.counters[m.Name]
	}
	with := []metric.AddOption{attributes(m, values)}
	sum.Add(unspanned(), 0, with...) // it is exported from now on
	return func(ctx context.Context, n int64) { sum.Add(ctx, n, with...) }
}

// Ask implements [observe.Sink].
func (s instruments) Ask(m observe.Metric, value func() float64, values ...string) {
	a, with := s.asked[m.Name], attributes(m, values)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, func(to metric.Float64Observer) { to.Observe(value(), with) })
}

// unspanned is the context of what no caller asked for.
func unspanned() context.Context {
	return context.Background() //nolint:forbidigo // these hooks are given no context
}
