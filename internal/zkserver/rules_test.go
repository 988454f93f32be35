package zkserver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/zktest"
)

// memory opens a raw session in memory.
func memory(t *testing.T, link *zktest.ClientLink) *raw {
	t.Helper()
	c := memoryConn(t, link)
	if err := c.handshake(0, 30_000, 0, make([]byte, 16)); err != nil {
		t.Fatalf("handshake: %v", err)
	}
	return c
}

func memoryConn(t *testing.T, link *zktest.ClientLink) *raw {
	t.Helper()
	nc, err := link.DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return &raw{Conn: nc}
}

// bubble runs f with a server on virtual time.
func bubble(t *testing.T, f func(t *testing.T, srv *zktest.Server), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, zktest.NewServer(t, append([]zktest.Option{
			zktest.WithTick(time.Second), zktest.WithLatency(time.Microsecond, time.Millisecond),
		}, opts...)...))
	})
}

func create(path string) []byte { return body(path, []byte{}, openACL, int32(0)) }

func ephemeral(path string) []byte { return body(path, []byte{}, openACL, int32(1)) }

// must fails the test unless the answer carries the code.
func must(t *testing.T, c *raw, op int32, payload []byte, code int32) answer {
	t.Helper()
	a, _, err := c.call(op, payload)
	if err != nil || a.err != code {
		t.Fatalf("op %d: code %d, %v, want %d", op, a.err, err, code)
	}
	return a
}

func TestLoseReply(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		rule := srv.LoseReply(zktest.Match{Op: zktest.OpCreate, PathPrefix: "/x", Nth: 2})
		must(t, c, 1, create("/x1"), 0)
		must(t, c, 1, create("/other"), 0)
		must(t, c, 3, body("/x2", true), -101)
		if _, events, err := c.call(1, create("/x2")); kindOfError(err) != "closed" || len(events) > 0 {
			t.Errorf("lost reply: %v with %d events, want a closed connection and none", err, len(events))
		}
		if _, ok := srv.Node("/x2"); !ok {
			t.Error("the request was not applied")
		}
		if len(srv.Sessions()) != 1 {
			t.Errorf("sessions %v, want the one", srv.Sessions())
		}
		d := memoryConn(t, srv.Client("a"))
		if err := d.handshake(0, 30_000, c.session, c.password); err != nil {
			t.Errorf("reattach: %v", err)
		}
		must(t, d, 1, create("/x3"), 0)
		if got := rule.Fired(); got != 1 {
			t.Errorf("Fired = %d, want 1", got)
		}
	})
}

func TestDropBeforeAndAfter(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.DropBefore(zktest.Match{Path: "/a"})
		srv.DropAfter(zktest.Match{Path: "/b"})
		c := memory(t, srv.Client("a"))
		if _, _, err := c.call(1, create("/a")); kindOfError(err) != "closed" {
			t.Errorf("dropped before: %v", err)
		}
		c = memory(t, srv.Client("a"))
		must(t, c, 1, create("/b"), 0)
		if _, err := c.receive(); kindOfError(err) != "closed" {
			t.Errorf("dropped after: %v", err)
		}
		if _, ok := srv.Node("/a"); ok {
			t.Error("/a was created")
		}
	})
}

func TestLostHandshakes(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.DropBefore(zktest.Match{Op: zktest.OpConnect})
		c := memoryConn(t, srv.Client("a"))
		if err := c.handshake(0, 9000, 0, nil16()); kindOfError(err) != "closed" || len(srv.Sessions()) != 0 {
			t.Errorf("dropped handshake: %v, sessions %v", err, srv.Sessions())
		}
		srv.LoseReply(zktest.Match{Op: zktest.OpConnect})
		c = memoryConn(t, srv.Client("a"))
		if err := c.handshake(0, 9000, 0, nil16()); kindOfError(err) != "closed" || len(srv.Sessions()) != 1 {
			t.Errorf("lost handshake: %v, sessions %v", err, srv.Sessions())
		}
		srv.Fail(zktest.Match{Op: zktest.OpConnect}, zktest.CodeSessionExpired)
		c = memoryConn(t, srv.Client("a"))
		if err := c.handshake(0, 9000, 0, nil16()); !errors.Is(err, errRefused) {
			t.Errorf("failed handshake: %v", err)
		}
		if got := srv.Count(zktest.OpConnect); got != 3 {
			t.Errorf("Count = %d, want 3", got)
		}
	})
}

func nil16() []byte { return make([]byte, 16) }

