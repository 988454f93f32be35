package page

import "go.opentelemetry.io/otel/trace"

var tracer trace.Tracer
