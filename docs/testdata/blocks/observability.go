package page

import "go.opentelemetry.io/otel/trace"

var (
	servers string
	tracer  trace.Tracer
)