func TestFailAndIgnore(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		srv.Fail(zktest.Match{Op: zktest.OpSetData, Times: 2}, zktest.CodeThrottledOp)
		must(t, c, 1, create("/a"), 0)
		for range 2 {
			must(t, c, 5, body("/a", []byte("x"), int32(-1)), -127)
		}
		must(t, c, 5, body("/a", []byte("x"), int32(-1)), 0)
		srv.Ignore(zktest.Match{Op: zktest.OpDelete})
		if _, err := c.send(2, body("/a", int32(-1))); err != nil {
			t.Fatal(err)
		}
		must(t, c, 3, body("/a", false), 0)
		must(t, c, 2, body("/a", int32(-1)), 0)
	})
}

func TestDelays(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a, b := memory(t, srv.Client("a")), memory(t, srv.Client("b"))
		srv.DelayReply(zktest.Match{Path: "/late"}, 5*time.Second)
		srv.Delay(zktest.Match{Path: "/later"}, 7*time.Second)
		start := time.Now()
		if _, err := a.send(1, create("/late")); err != nil {
			t.Fatal(err)
		}
		// Two latencies at most, one each way, before the first answer.
		time.Sleep(3 * time.Millisecond)
		must(t, b, 3, body("/late", false), 0)
		if _, err := a.receive(); err != nil || time.Since(start) < 5*time.Second {
			t.Errorf("reply after %v, %v", time.Since(start), err)
		}
		start = time.Now()
		if _, err := a.send(1, create("/later")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		must(t, b, 3, body("/later", false), -101)
		if _, err := a.receive(); err != nil || time.Since(start) < 7*time.Second {
			t.Errorf("reply after %v, %v", time.Since(start), err)
		}
	})
}

func TestHooks(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		must(t, c, 1, create("/q"), 0)
		must(t, c, 1, create("/q/first"), 0)
		var seen zktest.Request
		rule := srv.BeforeReply(zktest.Match{Op: zktest.OpGetChildren2, Path: "/q"},
			func(_ context.Context, r zktest.Request) {
				seen = r
				if err := srv.Delete("/q/first"); err != nil {
					t.Error(err)
				}
			})
		a := must(t, c, 12, body("/q", false), 0)
		d := dec{b: a.body}
		if got := d.strings(); len(got) != 1 {
			t.Errorf("children %v, want the one that was there", got)
		}
		must(t, c, 4, body("/q/first", true), -101)
		if seen.Client != "a" || seen.Op != zktest.OpGetChildren2 || seen.Session != c.session {
			t.Errorf("hook saw %+v", seen)
		}
		if err := rule.Wait(t.Context(), 1); err != nil {
			t.Error(err)
		}
		srv.BeforeApply(zktest.Match{Op: zktest.OpCreate}, func(context.Context, zktest.Request) {
			if err := srv.Create("/q/first", nil); err != nil {
				t.Error(err)
			}
		})
		must(t, c, 1, create("/q/first"), -110)
	})
}

// TestHookHoldsOrder checks that replies wait behind one that a hook holds,
// while the requests are served.
func TestHookHoldsOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		gate := make(chan struct{})
		srv.BeforeReply(zktest.Match{Path: "/a"}, func(ctx context.Context, _ zktest.Request) {
			select {
			case <-gate:
			case <-ctx.Done():
			}
		})
		for _, path := range []string{"/a", "/b"} {
			if _, err := c.send(1, create(path)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		if _, ok := srv.Node("/b"); !ok {
			t.Error("/b waits for the hook")
		}
		close(gate)
		for want := range int32(2) {
			if a, err := c.receive(); err != nil || a.xid != want+1 {
				t.Errorf("answer %d, %v, want %d", a.xid, err, want+1)
			}
		}
	})
}

// TestHookEndsWithServer checks that Close frees a hook that waits for ever.
func TestHookEndsWithServer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		srv.BeforeReply(zktest.Match{}, func(ctx context.Context, _ zktest.Request) { <-ctx.Done() })
		srv.BeforeApply(zktest.Match{Path: "/b"}, func(ctx context.Context, _ zktest.Request) { <-ctx.Done() })
		for _, path := range []string{"/a", "/b"} {
			if _, err := c.send(1, create(path)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestProbability(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (out []bool) {
		srv := zktest.NewServer(t, zktest.WithSeed(seed))
		srv.Fail(zktest.Match{Op: zktest.OpExists, Prob: 0.3}, zktest.CodeAPIError)
		c := memory(t, srv.Client("a"))
		for range 200 {
			a, _, err := c.call(3, body("/", false))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, a.err != 0)
		}
		return out
	}
	first, again, other := run(1), run(1), run(2)
	hits, same := 0, 0
	for i := range first {
		if first[i] {
			hits++
		}
		if first[i] != again[i] {
			t.Fatal("the same seed draws differently")
		}
		if first[i] == other[i] {
			same++
		}
	}
	if hits < 35 || hits > 90 || same == len(first) {
		t.Errorf("%d hits of 200 at 0.3, %d like another seed", hits, same)
	}
}
