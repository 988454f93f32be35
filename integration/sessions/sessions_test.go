package sessions_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/sessions"
)

// TestSessionsKill kills a session at another server than its owner's.
func TestSessionsKill(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e := harness.StartEnsemble(ctx, t, 3)
	for round := range 5 {
		owner, events := harness.Dial(ctx, t, 10*time.Second, e.Node(1).Addr())
		other, _ := harness.Dial(ctx, t, 10*time.Second, e.Node(2).Addr())
		path, err := owner.Create("/owned", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		if err != nil {
			t.Fatal(err)
		}
		id := owner.SessionID()
		at := e.Node(1 + round%3)
		if err := sessions.KillSession(ctx, at.Addr(), id); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Sync(path); err != nil {
			t.Fatal(err)
		}
		if found, _, err := other.Exists(path); err != nil || found {
			t.Fatalf("the node of the killed session is there: %t, %v", found, err)
		}
		if err := harness.AwaitState(ctx, events, zk.StateExpired); err != nil {
			t.Fatal(err)
		}
		if err := sessions.KillSession(ctx, at.Addr(), id); !errors.Is(err, sessions.ErrUnknown) {
			t.Fatalf("second kill: %v", err)
		}
	}
}

func TestSessionsKillWithoutServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t)
	if err := node.Pause(ctx); err != nil {
		t.Fatal(err)
	}
	short, stop := context.WithTimeout(ctx, 200*time.Millisecond)
	defer stop()
	if err := sessions.KillSession(short, node.Addr(), 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("silent server: %v", err)
	}
	if err := node.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if err := sessions.KillSession(ctx, node.Addr(), 1); err == nil || errors.Is(err, sessions.ErrUnknown) {
		t.Fatalf("no server: %v", err)
	}
}
