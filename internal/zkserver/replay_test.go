package zkserver_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/zktest"
)

// connectTo opens a session of go-zookeeper through the given members, or all.
func connectTo(t *testing.T, link *zktest.EnsembleLink, timeout time.Duration, servers ...string) *zk.Conn {
	t.Helper()
	if len(servers) == 0 {
		servers = link.Servers()
	}
	c, _ := connectThrough(t, link, servers, timeout)
	return c
}

// The ensemble of the measured runs: a tick of 2 s, a sync limit of 5 ticks,
// sessions of 4 s.
const (
	measuredTick    = 2 * time.Second
	measuredSession = 4 * time.Second
)

// contend makes a hold the lock and b wait for it.
func contend(t *testing.T, a, b *zk.Conn) (gone <-chan zk.Event) {
	t.Helper()
	if _, err := a.Create("/lock", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*zk.Conn{a, b} {
		if _, err := c.Create("/lock/n", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	_, _, gone, err := b.GetW("/lock/n0000000000")
	if err != nil {
		t.Fatal(err)
	}
	return gone
}

// readOwn reads a's own node until that fails, and returns the time of the last success.
func readOwn(a *zk.Conn) time.Time {
	var last time.Time
	for {
		_, st, err := a.Get("/lock/n0000000000")
		if err != nil || st.EphemeralOwner != a.SessionID() {
			return last
		}
		last = time.Now()
		time.Sleep(50 * time.Millisecond)
	}
}

// granted waits for the event and for the proof that b is first now.
func granted(t *testing.T, b *zk.Conn, gone <-chan zk.Event) time.Time {
	t.Helper()
	if ev := <-gone; ev.Type != zk.EventNodeDeleted {
		t.Fatalf("event %+v, want a deletion", ev)
	}
	at := time.Now()
	kids, _, err := b.Children("/lock")
	if err != nil || len(kids) != 1 {
		t.Fatalf("children %v, %v, want b's own node", kids, err)
	}
	return at
}

// TestR1PartitionedFollower replays run r1. A client of a follower that has lost
// its leader goes on reading its own lock node, for seconds after another client
// got the lock.
func TestR1PartitionedFollower(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a := connectTo(t, e.Client("a"), measuredSession, "zk1:2181")
		b := connectTo(t, e.Client("b"), measuredSession, "zk3:2181")
		gone := contend(t, a, b)
		time.Sleep(3300 * time.Millisecond)
		e.Isolate(1)
		cut := time.Now()
		got := make(chan time.Time, 1)
		go func() { got <- granted(t, b, gone) }()
		last, grant := readOwn(a), <-got
		t.Logf("b granted after %v, a reads its own node until %v", grant.Sub(cut), last.Sub(cut))
		if d := grant.Sub(cut); d < measuredSession/2 || d > measuredSession+measuredTick {
			t.Errorf("b got the lock %v after the cut", d)
		}
		if d := last.Sub(cut); d < 9*time.Second || d > 10*time.Second {
			t.Errorf("a has read its own node for %v, want until the sync limit of 10 s", d)
		}
		if both := last.Sub(grant); both < 3*time.Second {
			t.Errorf("both held for %v: the fault is not there", both)
		}
	}, zktest.WithTick(measuredTick))
}

// TestR13DeposedLeader replays run r13. The leader is cut off, its followers are
// restarted and elect another. The new leader expires a's session, while a goes
// on reading its own node from the deposed leader.
func TestR13DeposedLeader(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a := connectTo(t, e.Client("a"), measuredSession, "zk3:2181")
		b := connectTo(t, e.Client("b"), measuredSession, "zk1:2181", "zk2:2181")
		gone := contend(t, a, b)
		time.Sleep(3300 * time.Millisecond)
		e.Isolate(3)
		cut := time.Now()
		for _, i := range []int{1, 2} {
			e.Server(i).Stop()
			e.Server(i).Resume()
		}
		got := make(chan time.Time, 1)
		go func() { got <- granted(t, b, gone) }()
		last, grant := readOwn(a), <-got
		t.Logf("b granted after %v, a reads its own node until %v", grant.Sub(cut), last.Sub(cut))
		if d := grant.Sub(cut); d < measuredSession || d > measuredSession+measuredTick+time.Second {
			t.Errorf("b got the lock %v after the cut", d)
		}
		if d := last.Sub(cut); d < 9900*time.Millisecond || d > 12*time.Second {
			t.Errorf("a has read its own node for %v, want until the leader counts its followers", d)
		}
		if both := last.Sub(grant); both < 3*time.Second {
			t.Errorf("both held for %v: the fault is not there", both)
		}
	}, zktest.WithTick(measuredTick))
}

// TestR13SafeWhenFollowersTimeOut is the other half of run r13: if the
// followers have to time out themselves, a is gone before b gets the lock.
func TestR13SafeWhenFollowersTimeOut(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a := connectTo(t, e.Client("a"), measuredSession, "zk3:2181")
		b := connectTo(t, e.Client("b"), measuredSession, "zk1:2181", "zk2:2181")
		gone := contend(t, a, b)
		e.Isolate(3)
		cut := time.Now()
		got := make(chan time.Time, 1)
		go func() { got <- granted(t, b, gone) }()
		last, grant := readOwn(a), <-got
		if d := grant.Sub(cut); d < 14*time.Second || d > 17*time.Second || !last.Before(grant) {
			t.Errorf("b got the lock after %v, a read its node until %v", d, last.Sub(cut))
		}
	}, zktest.WithTick(measuredTick))
}
