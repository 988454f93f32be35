package zkserver_test

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/zktest"
)

// TestFollowerCutOff follows a member that has lost its leader until it drops
// its clients, and back.
func TestFollowerCutOff(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a, w, b := on(t, e, "a", 1), on(t, e, "w", 1), on(t, e, "b", 2)
		must(t, a, 1, create("/a"), 0)
		time.Sleep(700 * time.Millisecond)
		e.Cut(1, 3)
		start := time.Now()
		must(t, b, 1, create("/b"), 0)
		if _, err := w.send(1, create("/never")); err != nil {
			t.Fatal(err)
		}
		for time.Since(start) < syncTime-600*time.Millisecond {
			must(t, a, 11, nil, 0)
			must(t, a, 3, exists("/a"), 0)
			must(t, a, 3, exists("/b"), -101)
			time.Sleep(200 * time.Millisecond)
		}
		dropped(t, a, time.Minute)
		if took := time.Since(start); took < syncTime-oneTick/2 || took > syncTime+2*time.Millisecond {
			t.Errorf("clients were dropped after %v, want the sync limit since the last beat", took)
		}
		if took := dropped(t, w, time.Minute); took > 10*time.Millisecond || e.Server(1).Serving() {
			t.Errorf("writer dropped %v later, serving %v", took, e.Server(1).Serving())
		}
		if !turnedAway(t, e, 1) || e.Leader().ID() != 3 {
			t.Error("a member without a leader takes clients")
		}
		e.Heal()
		if !turnedAway(t, e, 1) {
			t.Error("the member serves before it has found the leader")
		}
		time.Sleep(time.Second)
		c := on(t, e, "c", 1)
		must(t, c, 3, exists("/b"), 0)
		must(t, c, 3, exists("/never"), -101)
	})
}

// TestShortCutLosesNothing heals before a member gives up.
func TestShortCutLosesNothing(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a, b := on(t, e, "a", 1), on(t, e, "b", 3)
		e.Isolate(1)
		must(t, b, 1, create("/b"), 0)
		for _, s := range []struct {
			op int32
			p  []byte
		}{{1, create("/a")}, {3, exists("/a")}, {9, body("/")}} {
			if _, err := a.send(s.op, s.p); err != nil {
				t.Fatal(err)
			}
		}
		newcomer := memoryConn(t, e.Client("n").To(1))
		_ = newcomer.SetReadDeadline(time.Now().Add(3 * time.Second))
		if err := newcomer.handshake(0, 30_000, 0, nil16()); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("handshake on a follower that is cut off: %v, want no answer", err)
		}
		e.Heal()
		for xid := int32(1); xid <= 3; xid++ {
			if got, err := a.receive(); err != nil || got.xid != xid || got.err != 0 {
				t.Errorf("answer %+v, %v, want xid %d", got, err, xid)
			}
		}
		must(t, a, 3, exists("/b"), 0)
		time.Sleep(2 * syncTime)
		must(t, a, 11, nil, 0)
		if e.Server(3).Zxid() != e.Server(1).Zxid() || e.Leader().ID() != 3 {
			t.Error("the ensemble has not come together again")
		}
	})
}

// TestDeposedLeader follows a leader that is cut off from its quorum.
func TestDeposedLeader(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a, w, b := on(t, e, "a", 3), on(t, e, "w", 3), on(t, e, "b", 1)
		must(t, a, 1, ephemeral("/a"), 0)
		time.Sleep(700 * time.Millisecond)
		e.Isolate(3)
		start := time.Now()
		must(t, a, 9, body("/a"), 0) // proves nothing, as nothing is in the log
		if _, err := w.send(1, create("/lost")); err != nil {
			t.Fatal(err)
		}
		if e.Leader() != nil || !e.Server(3).Leading() {
			t.Error("a leader without a quorum is one")
		}
		for time.Since(start) < syncTime-600*time.Millisecond {
			must(t, a, 11, nil, 0)
			must(t, a, 3, exists("/a"), 0)
			time.Sleep(200 * time.Millisecond)
		}
		dropped(t, a, time.Minute)
		if took := time.Since(start); took < syncTime || took > syncTime+oneTick {
			t.Errorf("deposed after %v, want between %v and a tick more", took, syncTime)
		}
		dropped(t, w, time.Minute)
		dropped(t, b, time.Minute)
		l, err := e.AwaitLeader(t.Context())
		if err != nil || l.ID() != 2 || l.Zxid()>>32 != 2 {
			t.Fatalf("leader %v, %v, zxid %#x", l, err, l.Zxid())
		}
		for _, ses := range l.Sessions() {
			if ses.ExpiresIn < ses.Timeout {
				t.Errorf("session %+v has not its full timeout", ses)
			}
		}
		if !turnedAway(t, e, 3) {
			t.Error("the deposed leader takes clients")
		}
		c := on(t, e, "c", 1)
		if a := must(t, c, 1, create("/c"), 0); a.zxid != 2<<32+2 {
			t.Errorf("zxid %#x, want the second of epoch 2", a.zxid)
		}
		e.Heal()
		time.Sleep(time.Second)
		if m := e.Server(3); m.Leading() || m.Zxid() != l.Zxid() {
			t.Errorf("the deposed leader is %v at %#x", m.Role(), m.Zxid())
		}
		for _, m := range []int{1, 3} {
			must(t, on(t, e, "d", m), 3, exists("/lost"), -101)
		}
	})
}

