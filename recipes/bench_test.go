package recipes_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// BenchmarkHold is a hold taken and released: once with the server, in this process,
// and once more by re-entry, which sends nothing.
func BenchmarkHold(b *testing.B) {
	srv := zktest.NewServer(b, zktest.WithLogSize(0))
	c, err := client.Connect(b.Context(), "zk", client.WithDialer(srv.Client("docent").DialContext),
		client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.CloseContext(context.WithoutCancel(b.Context())) }) // the benchmark is over
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
