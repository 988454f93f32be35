package harness_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/harness"
)

func TestHarnessFaults(t *testing.T) {
	ctx := limited(t, 3*time.Minute)
	e := harness.StartEnsemble(ctx, t, 3, harness.WithTickTime(200*time.Millisecond), harness.WithSyncLimit(5))

	t.Run("kill and start leader", func(t *testing.T) {
		leader := must(e.Leader(ctx))(t)
		conn, _ := harness.Dial(ctx, t, 4*time.Second, leader.Addr())
		if _, err := conn.Create("/kept", []byte("x"), zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		check(t, leader.Kill(ctx))
		if role, err := leader.Role(ctx); err == nil {
			t.Fatalf("a killed node answered: %s", role)
		}
		rest := without(e, leader)
		next := must(e.AwaitServing(ctx, rest...))(t)
		if next == leader {
			t.Fatal("the killed node leads")
		}
		check(t, leader.Start(ctx))
		must(e.AwaitServing(ctx))(t)
		again, _ := harness.Dial(ctx, t, 4*time.Second, leader.Addr())
		if data, _, err := again.Get("/kept"); err != nil || string(data) != "x" {
			t.Fatalf("node %d lost its data over the kill: %q, %v", leader.ID(), data, err)
		}
	})

	t.Run("pause", func(t *testing.T) {
		node := e.Followers(ctx)[0]
		check(t, node.Pause(ctx))
		started := time.Now()
		if role, err := node.Role(limited(t, time.Second)); err == nil {
			t.Fatalf("a paused node answered: %s", role)
		} else if took := time.Since(started); took < 900*time.Millisecond {
			t.Fatalf("a paused node was not silent: %v after %v", err, took)
		}
		check(t, node.Unpause(ctx))
		check(t, node.Unpause(ctx))
		must(e.AwaitServing(ctx))(t)
	})

	t.Run("partition", func(t *testing.T) {
		node := e.Followers(ctx)[0]
		rest := without(e, node)
		check(t, node.Partition(ctx))
		must(node.AwaitRole(ctx, harness.NotServing))(t)
		leader := must(e.AwaitServing(ctx, rest...))(t)

		// The cut holds over a kill and from the first packet of the next life.
		check(t, node.Kill(ctx))
		check(t, node.Start(ctx))
		check(t, rest[0].Restart(ctx))
		must(e.AwaitServing(ctx, rest...))(t)
		if role := must(node.Role(ctx))(t); role != harness.NotServing {
			t.Fatalf("node %d is %s though it is cut off (leader was %d)", node.ID(), role, leader.ID())
		}

		check(t, rest[0].Heal(ctx)) // it is not cut off
		check(t, node.Heal(ctx))
		must(e.AwaitServing(ctx))(t)
	})

	t.Run("leader cut off", func(t *testing.T) {
		deposed := must(e.Leader(ctx))(t)
		check(t, deposed.Partition(ctx))
		must(e.AwaitServing(ctx, without(e, deposed)...))(t)
		check(t, e.Heal(ctx))
		must(e.AwaitServing(ctx))(t)
	})

	t.Run("cut clients", func(t *testing.T) {
		node := e.Followers(ctx)[0]
		conn, events := harness.Dial(ctx, t, 2*time.Second, node.Addr())
		id := conn.SessionID()
		check(t, node.CutClients(ctx))
		check(t, harness.AwaitState(ctx, events, zk.StateDisconnected))
		if role := must(node.Role(ctx))(t); role != harness.Follower {
			t.Fatalf("node %d is %s, but only its clients are cut off", node.ID(), role)
		}
		check(t, node.Restart(ctx))
		if _, err := node.FourLetter(ctx, "ruok"); err != nil {
			t.Fatalf("from inside: %v", err)
		}
		check(t, node.RestoreClients(ctx))
		check(t, harness.AwaitState(ctx, events, zk.StateHasSession))
		t.Logf("session %#x before, %#x after", id, conn.SessionID())
	})

	t.Run("cut clients one way", func(t *testing.T) {
		node := e.Followers(ctx)[0]
		for path, tt := range map[string]struct {
			cut     func(context.Context) error
			arrives bool
		}{
			"/from": {node.CutFromClients, false},
			"/to":   {node.CutToClients, true},
		} {
			leader := must(e.Leader(ctx))(t)
			looker, _ := harness.Dial(ctx, t, 10*time.Second, leader.Addr())
			conn, events := harness.Dial(ctx, t, 2*time.Second, node.Addr())
			check(t, tt.cut(ctx))
			go func() { _, _ = conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)) }() // until it is closed
			check(t, harness.AwaitState(ctx, events, zk.StateDisconnected))
			_, err := looker.Sync(path)
			check(t, err)
			there, _, err := looker.Exists(path)
			check(t, err)
			if there != tt.arrives {
				t.Errorf("%s: a request arrives: %v, want %v", path, there, tt.arrives)
			}
			check(t, node.RestoreClients(ctx))
		}
	})

	t.Run("heal all", func(t *testing.T) {
		check(t, e.Node(1).Pause(ctx))
		check(t, e.Node(2).Partition(ctx))
		check(t, e.Node(3).CutClients(ctx))
		check(t, e.Heal(ctx))
		must(e.AwaitServing(ctx))(t)
	})
}

