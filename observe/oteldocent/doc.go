// Package oteldocent makes spans and metrics for OpenTelemetry of what Docent's clients
// and recipes do.
//
//	metrics, err := oteldocent.NewMetrics(otel.GetMeterProvider(), nil)
//	...
//	c, err := client.Connect(ctx, servers, client.WithObserver(observe.Join(
//		oteldocent.Spans(otel.GetTracerProvider()), metrics.Observer())))
//
// If the spans come first in observe.Join, an SDK can give the metrics exemplars that
// point at the spans. docs/hooks.md lists the spans, docs/observability.md the metrics.
package oteldocent
