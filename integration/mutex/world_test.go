package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/integration/sessions"
	"github.com/docent-go/docent/recipes"
)

// sessionTimeout is what clients of these tests ask for: eight ticks of the
// servers.
const sessionTimeout = 4 * time.Second

// grace is what a loaded machine may add to a bound.
const grace = 100 * time.Millisecond

// world is one real server, a proxy in front of it, and a raw client beside
// it that sees what is really there.
type world struct {
	node *harness.Node
	px   *proxy.Proxy
	raw  *zk.Conn
	dir  string // of the lock; a new one for each world
}

var worlds atomic.Int64

// newWorld makes a new proxy and a new lock directory on node.
func newWorld(ctx context.Context, t *testing.T, node *harness.Node) *world {
	t.Helper()
	raw, _ := harness.Dial(ctx, t, 20*time.Second, node.Addr())
	return &world{
		node: node,
		px:   proxy.Start(t, node.Addr()),
		raw:  raw,
		dir:  fmt.Sprintf("/test/%d/lock", worlds.Add(1)),
	}
}

// connect returns a client through the proxy, or straight to the server, that
// is closed when the test ends.
func connect(ctx context.Context, t *testing.T, addr string, opts ...client.Option) *client.Client {
	t.Helper()
	opts = append([]client.Option{
		client.WithSessionTimeout(sessionTimeout),
		client.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)
	c, err := client.Connect(ctx, addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = c.CloseContext(ctx) // the test looks at what matters to it
	})
	return c
}

func (w *world) mutex(t *testing.T, c *client.Client) *recipes.InterProcessMutex {
	t.Helper()
	m, err := recipes.NewInterProcessMutex(c, w.dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// children lists the lock's directory by the raw client.
func (w *world) children(t *testing.T) []string {
	t.Helper()
	names, _, err := w.raw.Children(w.dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
	return names
}

var contender = regexp.MustCompile(`^_c_[0-9a-f-]{36}-lock-\d{10}$`)

// contenders are the children that stand in line.
func (w *world) contenders(t *testing.T) []string {
	t.Helper()
	var in []string
	for _, name := range w.children(t) {
		if contender.MatchString(name) {
			in = append(in, name)
		}
	}
	return in
}

// empty waits until no contender stands in line any more. What is removed in the
// background has five seconds from when a server is reachable.
func (w *world) empty(t *testing.T) {
	t.Helper()
	eventually(t, 5*time.Second, func() error {
		if left := w.contenders(t); len(left) > 0 {
			return fmt.Errorf("left behind: %v", left)
		}
		return nil
	})
}

// eventually polls what no event tells, until it holds.
func eventually(t *testing.T, limit time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %v", limit, err)
		}
		<-tick.C
	}
}

// waiting waits until n contenders stand in line.
func (w *world) waiting(t *testing.T, n int) {
	t.Helper()
	eventually(t, 10*time.Second, func() error {
		if got := len(w.contenders(t)); got != n {
			return fmt.Errorf("%d contenders, want %d", got, n)
		}
		return nil
	})
}

// result of an acquire that runs by itself.
type result struct {
	hold *recipes.Hold
	err  error
	took time.Duration
}

func acquire(ctx context.Context, m *recipes.InterProcessMutex) <-chan result {
	done := make(chan result, 1)
	go func() {
		began := time.Now()
		h, err := m.Acquire(ctx)
		done <- result{h, err, time.Since(began)}
	}()
	return done
}

func await(ctx context.Context, t *testing.T, done <-chan result) result {
	t.Helper()
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
		t.Fatal("an acquire never came back")
		return result{}
	}
}

func held(ctx context.Context, t *testing.T, m *recipes.InterProcessMutex) *recipes.Hold {
	t.Helper()
	h, err := m.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// free takes and releases the lock through a client of its own: no contender is
// in the way.
func (w *world) free(ctx context.Context, t *testing.T) {
	t.Helper()
	c := connect(ctx, t, w.node.Addr())
	h := held(ctx, t, w.mutex(t, c))
	check(t, h.Release(ctx))
}

// killSession ends a session from outside, as an operator or a thief would.
func (w *world) killSession(ctx context.Context, t *testing.T, id int64) {
	t.Helper()
	check(t, sessions.KillSession(ctx, w.node.Addr(), id))
}

func session(ctx context.Context, t *testing.T, c *client.Client) int64 {
	t.Helper()
	s, err := c.Session(ctx)
	check(t, err)
	return s.ID()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Fatalf("error %v does not match %v", err, target)
		}
	}
}

// limited bounds a test; nothing in it may wait for ever.
func limited(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
