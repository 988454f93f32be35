package tls_test

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

func mutex(t *testing.T, c *client.Client, dir string) *recipes.InterProcessMutex {
	t.Helper()
	m, err := recipes.NewInterProcessMutex(c, dir)
	check(t, err)
	return m
}

func held(ctx context.Context, t *testing.T, c *client.Client, dir string) *recipes.Hold {
	t.Helper()
	h, err := mutex(t, c, dir).Acquire(ctx)
	check(t, err)
	return h
}

// holder is a service that holds a lock, and a node that it may read only after
// its certificate has changed. A server shows in no other way which certificate it
// has seen than by what it allows.
type holder struct {
	c       *client.Client
	line    *line
	session int64
	hold    *recipes.Hold
	secret  string
}

func (s *shop) holder(ctx context.Context, t *testing.T, at, secretOf string) *holder {
	t.Helper()
	h := &holder{line: &line{names: s.names}, secret: at + "-secret"}
	h.c = s.connect(ctx, t, "orders", client.WithDialer(h.line.dial))
	in, err := h.c.Session(ctx)
	check(t, err)
	h.session = in.ID()
	_, err = s.plain(ctx, t).Create(ctx, h.secret, nil, client.ACL(x509ACL(secretOf)))
	check(t, err)
	h.hold = held(ctx, t, h.c, at+"-lock")
	return h
}

// holds wants the session and the lock to live on.
func (h *holder) holds(ctx context.Context, t *testing.T, s *shop) {
	t.Helper()
	check(t, h.hold.Confirm(ctx))
	in, err := h.c.Session(ctx)
	check(t, err)
	if in.ID() != h.session {
		t.Errorf("session 0x%x, want 0x%x of before", in.ID(), h.session)
	}
	if rival, err := mutex(t, s.plain(ctx, t), path.Dir(h.hold.Path())).TryAcquire(ctx); !errors.Is(err, recipes.ErrBusy) {
		t.Errorf("another client: %v, %v; want recipes.ErrBusy", rival, err)
	}
}

// reads wants what the server allows on the connection that there is.
func (h *holder) reads(ctx context.Context, t *testing.T, want error) {
	t.Helper()
	check(t, h.c.Sync(ctx, h.secret))
	if _, _, err := h.c.Get(ctx, h.secret); !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", h.secret, err, want)
	}
}

// renewed replaces the certificate by one of another subject, so that the server
// shows which one it has. Only the next connection uses it.
func (s *shop) renewed(ctx context.Context, t *testing.T) {
	h := s.holder(ctx, t, "/renewed", "CN=orders-2,O=Shop")
	h.reads(ctx, t, zk.ErrNoAuth)
	shell(ctx, t, s.dir, renewOrders, "CN=orders", "CN=orders-2")
	h.reads(ctx, t, zk.ErrNoAuth)

	old, _ := h.line.now()
	check(t, old.Close())
	h.reads(ctx, t, nil)
	h.holds(ctx, t, s)
	check(t, h.hold.Err())

	shell(ctx, t, s.dir, renewOrders) // as it was
	old, _ = h.line.now()
	check(t, old.Close())
	h.reads(ctx, t, zk.ErrNoAuth)
	h.holds(ctx, t, s)
	check(t, h.hold.Release(ctx))
}

// serverKilled makes the client go to another server.
func (s *shop) serverKilled(ctx context.Context, t *testing.T) {
	h := s.holder(ctx, t, "/killed", "CN=orders-3,O=Shop")
	h.reads(ctx, t, zk.ErrNoAuth)
	shell(ctx, t, s.dir, renewOrders, "CN=orders", "CN=orders-3")
	node := s.server(t, h.line)
	check(t, node.Kill(ctx))
	h.reads(ctx, t, nil)
	h.holds(ctx, t, s)
	check(t, h.hold.Release(ctx))
	check(t, node.Start(ctx))
	_, err := s.e.AwaitServing(ctx)
	check(t, err)
}

// halfRenewed lets the client connect when one of two files has been replaced: it
// cannot, until the other has been as well.
func (s *shop) halfRenewed(ctx context.Context, t *testing.T) {
	h := s.holder(ctx, t, "/half", ordersID)
	h.reads(ctx, t, nil)
	key := filepath.Join(s.dir, "orders.key")
	right, err := os.ReadFile(key)
	check(t, err)
	wrong, err := os.ReadFile(filepath.Join(s.dir, "billing.key"))
	check(t, err)

	check(t, os.WriteFile(key, wrong, 0o600))
	old, _ := h.line.now()
	check(t, old.Close())
	short, cancel := context.WithTimeout(ctx, time.Second)
	_, _, err = h.c.Get(short, h.secret)
	cancel()
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read with a key that does not fit: %v", err)
	}
	check(t, os.WriteFile(key, right, 0o600))
	h.reads(ctx, t, nil)
	h.holds(ctx, t, s)
	check(t, h.hold.Release(ctx))
}
