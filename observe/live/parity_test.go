package live_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/internal/scenes"
	"github.com/docent-go/docent/observe/oteldocent"
	"github.com/docent-go/docent/observe/promdocent"
	"github.com/docent-go/docent/zktest"
)

// Both adapters export the same series to Prometheus, with the same values. So the
// dashboard and the alerts fit both.
func TestAdaptersAgree(t *testing.T) {
	t.Parallel()
	direct, through := prometheus.NewPedanticRegistry(), prometheus.NewPedanticRegistry()
	collector := promdocent.New(promdocent.WithLockName(observe.FirstElement))
	direct.MustRegister(collector)
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(through), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		t.Fatal(err)
	}
	measures, err := oteldocent.NewMetrics(metric.NewMeterProvider(metric.WithReader(exporter)), observe.FirstElement)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithTick(100*time.Millisecond), zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := scenes.Play(ctx, srv, func() client.Observer { return observe.Join(collector.Observer(), measures.Observer()) })
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	})
	a, b := series(t, direct), series(t, through)
	for id, v := range a {
		got, ok := b[id]
		if !ok && v.kind == dto.MetricType_HISTOGRAM && v.count == 0 {
			continue // OpenTelemetry exports a histogram from its first value on
		}
		if got != v {
			t.Errorf("%s is %v by promdocent and %v by oteldocent", id, v, got)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[id]; !ok {
			t.Errorf("only oteldocent exports %s", id)
		}
	}
	if len(a) < 100 {
		t.Errorf("%d series", len(a))
	}
}

type reading struct {
	kind    dto.MetricType
	help    string
	value   float64
	count   uint64
	buckets int
}

// series maps the name and the labels of every series to what it says.
func series(t *testing.T, from prometheus.Gatherer) map[string]reading {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]reading{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			id := f.GetName()
			for _, l := range m.GetLabel() {
				if l.GetValue() != "" { // the same as no label
					id += " " + l.GetName() + "=" + l.GetValue()
				}
			}
			all[id] = reading{
				f.GetType(), f.GetHelp(), m.GetCounter().GetValue() + m.GetGauge().GetValue(),
				m.GetHistogram().GetSampleCount(), len(m.GetHistogram().GetBucket()),
			}
		}
	}
	return all
}
