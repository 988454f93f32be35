package client_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
)

// slowHandler keeps its first record until it is let go, and collects the rest.
type slowHandler struct {
	slog.Handler
	letGo chan struct{}

	mu      *sync.Mutex
	lines   *int
	dropped *int64
}

func (h slowHandler) Handle(_ context.Context, rec slog.Record) error {
	<-h.letGo
	h.mu.Lock()
	defer h.mu.Unlock()
	*h.lines++
	rec.Attrs(func(a slog.Attr) bool {
		if a.Key == "dropped" {
			*h.dropped = a.Value.Int64()
		}
		return true
	})
	return nil
}

func (h slowHandler) Enabled(context.Context, slog.Level) bool { return true }

// Behind a log handler that blocks only so many lines wait; how many more there
// were is said.
func TestLogBehindABlockedHandler(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := slowHandler{slog.DiscardHandler, make(chan struct{}), new(sync.Mutex), new(int), new(int64)}
		c := r.Connect("a", client.WithLogger(slog.New(h)), client.WithAuth("digest", "user:secret"))
		const blips = 700
		for range blips {
			r.Srv.CutAll()
			_, _, err := c.Exists(r.Ctx, "/")
			r.Check(err)
		}
		close(h.letGo)
		time.Sleep(time.Second)
		synctest.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		if *h.lines > 1100 || *h.dropped < 2*blips-1100 {
			t.Errorf("%d lines were kept, and %d dropped, of more than %d", *h.lines, *h.dropped, 2*blips)
		}
	})
}
