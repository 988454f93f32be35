package oteldocent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/internal/scenes"
	"github.com/docent-go/docent/observe/oteldocent"
	"github.com/docent-go/docent/zktest"
)

// point is a point of any kind of metric.
type point struct {
	attributes attribute.Set
	count      int64 // of values, for a histogram
}

func points(data metricdata.Aggregation) (all []point) {
	switch d := data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			all = append(all, point{p.Attributes, int64(p.Count)})
		}
	case metricdata.Gauge[float64]:
		for _, p := range d.DataPoints {
			all = append(all, point{p.Attributes, int64(p.Value)})
		}
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			all = append(all, point{p.Attributes, p.Value})
		}
	}
	return all
}

// Every metric goes to the provider, with its unit and its kind, and says what has
// happened.
func TestMetrics(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	measures, err := oteldocent.NewMetrics(metric.NewMeterProvider(metric.WithReader(reader)), nil)
	if err != nil {
		t.Fatal(err)
	}
	var facts []scenes.Fact
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithTick(100*time.Millisecond), zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var err error
		if facts, err = scenes.Play(ctx, srv, measures.Observer); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	})
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	got := map[string]metricdata.Metrics{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		got[m.Name] = m
	}
	for _, m := range observe.Metrics() {
		g := got[m.Name]
		if g.Unit != m.Unit || g.Description != m.Help || len(points(g.Data)) == 0 {
			t.Errorf("%s has unit %q, %d points", m.Name, g.Unit, len(points(g.Data)))
		}
		if sum, ok := g.Data.(metricdata.Sum[int64]); ok && sum.IsMonotonic != (m.Kind == observe.Counter) {
			t.Errorf("%s: only grows is %v", m.Name, sum.IsMonotonic)
		}
		for _, f := range facts {
			if n := total(points(g.Data), f.Labels); f.Metric == m.Name && n != f.Count {
				t.Errorf("%s %v is %d, want %d", m.Name, f.Labels, n, f.Count)
			}
		}
	}
	if len(got) != len(observe.Metrics()) {
		t.Errorf("%d metrics, want %d", len(got), len(observe.Metrics()))
	}
}

// total sums the points that have the labels.
func total(all []point, labels map[string]string) (n int64) {
	for _, p := range all {
		same := true
		for k, want := range labels {
			v, _ := p.attributes.Value(attribute.Key(k))
			same = same && v.AsString() == want
		}
		if same {
			n += p.count
		}
	}
	return n
}
