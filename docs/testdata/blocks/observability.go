package page

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/docent-go/docent/recipes/cache"
)

var (
	servers string
	tracer  trace.Tracer
	tree    *cache.Tree[string]
)
