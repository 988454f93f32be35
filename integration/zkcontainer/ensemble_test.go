package zkcontainer_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/zkcontainer"
)

func TestEnsembleFaults(t *testing.T) {
	ctx := limited(t, 5*time.Minute)
	e := zkcontainer.StartEnsemble(t, image(), 3, zkcontainer.WithHost("127.0.0.1"), zkcontainer.WithTickTime(200*time.Millisecond))
	var requests sync.WaitGroup
	for _, c := range e.Members() { // each of them serves, and nothing tries again
		for range 100 {
			requests.Go(func() {
				if err := zkcontainer.FirstRequest(ctx, c); err != nil {
					t.Error(err)
				}
			})
		}
	}
	requests.Wait()
	servers := e.Servers()
	conn, _ := dial(ctx, t, 4*time.Second, servers...)
	if _, err := conn.Create("/kept", []byte("x"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	// steady says that all is as at the beginning.
	steady := func(t *testing.T) {
		t.Helper()
		must(e.AwaitServing(ctx))(t)
		if now := e.Servers(); !slices.Equal(now, servers) {
			t.Fatalf("the addresses are %v and were %v", now, servers)
		}
		for _, c := range e.Members() {
			conn, _ := dial(ctx, t, 4*time.Second, c.Addr())
			if _, err := conn.Sync("/kept"); err != nil {
				t.Fatal(err)
			}
			if data, _, err := conn.Get("/kept"); err != nil || string(data) != "x" {
				t.Fatalf("server %d: %q, %v", c.ID(), data, err)
			}
			conn.Close()
		}
	}
	if got := len(e.Followers(ctx)); got != 2 {
		t.Fatalf("%d followers, want 2", got)
	}

	t.Run("kill the leader", func(t *testing.T) {
		leader := must(e.Leader(ctx))(t)
		check(t, leader.Kill(ctx))
		if role, err := leader.Role(ctx); err == nil {
			t.Fatalf("a killed server is %s", role)
		}
		if next := must(e.AwaitServing(ctx, without(e, leader)...))(t); next == leader {
			t.Fatal("the killed server leads")
		}
		check(t, leader.Start(ctx))
		steady(t)
	})

	t.Run("pause the leader", func(t *testing.T) {
		leader := must(e.Leader(ctx))(t)
		check(t, leader.Pause(ctx))
		must(e.AwaitServing(ctx, without(e, leader)...))(t)
		check(t, leader.Unpause(ctx))
		steady(t)
	})

	t.Run("part the leader", func(t *testing.T) {
		leader := must(e.Leader(ctx))(t)
		rest := without(e, leader)
		check(t, leader.Partition(ctx))
		check(t, leader.Partition(ctx))
		must(leader.AwaitRole(ctx, zkcontainer.NotServing))(t)
		must(e.AwaitServing(ctx, rest...))(t)

		check(t, leader.Restart(ctx)) // the partition holds
		must(e.AwaitServing(ctx, rest...))(t)
		if role := must(leader.Role(ctx))(t); role != zkcontainer.NotServing {
			t.Fatalf("server %d is %s though it is cut off", leader.ID(), role)
		}
		check(t, leader.Heal(ctx))
		steady(t)
	})

	t.Run("no quorum", func(t *testing.T) {
		first := e.Member(1)
		rest := without(e, first)
		for _, c := range rest {
			check(t, c.Stop(ctx, nil))
		}
		must(first.AwaitRole(ctx, zkcontainer.NotServing))(t)
		if err := zkcontainer.FirstRequest(limited(t, 2*time.Second), first); err == nil {
			t.Fatal("a server without a quorum serves")
		}
		for _, c := range rest {
			check(t, c.Start(ctx))
		}
		steady(t)
	})

	t.Run("heal all", func(t *testing.T) {
		check(t, e.Member(1).Pause(ctx))
		check(t, e.Member(2).Partition(ctx))
		check(t, e.Heal(ctx))
		steady(t)
	})
}

func without(e *zkcontainer.Ensemble, out *zkcontainer.Container) []*zkcontainer.Container {
	return slices.DeleteFunc(e.Members(), func(c *zkcontainer.Container) bool { return c == out })
}