func TestNoQuorumNobodyServes(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a := on(t, e, "a", 3)
		e.Server(1).Stop()
		must(t, a, 1, create("/with-two"), 0)
		e.Server(2).Stop()
		if took := dropped(t, a, time.Minute); took > oneTick+10*time.Millisecond {
			t.Errorf("the leader has served %v without a quorum", took)
		}
		var refused *net.OpError
		if _, err := e.Client("b").DialContext(t.Context(), "tcp", "zk1:2181"); !errors.As(err, &refused) {
			t.Errorf("dial to a stopped member: %v", err)
		}
		time.Sleep(time.Hour)
		if !turnedAway(t, e, 3) || e.Leader() != nil || len(e.Server(3).Sessions()) != 1 {
			t.Error("a member serves, or sessions expire, without a quorum")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := e.AwaitLeader(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("AwaitLeader: %v", err)
		}
		e.Server(1).Resume()
		l, err := e.AwaitLeader(t.Context())
		if err != nil || l.ID() != 3 {
			t.Fatalf("leader %v, %v", l, err)
		}
		back := memoryConn(t, e.Client("a").To(1))
		if err := back.handshake(0, 30_000, a.session, a.password); err != nil {
			t.Errorf("the session has not outlived the outage: %v", err)
		}
		must(t, back, 3, exists("/with-two"), 0)
	})
}

func TestEnsembleChangesLeader(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a := on(t, e, "a", 2)
		must(t, a, 1, ephemeral("/a"), 0)
		e.SlowLog(10 * time.Second)
		if _, err := a.send(1, create("/in-the-log")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		if err := e.ChangeLeader(1); err != nil {
			t.Fatal(err)
		}
		dropped(t, a, time.Minute)
		l, err := e.AwaitLeader(t.Context())
		if err != nil || l.ID() != 1 || l.Zxid() != 2<<32 {
			t.Fatalf("leader %v, %v", l, err)
		}
		e.SlowLog(0)
		back := memoryConn(t, e.Client("a").To(3))
		if err := back.handshake(0, 30_000, a.session, a.password); err != nil {
			t.Fatal(err)
		}
		must(t, back, 3, exists("/in-the-log"), 0)
		must(t, back, 2, body("/a", int32(-1)), 0)
		e.Isolate(2)
		if err := e.Server(2).ChangeLeader(); err == nil {
			t.Error("a member that is cut off was made the leader")
		}
	})
}

// TestHealKeepsTheOrder lets two followers be cut off while both have news for
// the other. News sent now must not overtake news that waits.
func TestHealKeepsTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := zktest.NewEnsemble(t, 5, zktest.WithTick(oneTick), zktest.WithLatency(time.Microsecond, time.Millisecond))
		a, b, c := on(t, e, "a", 1), on(t, e, "b", 2), on(t, e, "c", 5)
		must(t, c, 1, create("/q"), 0)
		e.Isolate(1)
		e.Isolate(2)
		for range 3 {
			must(t, c, 1, sequentialAt("/q/s"), 0)
		}
		for _, w := range []*raw{a, b} {
			for range 2 {
				if _, err := w.send(1, sequentialAt("/q/s")); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := w.send(9, body("/q")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		e.Heal()
		for _, w := range []*raw{a, b} {
			for xid := int32(1); xid <= 3; xid++ {
				if got, err := w.receive(); err != nil || got.xid != xid || got.err != 0 {
					t.Errorf("answer %+v, %v, want xid %d", got, err, xid)
				}
			}
		}
		if len(e.Server(2).Children("/q")) != 7 {
			t.Errorf("children %v", e.Server(2).Children("/q"))
		}
		sameState(t, e)
	})
}

// TestExpiryToldBeforeItIsSeen replays hazard M6. The leader has ended a session
// and says so to the client that comes back. The member that the client comes
// back to still shows the session's node.
func TestExpiryToldBeforeItIsSeen(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a, b := on(t, e, "a", 1), on(t, e, "b", 2)
		must(t, a, 1, ephemeral("/a"), 0)
		e.Server(2).HoldCommits()
		e.Server(3).ExpireSession(a.session)
		dropped(t, a, time.Second)
		back := memoryConn(t, e.Client("a").To(2))
		if err := back.handshake(0, 30_000, a.session, a.password); !errors.Is(err, errRefused) {
			t.Errorf("coming back: %v, want the session expired", err)
		}
		must(t, b, 3, exists("/a"), 0)
		e.Server(2).ReleaseCommits()
		must(t, b, 3, exists("/a"), -101)
	})
}
