package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// The limit is kept by all processes together, and used.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		began := time.Now()
		var out strings.Builder
		if err := run(t.Context(), "zk:2181", &out, client.WithDialer(srv.Client("a").DialContext)); err != nil {
			t.Fatal(err)
		}
		if want := "12 calls, at most 4 within 500ms\n"; out.String() != want {
			t.Errorf("said %q, want %q", out.String(), want)
		}
		if took := time.Since(began); took > 4*window { // three windows, and the time to connect
			t.Errorf("took %v", took)
		}
		if left := srv.Children(path + "/leases"); len(left) != 0 {
			t.Errorf("permits are left: %v", left)
		}
	})
}

// When a session ends, its permits are free before their window has passed. This is the
// limit of the limiter.
func TestDeath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		connect := func(name string) *limiter {
			c, err := client.Connect(t.Context(), "zk:2181", client.WithDialer(srv.Client(name).DialContext),
				client.WithLogger(slog.New(slog.DiscardHandler)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			l, err := newLimiter(c, path, 1, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		a, b := connect("a"), connect("b")
		s := &service{}
		if err := a.do(t.Context(), s.call); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := b.do(short, s.call); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second call within the window: %v", err)
		}
		srv.Client("a").ExpireSession()
		if err := b.do(t.Context(), s.call); err != nil {
			t.Fatal(err)
		}
		if got := s.most(time.Hour); got != 2 {
			t.Errorf("%d calls within an hour, want that of each process", got)
		}
		srv.Client("b").ExpireSession()
		a.wait()
		b.wait()
	})
}
