package live_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/oteldocent"
	"github.com/docent-go/docent/observe/promdocent"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// BenchmarkCycle acquires and releases a free mutex, on a server in this process, with
// each adapter and without an observer. All take turns, so that what else the machine
// does hits them alike. The benchmark logs the median time and the allocations of a cycle,
// and their ratio to those without an observer. Run it with -benchtime 200x.
func BenchmarkCycle(b *testing.B) {
	measures, err := oteldocent.NewMetrics(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())), observe.FirstElement)
	if err != nil {
		b.Fatal(err)
	}
	spans := func(sampler trace.Sampler) client.Observer {
		discard := trace.NewBatchSpanProcessor(tracetest.NewNoopExporter())
		return oteldocent.Spans(trace.NewTracerProvider(trace.WithSampler(sampler), trace.WithSpanProcessor(discard)))
	}
	variants := []*variant{
		{name: "no observer"},
		{name: "hooks that do nothing", observer: client.Observer{
			Operation: func(ctx context.Context, _ client.OperationInfo) (context.Context, func(client.OperationResult)) {
				return ctx, func(client.OperationResult) {}
			},
			Lock: func(ctx context.Context, _ client.LockInfo) (context.Context, client.LockHooks) {
				return ctx, client.LockHooks{}
			},
		}},
		{name: "promdocent", observer: promdocent.New(promdocent.WithLockName(observe.FirstElement)).Observer()},
		{name: "oteldocent, metrics", observer: measures.Observer()},
		{name: "oteldocent, spans that are not sampled", observer: spans(trace.NeverSample())},
		{name: "oteldocent, spans", observer: spans(trace.AlwaysSample())},
		{name: "oteldocent, spans and metrics", observer: observe.Join(spans(trace.AlwaysSample()), measures.Observer())},
	}
	const batch = 20
	for _, v := range variants {
		v.start(b)
		v.allocs = testing.AllocsPerRun(1000, func() { v.cycle(b) })
	}
	for b.Loop() {
		for _, v := range variants {
			begun := time.Now()
			for range batch {
				v.cycle(b)
			}
			v.took = append(v.took, time.Since(begun)/batch)
		}
	}
	none := variants[0]
	for _, v := range variants {
		b.Logf("%-40s %8v %5.2f x %6.0f allocations %5.2f x", v.name, v.median(), float64(v.median())/float64(none.median()), v.allocs, v.allocs/none.allocs)
	}
}

// variant is a client with an observer.
type variant struct {
	name     string
	observer client.Observer
	lock     *recipes.InterProcessMutex
	allocs   float64
	took     []time.Duration
}

func (v *variant) start(b *testing.B) {
	b.Helper()
	srv := zktest.NewServer(b, zktest.WithLogSize(0))
	c := testrig.Connect(b.Context(), b, "zk", srv.Client("docent").DialContext, client.WithObserver(v.observer))
	var err error
	if v.lock, err = recipes.NewInterProcessMutex(c, "/orders/4711"); err != nil {
		b.Fatal(err)
	}
	v.cycle(b) // makes the directory
}

func (v *variant) cycle(b *testing.B) {
	b.Helper()
	h, err := v.lock.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := h.Release(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func (v *variant) median() time.Duration {
	took := slices.Sorted(slices.Values(v.took))
	return took[len(took)/2]
}
