package path_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/bench/internal/servers"
	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

const sessionTimeout = 10 * time.Second

var directories atomic.Int64

// server starts a ZooKeeper server without fsync and returns its address.
func server(ctx context.Context, b *testing.B) string {
	b.Helper()
	e, err := servers.Start(ctx, servers.ZooKeeper, 1, false, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Stop)
	return e.Addrs[0]
}

// silent is a logger for go-zookeeper.
type silent struct{}

func (silent) Printf(string, ...any) {}

// dial connects go-zookeeper's own client.
func dial(b *testing.B, addr string) *zk.Conn {
	b.Helper()
	c, events, err := zk.Connect([]string{addr}, sessionTimeout, zk.WithLogger(silent{}))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return c
}

// directory makes a new directory for a lock.
func directory(b *testing.B, c *zk.Conn) string {
	b.Helper()
	dir := fmt.Sprintf("/path%d", directories.Add(1))
	if _, err := c.Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		b.Fatal(err)
	}
	return dir
}

// connect connects a client of Docent's.
func connect(ctx context.Context, b *testing.B, addr string) *client.Client {
	b.Helper()
	c, err := client.Connect(ctx, addr, client.WithSessionTimeout(sessionTimeout),
		client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionTimeout)
		defer cancel()
		_ = c.CloseContext(ctx) // nothing depends on it any more
	})
	return c
}

// docentCycle is one acquire and one release of a free mutex.
func docentCycle(m *recipes.InterProcessMutex) func(context.Context) error {
	return func(ctx context.Context) error {
		hold, err := m.Acquire(ctx)
		if err != nil {
			return err
		}
		return hold.Release(ctx)
	}
}

// rawCycle is the two round trips that ZooKeeper cannot spare: create and delete.
func rawCycle(c *zk.Conn, dir string) func(context.Context) error {
	return func(context.Context) error {
		node, err := c.Create(dir+"/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		if err != nil {
			return err
		}
		return c.Delete(node, -1)
	}
}
