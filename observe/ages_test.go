package observe_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
)

// seconds are the values in seconds that a sink is told when it asks.
func (l *ledger) seconds(metric string, labels map[string]string) int64 {
	for _, ask := range l.asked {
		ask()
	}
	return l.total(metric, labels) / 1e9
}

// The oldest wait and the oldest hold of each lock are told, whatever order they end in.
func TestAges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		o := observe.NewMeasures(l, observe.Path).Observer()
		begin := func(path string) client.LockHooks {
			_, hooks := o.Lock(t.Context(), client.LockInfo{Recipe: "InterProcessMutex", Mode: "exclusive", Path: path})
			return hooks
		}
		want := func(path string, wait, hold int64) {
			t.Helper()
			of := map[string]string{"docent.lock.name": path}
			if w, h := l.seconds(observe.WaitAge, of), l.seconds(observe.HoldAge, of); w != wait || h != hold {
				t.Errorf("%s: the oldest wait is %d s old, the oldest hold %d s, want %d and %d", path, w, h, wait, hold)
			}
		}
		first := begin("/a")
		time.Sleep(10 * time.Second)
		second, third := begin("/a"), begin("/b")
		time.Sleep(time.Second)
		want("/a", 11, 0)
		want("/b", 1, 0)
		first.Acquired(client.AcquireResult{Outcome: client.AcquireDone})
		first.Held(t.Context(), client.HoldInfo{})
		time.Sleep(time.Second)
		want("/a", 2, 1)
		second.Acquired(client.AcquireResult{Outcome: client.AcquireDone})
		second.Held(t.Context(), client.HoldInfo{})
		third.Acquired(client.AcquireResult{Outcome: client.AcquireTimeout})
		time.Sleep(5 * time.Second)
		want("/a", 0, 6)
		want("/b", 0, 0)
		first.Ended(client.HoldResult{})
		want("/a", 0, 5)
		second.Ended(client.HoldResult{})
		want("/a", 0, 0)
	})
}

// The shortest timeout of all sessions is told, and for how long a cache is not synced.
func TestTimeoutsAndSnapshots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := observe.NewMeasures(l, nil)
		a, b := m.Observer(), m.Observer()
		want := func(metric string, seconds int64) {
			t.Helper()
			if got := l.seconds(metric, nil); got != seconds {
				t.Errorf("%s is %d s, want %d", metric, got, seconds)
			}
		}
		want(observe.SessionTimeout, 0)
		a.StateChange(client.StateChange{State: client.Connected, SessionTimeout: 30 * time.Second})
		want(observe.SessionTimeout, 30)
		b.StateChange(client.StateChange{State: client.Connected, SessionTimeout: 4 * time.Second})
		b.StateChange(client.StateChange{State: client.Suspended, SessionTimeout: 4 * time.Second})
		want(observe.SessionTimeout, 4)
		b.StateChange(client.StateChange{State: client.Lost})
		want(observe.SessionTimeout, 30)
		a.StateChange(client.StateChange{State: client.Closed})
		want(observe.SessionTimeout, 0)

		tell, other := a.Cache(client.CacheInfo{Recipe: "Tree"}), a.Cache(client.CacheInfo{Recipe: "Tree"})
		tell(client.CacheUpdate{State: client.CacheSyncing})
		other(client.CacheUpdate{State: client.CacheSynced})
		time.Sleep(3 * time.Second)
		want(observe.CacheAge, 3)
		tell(client.CacheUpdate{State: client.CacheSynced})
		want(observe.CacheAge, 0)
		tell(client.CacheUpdate{State: client.CacheStale})
		time.Sleep(7 * time.Second)
		tell(client.CacheUpdate{State: client.CacheStale, Err: errors.New("still")})
		want(observe.CacheAge, 7)
		tell(client.CacheUpdate{State: client.CacheEnded})
		want(observe.CacheAge, 0)

		node := a.Node(client.NodeInfo{Recipe: "GroupMember", Path: "/w/1"})
		stands := func(state string) int64 { return l.total(observe.Nodes, map[string]string{"docent.node.state": state}) }
		node(client.NodeUpdate{State: client.NodeRefused, Err: client.ErrNoAuth})
		if stands("refused") != 1 || l.total(observe.NodeFailures, map[string]string{"error.type": "NOAUTH"}) != 1 {
			t.Error("a node that is refused is not told")
		}
		node(client.NodeUpdate{State: client.NodeStands})
		if stands("refused") != 0 || stands("stands") != 1 {
			t.Error("a node that stands is not told")
		}
		node(client.NodeUpdate{State: client.NodeEnded})
		if stands("stands") != 0 {
			t.Error("a node that has ended stands")
		}

		directory, another := a.Service(client.ServiceInfo{Service: "orders", Path: "/s/orders"}), a.Service(client.ServiceInfo{Service: "orders", Path: "/s/orders"})
		counts := func(offered, disabled, skipped int64) {
			t.Helper()
			for state, want := range map[string]int64{"offered": offered, "disabled": disabled, "skipped": skipped} {
				if got := l.total(observe.ServiceInstances, map[string]string{"docent.service.state": state}); got != want {
					t.Errorf("%d %s instances, want %d", got, state, want)
				}
			}
		}
		directory(client.ServiceUpdate{Offered: 5, Disabled: 2, Skipped: 1})
		another(client.ServiceUpdate{Offered: 1})
		counts(6, 2, 1)
		directory(client.ServiceUpdate{Offered: 3, Skipped: 4})
		counts(4, 0, 4)
		directory(client.ServiceUpdate{Offered: 3, Skipped: 4, Ended: true})
		counts(1, 0, 0)
	})
}

// The time without a connection is that of the client that has lacked one for longest. A lost
// session does not begin it anew, and a closed client counts no more.
func TestDisconnected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := observe.NewMeasures(l, nil)
		a, b := m.Observer().StateChange, m.Observer().StateChange
		for _, step := range []struct {
			tell  func(client.StateChange)
			state client.State
			want  int64 // a second later
		}{
			{a, client.Connecting, 1},
			{b, client.Connecting, 2},
			{a, client.Connected, 2},
			{b, client.Connected, 0},
			{a, client.Suspended, 1},
			{b, client.Suspended, 2},
			{a, client.Lost, 3},
			{a, client.Connected, 3},
			{a, client.Suspended, 4},
			{b, client.Closed, 2},
			{a, client.Closed, 0},
		} {
			step.tell(client.StateChange{State: step.state})
			time.Sleep(time.Second)
			if got := l.seconds(observe.DisconnectedAge, nil); got != step.want {
				t.Errorf("a second after %v the age is %d s, want %d", step.state, got, step.want)
			}
		}
	})
}
