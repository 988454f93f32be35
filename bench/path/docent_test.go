package path_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/docent-go/docent/recipes"
)

// BenchmarkDocent is Docent's mutex alone in this process, one iteration a cycle, for the
// profiler. How it fares beside others is said by the command in the directory above.
//
//	go test -run '^$' -bench Docent/free -benchmem -benchtime 10000x -cpuprofile cpu.out -memprofile mem.out -memprofilerate 1 ./path
func BenchmarkDocent(b *testing.B) {
	ctx := b.Context()
	addr := server(ctx, b)
	conn := dial(b, addr)
	for _, w := range []struct {
		name               string
		callers, perClient int
	}{
		{"free", 1, 1},
		{"8 with a session each", 8, 1},
		{"64 with a session each", 64, 1},
		{"8 on one session", 8, 8},
		{"64 on one session", 64, 64},
	} {
		b.Run(w.name, func(b *testing.B) {
			dir := directory(b, conn)
			var cycles []func(context.Context) error
			for len(cycles) < w.callers {
				c := connect(ctx, b, addr)
				for range w.perClient {
					m, err := recipes.NewInterProcessMutex(c, dir)
					if err != nil {
						b.Fatal(err)
					}
					cycles = append(cycles, docentCycle(m))
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			contend(ctx, b, cycles)
		})
	}
}

// contend makes b.N cycles, shared by a goroutine for each caller.
func contend(ctx context.Context, b *testing.B, cycles []func(context.Context) error) {
	b.Helper()
	var (
		begun atomic.Int64
		wg    sync.WaitGroup
	)
	for _, cycle := range cycles {
		wg.Go(func() {
			for begun.Add(1) <= int64(b.N) {
				if err := cycle(ctx); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
