package containers_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/zkcontainer"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// place is what the suite needs of a server, whichever it is.
type place struct {
	connect string
	expire  func(ctx context.Context) error // ends the sessions of the clients there
}

func inMemory(t *testing.T) place {
	t.Helper()
	srv := zktest.NewServer(t)
	return place{srv.Addr(), func(context.Context) error {
		for _, s := range srv.Sessions() {
			srv.ExpireSession(s.ID)
		}
		return nil
	}}
}

func inContainers(t *testing.T) place {
	t.Helper()
	e := zkcontainer.StartEnsemble(t, cmp.Or(os.Getenv("ZOOKEEPER_IMAGE"), "zookeeper:3.9"), 3)
	link, err := e.NewLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	connect, err := link.ConnectionString(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return place{connect, func(ctx context.Context) error {
		_, err := link.ExpireSession(ctx)
		return err
	}}
}

// TestSuite runs on both. The second line of the table is what a container costs.
func TestSuite(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) place{
		"zktest":     inMemory,
		"containers": inContainers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loses(t, start(t))
		})
	}
}

// loses says that a client whose session ends loses its lock, and the next one gets it.
func loses(t *testing.T, at place) {
	t.Helper()
	first := acquire(t, connect(t, at), "/locks/job")
	if err := at.expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-first.Context().Done()
	if err := first.Err(); !errors.Is(err, recipes.ErrLost) {
		t.Errorf("the hold ended: %v", err)
	}
	second := acquire(t, connect(t, at), "/locks/job")
	if second.FencingToken() <= first.FencingToken() {
		t.Errorf("token %d after %d", second.FencingToken(), first.FencingToken())
	}
}

func connect(t *testing.T, at place) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), at.connect, client.WithSessionTimeout(10*time.Second),
		client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

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
