package losing_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/docs/examples/losing"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// connect returns a mutex of a client on srv.
func connect(ctx context.Context, t *testing.T, srv *zktest.Server) *recipes.InterProcessMutex {
	t.Helper()
	c, err := client.Connect(ctx, "zk:2181",
		client.WithDialer(srv.DialContext), // in memory; the name is never resolved
		client.WithSessionTimeout(10*time.Second),
		client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // the network may be gone
		defer cancel()
		_ = c.CloseContext(bye)
	})
	lock, err := recipes.NewInterProcessMutex(c, "/locks/job")
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func ok(context.Context) error { return nil }

// What does the service do when it loses the lock here? With real time: the
// server ends the session between two steps.
func TestLosesTheLock(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	srv := zktest.NewServer(t)
	lock := connect(ctx, t, srv)
	lose := func(ctx context.Context) error {
		srv.ExpireSession(srv.Sessions()[0].ID)
		<-ctx.Done() // the lock tells the work
		return nil
	}
	done, err := losing.Run(ctx, lock, []func(context.Context) error{ok, lose, ok})
	if done != 2 || !errors.Is(err, losing.ErrHalfWay) || !errors.Is(err, recipes.ErrLost) {
		t.Errorf("did %d steps, %v; want 2 and a lost lock", done, err)
	}
}

// In virtual time: the network goes silent, nobody tells anybody anything, and
// the lock is lost before the session timeout has passed. The ten seconds take
// no time.
func TestLosesTheNetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		srv := zktest.NewServer(t, zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		lock := connect(ctx, t, srv)
		cut := func(ctx context.Context) error {
			srv.Partition()
			began := time.Now()
			<-ctx.Done()
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("told after %v, the session lives 10s", took)
			}
			return nil
		}
		done, err := losing.Run(ctx, lock, []func(context.Context) error{ok, cut, ok})
		if done != 2 || !errors.Is(err, client.ErrLeaseExpired) {
			t.Errorf("did %d steps, %v; want 2 and an expired lease", done, err)
		}
	})
}

// The answer to the create is lost: the service notices nothing, and nothing
// is left behind.
func TestLosesAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		srv := zktest.NewServer(t, zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		lock := connect(ctx, t, srv)
		lost := srv.LoseReply(zktest.Match{Op: zktest.OpCreate, PathPrefix: "/locks/job/"})
		done, err := losing.Run(ctx, lock, []func(context.Context) error{ok})
		if done != 1 || err != nil {
			t.Errorf("did %d steps, %v; want 1 and nil", done, err)
		}
		if lost.Fired() != 1 {
			t.Errorf("the fault happened %d times: nothing was tested", lost.Fired())
		}
		if left := srv.Children("/locks/job"); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}
