package client_test

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// A server that has lost its data, and counts on from where it was, ends the session of a client that
// comes back at once. One that counts from zero refuses the client until its session is over.
func TestServerThatLostItsData(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]int64{"counts on": 1, "counts from zero": 0} {
		synctest.Test(t, func(t *testing.T) {
			var now atomic.Pointer[zktest.Server]
			now.Store(zktest.NewServer(t))
			c, err := client.Connect(t.Context(), "zk:2181", client.WithSessionTimeout(10*time.Second), client.WithLogger(slog.New(slog.DiscardHandler)),
				client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
					return now.Load().DialContext(ctx, network, address)
				}))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			old := now.Load()
			_, first, err := c.CreateStat(t.Context(), "/a", nil)
			if err != nil {
				t.Fatal(err)
			}
			now.Store(zktest.NewServer(t, zktest.WithZxid(more*old.Zxid())))
			begun := time.Now()
			_ = old.Close()
			_, second, err := c.CreateStat(t.Context(), "/a", nil)
			for client.UnknownOutcome(err) {
				_, second, err = c.CreateStat(t.Context(), "/a", nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			if took, grows := time.Since(begun), second.Czxid > first.Czxid; (more == 1) != (took < 3*time.Second && grows) {
				t.Errorf("%s: %#x, then %#x after %v", name, first.Czxid, second.Czxid, took)
			}
		})
	}
}
