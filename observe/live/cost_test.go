package live_test

import (
	"context"
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/oteldocent"
	"github.com/docent-go/docent/observe/promdocent"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// BenchmarkCycle acquires and releases a free mutex, on a server in this process, with
// each adapter and without an observer. "x-none" is the time against that without.
func BenchmarkCycle(b *testing.B) {
	measures, err := oteldocent.NewMetrics(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())), observe.FirstElement)
	if err != nil {
		b.Fatal(err)
	}
	spans := func(sampler trace.Sampler) client.Observer {
		discard := trace.NewBatchSpanProcessor(tracetest.NewNoopExporter())
		return oteldocent.Spans(trace.NewTracerProvider(trace.WithSampler(sampler), trace.WithSpanProcessor(discard)))
	}
	var none float64
	for _, v := range []struct {
		name     string
		observer client.Observer
	}{
		{"none", client.Observer{}},
		{"promdocent", promdocent.New(promdocent.WithLockName(observe.FirstElement)).Observer()},
		{"oteldocent-metrics", measures.Observer()},
		{"oteldocent-spans-unsampled", spans(trace.NeverSample())},
		{"oteldocent-spans", spans(trace.AlwaysSample())},
		{"oteldocent-both", observe.Join(spans(trace.AlwaysSample()), measures.Observer())},
	} {
		b.Run(v.name, func(b *testing.B) {
			cycle(b, v.observer)
			perCycle := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			if v.name == "none" {
				none = perCycle
			}
			if none != 0 {
				b.ReportMetric(perCycle/none, "x-none")
			}
		})
	}
}

func cycle(b *testing.B, observer client.Observer) {
	b.Helper()
	srv := zktest.NewServer(b, zktest.WithLogSize(0))
	c, err := client.Connect(b.Context(), "zk", client.WithDialer(srv.Client("docent").DialContext),
		client.WithLogger(slog.New(slog.DiscardHandler)), client.WithObserver(observer))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.CloseContext(context.WithoutCancel(b.Context())) }() // the benchmark is over
	m, err := recipes.NewInterProcessMutex(c, "/orders/4711")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		h, err := m.Acquire(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
