package sasl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/recipes"
)

const sessionTimeout = 10 * time.Second

var paths atomic.Int64

func path() string { return fmt.Sprintf("/sasl-%d", paths.Add(1)) }

// connect connects by the name localhost, which is in the servers' principal.
func connect(ctx context.Context, addr string, opts ...client.Option) (*client.Client, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	opts = append([]client.Option{client.WithSessionTimeout(sessionTimeout), client.WithLogger(slog.New(slog.DiscardHandler))}, opts...)
	return client.Connect(ctx, "localhost:"+port, opts...)
}

func connected(ctx context.Context, t *testing.T, addr string, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := connect(ctx, addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// holdsOverCuts holds a mutex in one session while its connection is cut five times, and checks
// whom its nodes belong to.
func holdsOverCuts(ctx context.Context, t *testing.T, node *harness.Node, m client.SASL, id string) {
	t.Helper()
	link := proxy.Start(t, node.Addr())
	c := connected(ctx, t, link.Addr(), client.WithSASL(m))
	before, err := c.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := recipes.NewInterProcessMutex(c, path())
	if err != nil {
		t.Fatal(err)
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	acl, _, err := c.GetACL(ctx, hold.Path())
	if want := []zk.ACL{{Perms: zk.PermAll, Scheme: "sasl", ID: id}}; err != nil || !slices.Equal(acl, want) {
		t.Errorf("ACL %v, %v; want %v", acl, err, want)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	changes := make(chan client.StateChange, 64)
	go func() {
		defer close(changes)
		for change := range c.States(watching) {
			changes <- change
		}
	}()
	for i := range 5 {
		link.CutAll()
		await(ctx, t, changes, client.Suspended)
		await(ctx, t, changes, client.Connected)
		if _, _, err := c.Get(ctx, hold.Path()); err != nil { // only this id may
			t.Fatalf("cut %d: %v", i+1, err)
		}
		if hold.Err() != nil {
			t.Fatalf("cut %d: the hold: %v", i+1, hold.Err())
		}
	}
	after, err := c.Session(ctx)
	if err != nil || after.ID() != before.ID() {
		t.Errorf("another session: %v", err)
	}
	if err := hold.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func await(ctx context.Context, t *testing.T, changes <-chan client.StateChange, want client.State) {
	t.Helper()
	for {
		select {
		case change := <-changes:
			if change.State == client.Lost {
				t.Fatalf("the session is lost: %v", change.Err)
			}
			if change.State == want {
				return
			}
		case <-ctx.Done():
			t.Fatalf("never %v", want)
		}
	}
}

// refusedWithout checks that a server that requires a login refuses a client without one, and
// says why.
func refusedWithout(ctx context.Context, t *testing.T, node *harness.Node) {
	t.Helper()
	c := connected(ctx, t, node.Addr())
	if _, err := c.Create(ctx, path(), nil); !errors.Is(err, client.Code(-124)) || !strings.Contains(err.Error(), "client.WithSASL") {
		t.Errorf("without a login: %v", err)
	}
}
