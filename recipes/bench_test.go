package recipes_test

import (
	"context"
	"testing"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// BenchmarkHold is a hold taken and released: once with the server, in this process,
// and once more by re-entry, which sends nothing.
func BenchmarkHold(b *testing.B) {
	srv := zktest.NewServer(b, zktest.WithLogSize(0))
	c := testrig.Connect(b.Context(), b, "zk", srv.Client("docent").DialContext)
	m, err := recipes.NewInterProcessMutex(c, dir)
	if err != nil {
		b.Fatal(err)
	}
	cycle := func(ctx context.Context, b *testing.B) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			h, err := m.Acquire(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if err := h.Release(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("free", func(b *testing.B) { cycle(b.Context(), b) })
	outer, err := m.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer outer.Close() //nolint:errcheck // the benchmark is over
	b.Run("again", func(b *testing.B) { cycle(outer.Context(), b) })
}
