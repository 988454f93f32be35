package zkserver_test

import (
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// TestSessionMoves attaches a session to another member and checks what the
// connection it had can still do.
func TestSessionMoves(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a := on(t, e, "a", 1)
		must(t, a, 1, ephemeral("/a"), 0)
		back := memoryConn(t, e.Client("a").To(2))
		wrong := append([]byte{a.password[0] + 1}, a.password[1:]...)
		if err := back.handshake(0, 30_000, a.session, wrong); !errors.Is(err, errRefused) {
			t.Errorf("wrong password: %v", err)
		}
		back = memoryConn(t, e.Client("a").To(2))
		if err := back.handshake(0, 30_000, a.session, a.password); err != nil {
			t.Fatal(err)
		}
		// The old member knows nothing of it until something asks the leader.
		must(t, a, 11, nil, 0)
		must(t, a, 3, exists("/a"), 0)
		if _, _, err := a.call(1, create("/late")); kindOfError(err) != "closed" {
			t.Errorf("late write over the old connection: %v, want it closed", err)
		}
		must(t, back, 3, exists("/late"), -101)
		must(t, back, 2, body("/a", int32(-1)), 0)

		// On the leader a read is enough to find out, and a second
		// connection to one member ends the first at once.
		third := memoryConn(t, e.Client("a").To(3))
		if err := third.handshake(0, 30_000, a.session, a.password); err != nil {
			t.Fatal(err)
		}
		again := memoryConn(t, e.Client("a").To(3))
		if err := again.handshake(0, 30_000, a.session, a.password); err != nil {
			t.Fatal(err)
		}
		if took := dropped(t, third, time.Minute); took > 10*time.Millisecond {
			t.Errorf("the older connection to the same member went on for %v", took)
		}
		home := memoryConn(t, e.Client("a").To(1))
		if err := home.handshake(0, 30_000, a.session, a.password); err != nil {
			t.Fatal(err)
		}
		if _, _, err := again.call(3, exists("/a")); kindOfError(err) != "closed" {
			t.Errorf("late read over the old connection to the leader: %v, want it closed", err)
		}
		if !e.Server(2).ExpireSession(a.session) || e.Server(2).ExpireSession(a.session) {
			t.Error("ExpireSession does not say whether there was a session")
		}
		for _, c := range []*raw{home, back} {
			dropped(t, c, time.Second)
		}
	})
}

// TestTouchesTravelWithPings checks that a follower's clients are alive for the
// leader only as of the follower's last answer to a ping.
func TestTouchesTravelWithPings(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		c := memoryConn(t, e.Client("a").To(1))
		if err := c.handshake(0, 4000, 0, nil16()); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			time.Sleep(2500 * time.Millisecond)
			must(t, c, 11, nil, 0)
		}
		e.Cut(1, 3)
		start := time.Now()
		for len(e.Server(3).Sessions()) > 0 && time.Since(start) < time.Minute {
			must(t, c, 11, nil, 0)
			time.Sleep(100 * time.Millisecond)
		}
		// The last ping was on its way to the leader when the cut came.
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("expired after %v: the cut has let signs of life pass", took)
		}
		if len(e.Server(1).Sessions()) != 1 {
			t.Error("the follower knows of the expiry")
		}
		e.Heal()
		dropped(t, c, time.Second)
	})
}

// TestCrashedMemberCatchesUp crashes a follower that loses what it had logged.
func TestCrashedMemberCatchesUp(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		b := on(t, e, "b", 2)
		must(t, b, 1, create("/q"), 0)
		for range 3 {
			must(t, b, 1, sequentialAt("/q/s"), 0)
		}
		m := e.Server(1)
		m.Crash(2)
		if got := len(m.Children("/q")); got != 1 {
			t.Errorf("%d children after two transactions were lost, want 1", got)
		}
		must(t, b, 1, sequentialAt("/q/s"), 0)
		m.Resume()
		if !turnedAway(t, e, 1) {
			t.Error("the member serves before it has caught up")
		}
		time.Sleep(time.Second)
		if len(m.Children("/q")) != 4 || m.Zxid() != e.Leader().Zxid() || len(m.Sessions()) != 1 {
			t.Errorf("not caught up:\n%s", m.Dump())
		}
		must(t, on(t, e, "c", 1), 1, sequentialAt("/q/s"), 0)
		m.Crash(1 << 20)
		if len(m.Tree()) != 1 || len(m.Sessions()) != 0 {
			t.Errorf("a member that has lost everything has\n%s", m.Dump())
		}
		m.Resume()
		time.Sleep(time.Second)
		if len(m.Children("/q")) != 5 {
			t.Errorf("not caught up:\n%s", m.Dump())
		}
	})
}

