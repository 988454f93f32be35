package harness

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Dial connects a raw go-zookeeper client, with nothing of Docent between, and
// returns it with a session. It ends the test when there is none before ctx ends.
// Every later event of the session comes through the channel, which must be drained
// if more than a few are expected. The client is closed when the test ends.
func Dial(ctx context.Context, t testing.TB, timeout time.Duration, addrs ...string) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	conn, events, err := zk.Connect(addrs, timeout, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatalf("dial %v: %v", addrs, err)
	}
	t.Cleanup(conn.Close)
	if err := AwaitState(ctx, events, zk.StateHasSession); err != nil {
		t.Fatalf("dial %v: %v", addrs, err)
	}
	return conn, events
}

// AwaitState reads a raw client's events until it comes to this state.
func AwaitState(ctx context.Context, events <-chan zk.Event, want zk.State) error {
	last := zk.StateUnknown
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return fmt.Errorf("client was closed in state %v before %v", last, want)
			}
			if e.Type == zk.EventSession {
				last = e.State
				if last == want {
					return nil
				}
			}
		case <-ctx.Done():
			return fmt.Errorf("client is in state %v, not %v: %w", last, want, context.Cause(ctx))
		}
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
