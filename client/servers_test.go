package client_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// Pauses are measured by what the server granted, not by what was asked for.
func TestPausesFitTheGrantedTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const granted = 6 * time.Second
		r.Srv.SetSessionTimeouts(time.Second, granted)
		var longest time.Duration
		c := r.Connect("a", client.WithSessionTimeout(2*time.Minute), client.WithRetry(retry.Forever(time.Minute)),
			client.WithObserver(client.Observer{Retry: func(_ context.Context, i client.RetryInfo) { longest = max(longest, i.Attempt.Pause) }}))
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpExists})
		_, _, err := c.Exists(r.Ctx, "/")
		r.Check(err)
		if longest == 0 || longest > granted/3 {
			t.Errorf("slept %v in a session of %v", longest, granted)
		}
	})
}

// A start without trouble logs no warning. An open ACL is logged below the level
// of warnings, with the remedy.
func TestQuietStart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opts []client.Option
		want int
	}{
		"open": {nil, 1},
		"auth": {[]client.Option{client.WithAuth("digest", "user:secret")}, 0},
		"own":  {[]client.Option{client.WithDefaultACL(zk.WorldACL(zk.PermRead)...)}, 0},
	} {
		bubble(t, func(r *rig) {
			var said bytes.Buffer
			c := r.Connect("a", append(tt.opts, client.WithLogger(slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))))...)
			r.Check(c.CloseContext(r.Ctx))
			if n := strings.Count(said.String(), "open ACL"); n != tt.want || n > 0 && !strings.Contains(said.String(), "client.WithAuth") {
				t.Errorf("%s: said %d times: %s", name, n, said.String())
			}
			if strings.Contains(said.String(), "secret") || strings.Contains(said.String(), "level=WARN") {
				t.Errorf("%s: the log shows the credentials, or warns: %s", name, said.String())
			}
		})
	}
}

// A server that grants less than was asked for is a warning, once for each step
// down; one that grants more is not.
func TestShortenedTimeoutIsSaid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var said bytes.Buffer
		c := r.Connect("a", client.WithSessionTimeout(time.Hour), client.WithConnectTimeout(time.Minute), client.WithLogger(slog.New(slog.NewTextHandler(&said, nil))))
		warnings := func() int {
			return strings.Count(said.String(), "level=WARN msg=\"zookeeper: a server has granted a shorter session timeout")
		}
		again := func(want int) {
			r.Helper()
			r.Srv.CutAll()
			_, _, err := c.Exists(r.Ctx, "/")
			r.Check(err)
			synctest.Wait()
			if n := warnings(); n != want {
				t.Errorf("%d warnings, want %d: %s", n, want, said.String())
			}
		}
		again(1)
		again(1)
		r.Srv.SetSessionTimeouts(time.Second, time.Minute)
		again(2)
		r.Check(c.CloseContext(r.Ctx))
		for _, text := range []string{"timeout=2m0s", "timeout=1m0s", "asked=1h0m0s", "maxSessionTimeout"} {
			if !strings.Contains(said.String(), text) {
				t.Errorf("%q is missing: %s", text, said.String())
			}
		}
		said.Reset()
		d := r.Connect("b", client.WithSessionTimeout(200*time.Millisecond), client.WithConnectTimeout(time.Minute), client.WithLogger(slog.New(slog.NewTextHandler(&said, nil))))
		r.Check(d.CloseContext(r.Ctx))
		if strings.Contains(said.String(), "WARN") {
			t.Errorf("more than was asked for: %s", said.String())
		}
	})
}

// Connect strings with the same servers give the same names, in any order.
func TestServers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, connectString := range []string{"b:2182,a", "a:2181, b:2182,a"} {
			c, err := r.Open(connectString, "a")
			r.Check(err)
			if got := c.Servers(); !slices.Equal(got, []string{"a:2181", "b:2182"}) {
				t.Errorf("%q: %q", connectString, got)
			}
		}
	})
}

// The first dial after the loss of a connection is made at once, also if it comes
// before the loss is told. There is a pause if the connection took many dials and
// did not stand, or did not stand again.
func TestRedialAtOnce(t *testing.T) {
	t.Parallel()
	const long, short = time.Hour, time.Millisecond
	for _, tt := range []struct {
		failed int
		stood  []time.Duration
		atOnce bool
	}{
		{20, []time.Duration{long}, true},
		{20, []time.Duration{short}, false},
		{1, []time.Duration{short}, true},
		{1, []time.Duration{short, short}, false},
		{1, []time.Duration{short, short, short}, false},
		{1, []time.Duration{short, long}, true},
		{1, []time.Duration{short, long, short}, true},
		{1, []time.Duration{short, long, short, short}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			paused, err := client.Redials(t.Context(), "h:1", tt.failed, tt.stood...)
			if err != nil || (paused == 0) != tt.atOnce {
				t.Errorf("after %d dials and %v: paused %v, %v", tt.failed, tt.stood, paused, err)
			}
		})
	}
}

// resetting is a connection that the server resets. Each has a local port of its own.
type resetting struct {
	net.Conn
	port int
}

func (c resetting) Read([]byte) (int, error) {
	here, there := &net.TCPAddr{Port: c.port}, &net.TCPAddr{Port: 2181}
	return 0, &net.OpError{Op: "read", Net: "tcp", Source: here, Addr: there, Err: syscall.ECONNRESET}
}

func (c resetting) Write(b []byte) (int, error) { return len(b), nil }

// A server that resets every connection is one warning, whatever port each of them had.
func TestResetIsSaidOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		var dials atomic.Int32
		c, err := client.Connect(t.Context(), "zk:2181", client.WithLazyConnect(),
			client.WithLogger(slog.New(slog.NewTextHandler(&said, nil))),
			client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
				end, _ := net.Pipe()
				return resetting{end, int(dials.Add(1))}, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if text := said.String(); dials.Load() < 3 || strings.Count(text, "no connection") != 1 ||
			strings.Contains(text, "->") || !strings.Contains(text, "connection reset by peer") {
			t.Errorf("after %d dials: %s", dials.Load(), text)
		}
	})
}
