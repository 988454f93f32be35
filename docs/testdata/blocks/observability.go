package page

import "go.opentelemetry.io/otel/trace"

var servers string

var tracer trace.Tracer

var servers string