func TestHarnessWatches(t *testing.T) {
	ctx := limited(t, time.Minute)
	node := harness.StartServer(ctx, t)
	if role := must(node.Role(ctx))(t); role != harness.Standalone {
		t.Fatalf("role is %s", role)
	}
	conn, _ := harness.Dial(ctx, t, 10*time.Second, node.Addr())
	if got := must(node.Watches(ctx))(t); got != (harness.WatchCount{}) {
		t.Fatalf("watches before: %+v", got)
	}
	if _, _, _, err := conn.ExistsW("/a"); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := conn.ChildrenW("/"); err != nil {
		t.Fatal(err)
	}
	if got, want := must(node.Watches(ctx))(t), (harness.WatchCount{Connections: 1, Paths: 1, Total: 1}); got.Total < want.Total || got.Connections != 1 {
		t.Fatalf("watches: %+v", got)
	}
	byPath := must(node.WatchesByPath(ctx))(t)
	if got := byPath["/a"]; len(got) != 1 || got[0] != conn.SessionID() {
		t.Fatalf("watchers of /a: %v, session is %d", byPath, conn.SessionID())
	}
	bySession := must(node.WatchesBySession(ctx))(t)
	if got := bySession[conn.SessionID()]; len(got) == 0 {
		t.Fatalf("watches of session %#x: %v", conn.SessionID(), bySession)
	}
	if got := must(node.Mntr(ctx))(t)["server_state"]; got != "standalone" {
		t.Fatalf("mntr says server_state %q", got)
	}
}

func TestHarnessOptions(t *testing.T) {
	ctx := limited(t, time.Minute)
	node := harness.StartServer(ctx, t,
		harness.WithTickTime(100*time.Millisecond),
		harness.WithSessionTimeouts(300*time.Millisecond, 7*time.Second), // go-zookeeper waits two thirds of it for an answer
		harness.WithExtendedTypes(),
		harness.WithContainerInterval(100*time.Millisecond),
		harness.WithMaxBuffer(1000),
		harness.WithFourLetterWords("ruok,srvr,conf"),
	)
	conn, events := harness.Dial(ctx, t, 10*time.Second, node.Addr())
	if _, err := conn.CreateTTL("/ttl", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), 200*time.Millisecond); err != nil {
		t.Fatalf("TTL nodes are off: %v", err)
	}
	if _, _, gone, err := conn.ExistsW("/ttl"); err != nil {
		t.Fatal(err)
	} else {
		select {
		case <-gone:
		case <-ctx.Done():
			t.Fatal("the TTL node was not swept")
		}
	}
	if _, err := node.FourLetter(ctx, "wchs"); err == nil || !strings.Contains(err.Error(), "whitelist") {
		t.Fatalf("wchs is not allowed, but: %v", err)
	}
	if conf := must(node.FourLetter(ctx, "conf"))(t); !strings.Contains(conf, "maxSessionTimeout=7000\n") {
		t.Fatalf("conf:\n%s", conf)
	}
	if _, err := conn.Set("/", make([]byte, 2000), -1); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Fatalf("a request over jute.maxbuffer gave %v", err)
	}
	check(t, harness.AwaitState(ctx, events, zk.StateHasSession))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must ends the test on an error: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return v
	}
}

func without(e *harness.Ensemble, out *harness.Node) []*harness.Node {
	var rest []*harness.Node
	for _, n := range e.Nodes() {
		if n != out {
			rest = append(rest, n)
		}
	}
	return rest
}
