package oteldocent_test

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/oteldocent"
	"github.com/docent-go/docent/zktest"
)

// A program passes its providers, and joins the spans and the metrics.
func ExampleSpans() {
	spans := tracetest.NewSpanRecorder()
	tracers := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	metrics, err := oteldocent.NewMetrics(metric.NewMeterProvider(), observe.FirstElement)
	if err != nil {
		fmt.Println(err)
		return
	}
	srv, err := zktest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	c, err := client.Connect(context.Background(), srv.Addr(), client.WithLogger(slog.New(slog.DiscardHandler)),
		client.WithObserver(observe.Join(oteldocent.Spans(tracers), metrics.Observer())))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, request := tracers.Tracer("shop").Start(context.Background(), "request")
	if _, err := c.Create(ctx, "/order", nil); err != nil {
		fmt.Println(err)
	}
	request.End()
	if err := c.Close(); err != nil {
		fmt.Println(err)
	}
	for _, s := range spans.Ended() {
		if s.Parent().SpanID() == request.SpanContext().SpanID() {
			fmt.Println("request >", s.Name())
		}
	}
	// Output: request > create
}