// TestCrashOfAMajorityLosesWrites crashes members that do not wait for their
// disks. The quorum forgets a write that was answered. The member that still has
// the write must forget it too.
func TestCrashOfAMajorityLosesWrites(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		b := on(t, e, "b", 1)
		must(t, b, 1, create("/kept"), 0)
		must(t, b, 1, create("/gone"), 0)
		e.Server(3).Stop()
		e.Server(2).Crash(1)
		e.Server(1).Crash(1)
		e.Server(1).Resume()
		e.Server(2).Resume()
		if l, err := e.AwaitLeader(t.Context()); err != nil || l.ID() != 2 {
			t.Fatalf("leader %v, %v", l, err)
		}
		must(t, on(t, e, "c", 1), 1, create("/new"), 0)
		e.Server(3).Resume()
		time.Sleep(time.Second)
		d := on(t, e, "d", 3)
		must(t, d, 3, exists("/gone"), -101)
		must(t, d, 3, exists("/kept"), 0)
		must(t, d, 3, exists("/new"), 0)
	})
}

// TestProposalsOutliveTheLeader checks both fates of a write whose leader dies
// before it is committed. A write that other members have logged happens; a write
// that only the leader has does not.
func TestProposalsOutliveTheLeader(t *testing.T) {
	t.Parallel()
	for _, logged := range []bool{true, false} {
		ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
			a := on(t, e, "a", 3)
			e.SlowLog(time.Second)
			if !logged {
				e.Isolate(3)
			}
			if _, err := a.send(1, create("/maybe")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			e.Server(3).Stop()
			dropped(t, a, time.Second)
			if l, err := e.AwaitLeader(t.Context()); err != nil || l.ID() != 2 {
				t.Fatalf("leader %v, %v", l, err)
			}
			if _, ok := e.Server(1).Node("/maybe"); ok != logged {
				t.Errorf("logged by others: %v, happened: %v", logged, ok)
			}
			e.Heal()
			e.Server(3).Resume()
			time.Sleep(time.Second)
			if _, ok := e.Server(3).Node("/maybe"); ok != logged {
				t.Errorf("on the old leader, logged by others: %v, happened: %v", logged, ok)
			}
		})
	}
}

// TestDropLogOnEveryMember loses uncommitted writes and goes on.
func TestDropLogOnEveryMember(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a, l := on(t, e, "a", 1), e.Leader()
		l.HoldLog()
		if _, err := a.send(1, create("/lost")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		if n := l.DropLog(); n != 1 {
			t.Errorf("DropLog = %d, want 1", n)
		}
		dropped(t, a, time.Second)
		l.ReleaseLog()
		must(t, on(t, e, "b", 2), 1, create("/lost"), 0)
		for i := 1; i <= e.Size(); i++ {
			if _, ok := e.Server(i).Node("/lost"); !ok {
				t.Errorf("member %d does not follow", i)
			}
		}
	})
}

func TestEnsemblePresets(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		m := e.Server(1)
		if err := m.Create("/q", nil); err != nil {
			t.Fatal(err)
		}
		if err := m.SetCounter("/q", 41); err != nil {
			t.Fatal(err)
		}
		if err := m.SetVersion("/q", 7); err != nil {
			t.Fatal(err)
		}
		if err := m.SetZxid(1<<32 + 0x100); err != nil || m.SetZxid(1) == nil || m.SetCounter("/none", 1) == nil {
			t.Errorf("SetZxid: %v, or impossible presets are accepted", err)
		}
		c := on(t, e, "a", 2)
		a := must(t, c, 1, sequentialAt("/q/s"), 0)
		if pathOf(a) != "/q/s0000000041" || a.zxid != 1<<32+0x102 {
			t.Errorf("created %s at %#x", pathOf(a), a.zxid)
		}
		e.Server(2).Crash(1 << 20)
		e.Server(2).Resume()
		time.Sleep(time.Second)
		for i := 1; i <= e.Size(); i++ {
			if n, _ := e.Server(i).Node("/q"); n.Counter != 42 || n.Stat.Version != 7 {
				t.Errorf("member %d has %+v", i, n)
			}
		}
		e.Isolate(1)
		var op *zktest.OpError
		for _, err := range []error{m.Create("/x", nil), m.SetCounter("/q", 1), m.SetZxid(1 << 40)} {
			if !errors.As(err, &op) || op.Code != zktest.CodeConnectionLoss {
				t.Errorf("on a member that is cut off: %v", err)
			}
		}
		if m.ExpireSession(c.session) {
			t.Error("a member that is cut off has expired a session")
		}
	})
}
