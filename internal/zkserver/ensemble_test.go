package zkserver_test

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/zktest"
)

// Time of the ensembles in these tests: a tick of a second, so members give
// each other up after five.
const (
	syncTime = 5 * time.Second
	oneTick  = time.Second
)

// ensemble runs f with three members on virtual time. The third one leads.
func ensemble(t *testing.T, f func(t *testing.T, e *zktest.Ensemble), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, zktest.NewEnsemble(t, 3, append([]zktest.Option{
			zktest.WithTick(oneTick), zktest.WithLatency(time.Microsecond, time.Millisecond),
		}, opts...)...))
	})
}

// on opens a raw session of 30 s, clamped to 20 ticks, on one member.
func on(t *testing.T, e *zktest.Ensemble, client string, member int) *raw {
	t.Helper()
	return memory(t, e.Client(client).To(member))
}

func exists(path string) []byte { return body(path, false) }

// silent fails the test if an answer comes within d.
func silent(t *testing.T, c *raw, d time.Duration) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(d))
	if a, err := c.receive(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("answer %+v, %v, want none within %v", a, err, d)
	}
	_ = c.SetReadDeadline(time.Time{})
}

// dropped waits until the connection ends and returns how long that took.
func dropped(t *testing.T, c *raw, limit time.Duration) time.Duration {
	t.Helper()
	start := time.Now()
	_ = c.SetReadDeadline(start.Add(limit))
	for {
		if _, err := c.receive(); err != nil {
			if kindOfError(err) != "closed" {
				t.Errorf("connection: %v, want it closed within %v", err, limit)
			}
			return time.Since(start)
		}
	}
}

// turnedAway reports whether a member closes a handshake without an answer.
func turnedAway(t *testing.T, e *zktest.Ensemble, member int) bool {
	t.Helper()
	c := memoryConn(t, e.Client("probe").To(member))
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	return kindOfError(c.handshake(0, 30_000, 0, nil16())) == "closed"
}

func TestEnsembleAppliesEverywhere(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		if l := e.Leader(); l == nil || l.ID() != 3 || !l.Leading() || e.Server(1).Role().String() != "following" {
			t.Fatalf("leader %v, member 1 %v", l, e.Server(1).Role())
		}
		var all []*raw
		for i := 1; i <= e.Size(); i++ {
			c := on(t, e, "a", i)
			if top := c.session >> 56; top != int64(i) {
				t.Errorf("session %#x was not made by member %d", uint64(c.session), i)
			}
			all = append(all, c)
		}
		must(t, all[0], 3, body("/q", true), -101)
		must(t, all[1], 1, create("/q"), 0)
		if ev, err := all[0].receive(); err != nil || ev.xid != -1 {
			t.Errorf("event of another member's write: %+v, %v", ev, err)
		}
		for i, want := range []string{"/q/s0000000000", "/q/s0000000001", "/q/s0000000002"} {
			if got := pathOf(must(t, all[i], 1, sequentialAt("/q/s"), 0)); got != want {
				t.Errorf("member %d made %s, want %s", i+1, got, want)
			}
		}
		zxid := e.Leader().Zxid()
		for i, c := range all {
			m := e.Server(i + 1)
			if m.Zxid() != zxid || zxid>>32 != 1 || len(m.Children("/q")) != 3 || len(m.Sessions()) != 3 {
				t.Errorf("member %d: zxid %#x, want %#x\n%s", i+1, m.Zxid(), zxid, m.Dump())
			}
			if left := m.Sessions()[0].ExpiresIn; left < 19*time.Second || left > 21*time.Second {
				t.Errorf("member %d: a session expires in %v", i+1, left)
			}
			must(t, c, 3, exists("/q/s0000000002"), 0)
		}
		must(t, all[1], -11, nil, 0)
		if n := len(e.Server(1).Sessions()); n != 2 {
			t.Errorf("%d sessions on member 1 after one has been closed on member 2", n)
		}
	})
}

