package client_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
)

// closeBlocks is a connection whose Close waits.
type closeBlocks struct {
	net.Conn

	until <-chan struct{}
}

func (c closeBlocks) Close() error {
	<-c.until
	return c.Conn.Close()
}

// A connection whose Close waits is left behind: the client dials again at once, and the
// session and its holds live on.
func TestBlockedCloseCostsNoSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var dials atomic.Int32
		release := make(chan struct{})
		link := r.Srv.Client("a")
		c := r.Connect("a", client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := link.DialContext(ctx, network, address)
			if dials.Add(1) > 1 || err != nil {
				return nc, err
			}
			return closeBlocks{nc, release}, nil
		}))
		h := r.hold(c, "/e")
		id := r.Session(c).ID()
		link.Cut()
		time.Sleep(2 * time.Second)
		if dials.Load() < 2 || c.State() != client.Connected {
			t.Errorf("two seconds after the cut there were %d dials, and the client is %v", dials.Load(), c.State())
		}
		time.Sleep(time.Minute)
		if s := r.Session(c); s.ID() != id || h.Err() != nil {
			t.Errorf("session %#x, before %#x, the hold ended with %v", s.ID(), id, h.Err())
		}
		close(release)
	})
}
