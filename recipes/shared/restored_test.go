package shared_test

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/zktest"
)

// An ensemble is restored from a backup, or comes back without its data. A follower of a count
// hears of what is set there, although the servers' zxids have gone back.
func TestChangesAfterRestore(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for range 100 {
			r.check(r.srv.Create("/x", nil))
			r.check(r.srv.Delete("/x"))
		}
		var on atomic.Pointer[zktest.Server]
		on.Store(r.srv)
		c := r.connect("a", client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			return on.Load().Client("a").DialContext(ctx, network, address)
		}))
		count, err := shared.NewSharedCount(c, "/count", 7)
		r.check(err)
		ctx, cancel := context.WithTimeout(r.ctx, 3*time.Minute)
		defer cancel()
		go func() {
			time.Sleep(time.Second)
			on.Store(zktest.NewServer(r.T, zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, time.Millisecond)))
			r.srv.Stop()
			other, err := client.Connect(ctx, "zk", client.WithLogger(slog.New(slog.DiscardHandler)), client.WithDialer(on.Load().Client("b").DialContext))
			r.check(err)
			defer func() { _ = other.Close() }()
			there, err := shared.NewSharedCount(other, "/count", 1)
			r.check(err)
			// Writes go on while the follower waits.
			for n := range int32(8) {
				r.check(there.Set(ctx, 70+n))
				time.Sleep(10 * time.Second)
			}
		}()
		var seen []int32
		for v, err := range count.Changes(ctx) {
			if err == nil {
				seen = append(seen, v.Value)
			}
		}
		if seen[0] != 7 || seen[len(seen)-1] != 77 {
			r.Errorf("yielded %v; want 7 at first and 77 at last", seen)
		}
	})
}