// TestLaggingFollower checks all that a client notices of a follower that
// applies late.
func TestLaggingFollower(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		slow, fast := on(t, e, "slow", 1), on(t, e, "fast", 2)
		const lag = 3 * time.Second
		e.Server(1).Lag(lag)
		seen := must(t, fast, 1, create("/a"), 0).zxid
		must(t, slow, 3, exists("/a"), -101)

		late := memoryConn(t, e.Client("fast").To(1))
		if err := late.handshake(seen, 30_000, fast.session, fast.password); kindOfError(err) != "closed" {
			t.Errorf("a client that has seen more: %v, want it sent away", err)
		}
		start := time.Now()
		must(t, slow, 9, body("/a"), 0)
		if took := time.Since(start); took < lag-10*time.Millisecond || took > lag+10*time.Millisecond {
			t.Errorf("sync took %v, want what the member lags behind", took)
		}
		must(t, slow, 3, exists("/a"), 0)

		start = time.Now()
		must(t, slow, 1, create("/b"), 0)
		if took := time.Since(start); took < lag || took > lag+10*time.Millisecond {
			t.Errorf("a write took %v, want the member's own apply", took)
		}
		must(t, fast, 3, exists("/b"), 0)
	})
}

// TestSyncWaitsForTheLeadersIndexAtArrival checks that later writes do not put
// a sync off.
func TestSyncWaitsForTheLeadersIndexAtArrival(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		slow, fast := on(t, e, "slow", 1), on(t, e, "fast", 2)
		e.SlowLog(2 * time.Second)
		for _, p := range []string{"/a", "/b"} {
			if _, err := fast.send(1, create(p)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if p != "/a" {
				continue
			}
			if _, err := slow.send(9, body("/")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		start := time.Now()
		if a, err := slow.receive(); err != nil || a.err != 0 {
			t.Fatalf("sync: %+v, %v", a, err)
		}
		if took := time.Since(start); took > 20*time.Millisecond {
			t.Errorf("sync came %v late: it has waited for a later write", took)
		}
		must(t, slow, 3, exists("/a"), 0)
		must(t, slow, 3, exists("/b"), -101)
	})
}

func TestHeldCommits(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		held, fast := on(t, e, "held", 1), on(t, e, "fast", 2)
		must(t, held, 3, body("/a", true), -101)
		e.Server(1).HoldCommits()
		must(t, fast, 1, create("/a"), 0)
		if _, err := held.send(1, create("/b")); err != nil {
			t.Fatal(err)
		}
		// A read behind the write waits with it, and so do pings.
		if _, err := held.send(3, exists("/b")); err != nil {
			t.Fatal(err)
		}
		if err := held.sendXid(-2, 11, nil); err != nil {
			t.Fatal(err)
		}
		silent(t, held, 10*time.Second)
		must(t, fast, 3, exists("/b"), 0)
		e.Server(1).ReleaseCommits()
		for _, want := range []int32{-1, 1 + 1, 2 + 1, -2} {
			if a, err := held.receive(); err != nil || a.xid != want || a.err != 0 {
				t.Errorf("answer %+v, %v, want xid %d", a, err, want)
			}
		}
	})
}

// TestSelfGhostThroughLaggingMember replays hazard D2. A client that comes back
// to a member behind does not find the node it has just made, unless the client
// syncs first.
func TestSelfGhostThroughLaggingMember(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		link := e.Client("a")
		c := on(t, e, "a", 3)
		e.SlowLog(time.Second)
		if _, err := c.send(1, ephemeral("/mine")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		if link.Cut() != 1 {
			t.Fatal("no connection was cut")
		}
		back := memoryConn(t, link.To(1))
		if err := back.handshake(0, 30_000, c.session, c.password); err != nil {
			t.Fatal(err)
		}
		must(t, back, 3, exists("/mine"), -101)
		must(t, back, 9, body("/mine"), 0)
		must(t, back, 3, exists("/mine"), 0)
	})
}
