package zkcontainer_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// image is the one that the tests use: the environment's ZOOKEEPER_IMAGE, else the official one.
func image() string {
	if img := os.Getenv("ZOOKEEPER_IMAGE"); img != "" {
		return img
	}
	return "zookeeper:3.9"
}

// limited is the test's context with a limit, so that a server that does not come back
// fails the test with a reason.
func limited(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must ends the test on an error: must(f())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		check(t, err)
		return v
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// dial connects go-zookeeper and waits for a session.
func dial(ctx context.Context, t *testing.T, timeout time.Duration, addrs ...string) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	conn, events, err := zk.Connect(addrs, timeout, zk.WithLogger(quiet{}))
	check(t, err)
	t.Cleanup(conn.Close)
	all := make(chan zk.Event, 10000) // the client drops events that do not fit into its own
	go func() {
		for e := range events {
			all <- e
		}
	}()
	await(ctx, t, all, zk.StateHasSession)
	return conn, all
}

// await reads events until the session is in this state.
func await(ctx context.Context, t *testing.T, events <-chan zk.Event, want zk.State) {
	t.Helper()
	last := zk.StateUnknown
	for {
		select {
		case e := <-events:
			if e.Type == zk.EventSession {
				if last = e.State; last == want {
					return
				}
			}
		case <-ctx.Done():
			t.Fatalf("the client is in state %v, not %v", last, want)
		}
	}
}
