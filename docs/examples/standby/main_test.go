package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// A machine that is told to stop finishes its job, and the other one works then.
func TestDemo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out strings.Builder
	if err := demo(ctx, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	const want = "a is told to stop, and finishes its job: true\na has ended\nb works\n"
	if out.String() != want {
		t.Errorf("said\n%s\nwant\n%s", out.String(), want)
	}
}

// alone runs a service in a bubble, and returns what ends it and its result.
func alone(t *testing.T, srv *zktest.Server, jobs <-chan job) (sigterm func(), ended <-chan error) {
	t.Helper()
	s, c, err := newService(t.Context(), "zk:2181", jobs, client.WithDialer(srv.DialContext))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- errors.Join(s.run(ctx), c.Close()) }()
	return cancel, result
}

// A job whose lock is lost ends, and the service works again under the next hold.
func TestLostLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		jobs := make(chan job)
		sigterm, ended := alone(t, srv, jobs)
		var tokens []int64
		jobs <- func(ctx context.Context, token int64) error {
			tokens = append(tokens, token)
			srv.ExpireSession(srv.Sessions()[0].ID)
			<-ctx.Done()
			return ctx.Err()
		}
		jobs <- func(_ context.Context, token int64) error {
			tokens = append(tokens, token)
			sigterm()
			return nil
		}
		if err := <-ended; err != nil || len(tokens) != 2 || tokens[1] <= tokens[0] {
			t.Errorf("ended with %v, tokens %v", err, tokens)
		}
	})
}

// A job that does not end after SIGTERM is cut off, under the lock, and the lock is free then.
func TestGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		jobs := make(chan job)
		sigterm, ended := alone(t, srv, jobs)
		began := time.Now()
		jobs <- func(ctx context.Context, _ int64) error {
			sigterm()
			<-ctx.Done()
			if took := time.Since(began).Round(time.Second); took != 20*time.Second {
				t.Errorf("cut off after %v", took)
			}
			if left := srv.Children("/examples/standby"); len(left) != 1 {
				t.Errorf("nodes %v while the job works", left)
			}
			return ctx.Err()
		}
		if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, recipes.ErrLost) {
			t.Errorf("ended with %v", err)
		}
		if left := srv.Children("/examples/standby"); len(left) > 0 {
			t.Errorf("nodes %v are left", left)
		}
	})
}
