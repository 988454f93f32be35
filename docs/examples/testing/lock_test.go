// Package orders_test is the code of docs/testing.md and docs/testing-faults.md.
package orders_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// connect returns a client that reaches srv in memory, under a name of its own.
func connect(t *testing.T, srv *zktest.Server, name string) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), "zk:2181", // the host is never looked up
		client.WithDialer(srv.Client(name).DialContext),
		client.WithSessionTimeout(10*time.Second),
		client.WithLogger(slog.New(slog.DiscardHandler))) // else its log fills go test -v
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// acquire takes the lock at path.
func acquire(t *testing.T, c *client.Client, path string) *recipes.Hold {
	t.Helper()
	lock, err := recipes.NewInterProcessMutex(c, path)
	if err != nil {
		t.Fatal(err)
	}
	hold, err := lock.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hold.Close() })
	return hold
}

func TestSessionExpires(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t) // closed when the test ends; prints its seed when it fails
	hold := acquire(t, connect(t, srv, "a"), "/locks/job")

	srv.Client("a").ExpireSession()

	<-hold.Context().Done() // the work stops here
	err := context.Cause(hold.Context())
	if !errors.Is(err, recipes.ErrLost) || !errors.Is(err, client.ErrSessionLost) {
		t.Errorf("the hold ended: %v", err)
	}
	_, err = hold.Guard(t.Context(), client.SetOp("/orders", nil, -1))
	if !errors.Is(err, recipes.ErrLost) {
		t.Errorf("a write under the lost lock: %v", err)
	}
}

func TestNetworkIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		hold := acquire(t, connect(t, srv, "a"), "/locks/job")

		srv.Client("a").Partition() // no packet arrives, and no connection is closed
		began := time.Now()
		<-hold.Context().Done()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("told after %v, and another client can hold the lock after 10s", took)
		}
		srv.Client("a").Heal() // or Close would wait for the network
	})
}

func TestAnswerIsLost(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	c := connect(t, srv, "a")
	if err := srv.Create("/locks/job", nil); err != nil { // else the first create is refused: no parent
		t.Fatal(err)
	}
	lost := srv.LoseReply(zktest.Match{Op: zktest.OpCreate, PathPrefix: "/locks/job/"})

	hold := acquire(t, c, "/locks/job")
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if lost.Fired() != 1 {
		t.Errorf("the fault happened %d times: nothing was tested", lost.Fired())
	}
	if left := srv.Children("/locks/job"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	first := acquire(t, connect(t, srv, "a"), "/locks/job")
	lock, err := recipes.NewInterProcessMutex(connect(t, srv, "b"), "/locks/job")
	if err != nil {
		t.Fatal(err)
	}
	waits := srv.BeforeReply(zktest.Match{Client: "b", Op: zktest.OpGetData, Path: first.Path()}, func(context.Context, zktest.Request) {})
	var order []string // is written under the lock
	done := make(chan error)
	go func() {
		done <- lock.Do(t.Context(), func(_ context.Context, second *recipes.Hold) error {
			order = append(order, "second")
			if second.FencingToken() <= first.FencingToken() {
				t.Errorf("token %d after %d", second.FencingToken(), first.FencingToken())
			}
			return nil
		})
	}()
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := waits.Wait(soon, 1); err != nil { // until b watches a's node: it stands in line behind a
		t.Fatal(err)
	}
	order = append(order, "first")
	if err := errors.Join(first.Release(t.Context()), <-done); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(order, []string{"first", "second"}) {
		t.Errorf("worked in the order %v", order)
	}
}

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	c := connect(t, srv, "a")
	hold := acquire(t, c, "/locks/job")

	if err := errors.Join(hold.Release(t.Context()), c.CloseContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, node := range srv.Tree() {
		if node.Stat.EphemeralOwner != 0 {
			t.Errorf("a node is left: %s", node.Path)
		}
	}
	if sessions, watches := srv.Sessions(), srv.WatchCount(); len(sessions) != 0 || watches != 0 {
		t.Errorf("left behind: %d sessions, %d watches", len(sessions), watches)
	}
}
