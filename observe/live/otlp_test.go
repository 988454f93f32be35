package live_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	metricservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metricpb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/internal/scenes"
	"github.com/docent-go/docent/observe/oteldocent"
	"github.com/docent-go/docent/zktest"
)

// receiver is a receiver of OTLP, as a collector has one.
type receiver struct {
	traceservice.UnimplementedTraceServiceServer

	mu      sync.Mutex
	spans   []*tracepb.Span
	metrics map[string]*metricpb.Metric // the newest
}

// meters is the other service of a receiver.
type meters struct {
	metricservice.UnimplementedMetricsServiceServer

	*receiver
}

func (r *receiver) Export(_ context.Context, req *traceservice.ExportTraceServiceRequest) (*traceservice.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range req.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
	return &traceservice.ExportTraceServiceResponse{}, nil
}

func (m meters) Export(_ context.Context, req *metricservice.ExportMetricsServiceRequest) (*metricservice.ExportMetricsServiceResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, resource := range req.GetResourceMetrics() {
		for _, scope := range resource.GetScopeMetrics() {
			for _, metric := range scope.GetMetrics() {
				m.metrics[metric.GetName()] = metric
			}
		}
	}
	return &metricservice.ExportMetricsServiceResponse{}, nil
}

func startReceiver(t *testing.T) (*receiver, string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{metrics: map[string]*metricpb.Metric{}}
	srv := grpc.NewServer()
	traceservice.RegisterTraceServiceServer(srv, r)
	metricservice.RegisterMetricsServiceServer(srv, meters{receiver: r})
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Stop()
		<-served
	})
	return r, l.Addr().String()
}

// A receiver of OTLP gets the spans of a request, with the acquire and the hold in its
// trace. It also gets metrics that say what has happened, with exemplars that point at
// the spans.
func TestOTLP(t *testing.T) {
	t.Parallel()
	r, address := startReceiver(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	spans, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(address), otlptracegrpc.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	values, err := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(address), otlpmetricgrpc.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	tracers := trace.NewTracerProvider(trace.WithBatcher(spans))
	meterProvider := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(values)))
	measures, err := oteldocent.NewMetrics(meterProvider, observe.FirstElement)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := zktest.Start(zktest.WithTick(100 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close() //nolint:errcheck // the test is over
	within, request := tracers.Tracer("test").Start(ctx, "request")
	facts, err := scenes.Play(within, srv, func() client.Observer {
		return observe.Join(oteldocent.Spans(tracers), measures.Observer())
	})
	if err != nil {
		t.Fatal(err)
	}
	request.End()
	if err := tracers.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if err := meterProvider.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checkSpans(t)
	r.checkMetrics(t, facts)
}

func (r *receiver) checkSpans(t *testing.T) {
	t.Helper()
	byID := map[string]*tracepb.Span{}
	for _, s := range r.spans {
		byID[string(s.GetSpanId())] = s
	}
	ends, linked, below := map[string]int{}, 0, map[string]int{}
	for _, s := range r.spans {
		below[byID[string(s.GetParentSpanId())].GetName()+" > "+s.GetName()]++
		if s.GetName() != "lock hold" {
			continue
		}
		for _, a := range s.GetAttributes() {
			if a.GetKey() == "docent.lock.end" {
				ends[a.GetValue().GetStringValue()]++
			}
		}
		if len(s.GetLinks()) == 1 && byID[string(s.GetLinks()[0].GetSpanId())].GetName() == "lock acquire" {
			linked++
		}
	}
	if linked != 11 || ends["released"] != 7 || ends["deleted"] != 1 || ends["session"] != 1 || ends["lease"] != 1 || ends["closed"] != 1 {
		t.Errorf("holds by their end: %v, %d of them linked", ends, linked)
	}
	for what, least := range map[string]int{
		"request > lock acquire": 14, "request > lock hold": 11, "lock acquire > create": 11,
		"request > atomic add": 2, " > session suspended": 1, " > dial": 3,
	} {
		if below[what] < least {
			t.Errorf("%d spans %q, want %d; there are %v", below[what], what, least, below)
		}
	}
}

// dataPoint is what the points of all kinds of metrics have.
type dataPoint interface {
	GetAttributes() []*common.KeyValue
	GetExemplars() []*metricpb.Exemplar
}

func (r *receiver) checkMetrics(t *testing.T, facts []scenes.Fact) {
	t.Helper()
	total := func(f scenes.Fact) (n int64) {
		m := r.metrics[f.Metric]
		for _, p := range m.GetHistogram().GetDataPoints() {
			if has(p, f.Labels) {
				n += int64(p.GetCount())
			}
		}
		for _, p := range m.GetSum().GetDataPoints() {
			if has(p, f.Labels) {
				n += p.GetAsInt()
			}
		}
		return n
	}
	for _, f := range facts {
		if got := total(f); got != f.Count {
			t.Errorf("%s %v is %d, want %d", f.Metric, f.Labels, got, f.Count)
		}
	}
	acquires := map[string]bool{}
	for _, s := range r.spans {
		if strings.HasPrefix(s.GetName(), "lock ") {
			acquires[string(s.GetSpanId())] = true
		}
	}
	pointed := 0
	for _, p := range r.metrics[observe.HoldDuration].GetHistogram().GetDataPoints() {
		for _, e := range p.GetExemplars() {
			if acquires[string(e.GetSpanId())] {
				pointed++
			}
		}
	}
	if pointed == 0 {
		t.Error("no exemplar of a hold points at a span of a lock")
	}
}

func has(p dataPoint, labels map[string]string) bool {
	found := 0
	for _, a := range p.GetAttributes() {
		if want, ok := labels[a.GetKey()]; ok && a.GetValue().GetStringValue() == want {
			found++
		}
	}
	return found == len(labels)
}
