package recipes_test

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// An ensemble is restored from a backup: tokens go back. The process leads again, and
// Leading says so.
func TestLeadingAfterRestore(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		restored := zktest.NewServer(r.T, zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		var on atomic.Pointer[zktest.Server]
		on.Store(r.srv)
		for range 100 {
			r.check(r.srv.Create("/x", nil))
			r.check(r.srv.Delete("/x"))
		}
		c, err := client.Connect(r.ctx, "zk", client.WithSessionTimeout(sessionTimeout), client.WithLogger(slog.New(slog.DiscardHandler)),
			client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				return on.Load().Client("a").DialContext(ctx, network, address)
			}))
		r.check(err)
		defer func() { _ = c.Close() }()
		e, err := recipes.NewLeaderLatch(c, "/e")
		r.check(err)
		one, err := e.Campaign(r.ctx)
		r.check(err)
		if !e.Leading() {
			r.Error("it does not lead at first")
		}
		on.Store(restored)
		r.srv.Stop()
		<-one.Context().Done()
		_ = one.Close()
		two, err := e.Campaign(r.ctx)
		r.check(err)
		r.Logf("tokens %d, %d; Err %v", one.FencingToken(), two.FencingToken(), two.Err())
		if !e.Leading() {
			r.Error("it leads, and Leading says that it does not")
		}
		r.check(two.Close())
	})
}
