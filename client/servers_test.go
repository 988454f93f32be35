package client_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// All addresses of a name are tried, within the limit of the dial, and the
// name is resolved anew at every dial.
func TestDialResolves(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	none := errors.New("no such host")
	for _, tt := range []struct {
		answers []string
		err     error
		reached string
		says    []string
	}{
		{answers: []string{"127.0.0.1"}, reached: "127.0.0.1"},
		{answers: []string{"127.0.0.2", "127.0.0.1"}, reached: "127.0.0.1"}, // nobody listens on the first
		{answers: []string{"127.0.0.2", "127.0.0.3"}, says: []string{"127.0.0.2:", "127.0.0.3:"}},
		{err: none, says: []string{"no such host"}},
	} {
		asked := 0
		for round := 1; round <= 2; round++ {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			conn, err := client.Resolved(ctx, "zk.example:"+port, func(_ context.Context, host string) ([]string, error) {
				asked++
				if host != "zk.example" {
					t.Errorf("asked for %q", host)
				}
				return tt.answers, tt.err
			})
			cancel()
			if asked != 1 && round == 1 {
				t.Errorf("%v: resolved %d times", tt.answers, asked)
			}
			if tt.reached == "" {
				for _, part := range tt.says {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("%v: error %v does not say %q", tt.answers, err, part)
					}
				}
				continue
			}
			if err != nil {
				t.Errorf("%v: %v", tt.answers, err)
				continue
			}
			if got, _, _ := net.SplitHostPort(conn.RemoteAddr().String()); got != tt.reached {
				t.Errorf("%v: reached %s", tt.answers, got)
			}
			_ = conn.Close()
		}
	}
}

// A silent address leaves those after it their part of the time.
func TestDialSharesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		for n, want := range map[int]time.Duration{3: 3 * time.Second, 2: 4500 * time.Millisecond, 1: 9 * time.Second} {
			part, end := client.Share(ctx, n)
			if deadline, ok := part.Deadline(); !ok || time.Until(deadline) != want {
				t.Errorf("first of %d: %v, want %v", n, time.Until(deadline), want)
			}
			end()
		}
		free, end := client.Share(t.Context(), 3)
		defer end()
		if _, limited := free.Deadline(); limited {
			t.Error("a part of no limit is limited")
		}
	})
}

// Pauses are measured by what the server granted, not by what was asked for.
func TestPausesFitTheGrantedTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const granted = 6 * time.Second
		r.srv.SetSessionTimeouts(time.Second, granted)
		var longest time.Duration
		c := r.connect("a", client.WithSessionTimeout(2*time.Minute), client.WithRetry(retry.Forever(time.Minute)),
			client.WithObserver(client.Observer{Retry: func(i client.RetryInfo) { longest = max(longest, i.Attempt.Sleep) }}))
		r.srv.LoseReply(zktest.Match{Op: zktest.OpExists})
		_, _, err := c.Exists(r.ctx, "/")
		r.check(err)
		if longest == 0 || longest > granted/3 {
			t.Errorf("slept %v in a session of %v", longest, granted)
		}
	})
}

// An open ACL is said once, with the remedy, and not when there is another.
func TestOpenACLIsSaid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opts []client.Option
		want int
	}{
		"open": {nil, 1},
		"auth": {[]client.Option{client.WithAuth("digest", "user:secret")}, 0},
	} {
		bubble(t, func(r *rig) {
			var said bytes.Buffer
			c := r.connect("a", append(tt.opts, client.WithLogger(slog.New(slog.NewTextHandler(&said, nil))))...)
			for _, path := range []string{"/a", "/b"} {
				_, err := c.Create(r.ctx, path, nil)
				r.check(err)
			}
			r.check(c.Close(r.ctx))
			if n := strings.Count(said.String(), "open ACL"); n != tt.want || n > 0 && !strings.Contains(said.String(), "client.WithAuth") {
				t.Errorf("%s: said %d times: %s", name, n, said.String())
			}
			if strings.Contains(said.String(), "secret") {
				t.Errorf("%s: the log shows the credentials", name)
			}
		})
	}
}

// The servers are named alike by all who write the same ones, in any order.
func TestServers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, connectString := range []string{"b:2182,a", "a:2181, b:2182,a"} {
			c, err := r.open(connectString, "a")
			r.check(err)
			if got := c.Servers(); !slices.Equal(got, []string{"a:2181", "b:2182"}) {
				t.Errorf("%q: %q", connectString, got)
			}
		}
	})
}

// The first dial after a connection that stood is made at once, also if it comes
// before the loss is told; after one that did not stand there is a pause.
func TestRedialAtOnceAfterAStableConnection(t *testing.T) {
	t.Parallel()
	for stood, atOnce := range map[time.Duration]bool{time.Hour: true, time.Millisecond: false} {
		synctest.Test(t, func(t *testing.T) {
			paused, err := client.Redials(t.Context(), "h:1", 20, stood)
			if err != nil || (paused == 0) != atOnce {
				t.Errorf("after %v: paused %v, %v", stood, paused, err)
			}
		})
	}
}
