// Package lease_test looks, on real ensembles, at the promise that a holder hears
// that it lost its lock before another client can get it.
//
// Every test prints a table: for each fault and session timeout by how much
// the holder was told before the next one held.
package lease_test

import (
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
)

const (
	byWrites = ", heartbeat by writes"
	byPings  = ", heartbeat by pings"
)

// trusting is the policy that takes pings for proof.
var trusting = client.LeasePolicy{Heartbeat: client.HeartbeatPings}

// both are holders and leaders with the default policy, and one holder for each timeout
// that trusts pings, which shows that the fault is one.
func both(fault, servers string, holders int) []side {
	return []side{
		{fault + byWrites, servers, client.LeasePolicy{}, holders, false},
		{fault + ", leaders", servers, client.LeasePolicy{}, holders, true},
		{fault + byPings, servers, trusting, 1, false},
	}
}

func addrs(nodes ...*harness.Node) string {
	all := make([]string, 0, len(nodes))
	for _, n := range nodes {
		all = append(all, n.Addr())
	}
	return strings.Join(all, ",")
}

// Run r1 of reliability: the holders' follower is cut off from the leader and
// goes on serving them; the waiters are at the leader.
func TestPartitionedFollower(t *testing.T) {
	t.Parallel()
	const fault = "partitioned follower"
	x := extentOf()
	w := newWorld(t, 15*time.Minute)
	var seen table
	for range x.rounds {
		leader, followers := w.ready()
		waiter, done := w.connect(leader.Addr(), 20*tick)
		all := w.duels(waiter, x.timeouts, both(fault, followers[0].Addr(), x.holders)...)
		w.age(all)
		w.check(followers[0].Partition(w.ctx))
		w.judge(&seen, all)
		w.healed()
		over(all)
		done()
	}
	seen.safe(w, fault+byPings)
}

// Run r13: the holders' leader is cut off from its followers. These are killed
// and started again, so that they need not miss the leader before they elect
// another. If they are slow to start, as on a busy machine, the leader is gone
// before a holder is deceived. Then there are more rounds.
func TestDeposedLeader(t *testing.T) {
	t.Parallel()
	const fault = "deposed leader"
	w := newWorld(t, 18*time.Minute)
	x := extentOf()
	var seen table
	for n := 0; n < x.rounds || n < x.rounds+3 && seen.deceived(fault+byPings) == 0; n++ {
		leader, followers := w.ready()
		waiter, done := w.connect(addrs(followers...), 20*tick)
		all := w.duels(waiter, x.timeouts, both(fault, leader.Addr(), x.holders)...)
		w.age(all)
		w.check(leader.Partition(w.ctx))
		w.restart(followers)
		w.judge(&seen, all)
		w.healed()
		over(all)
		done()
	}
	seen.safe(w, fault+byPings)
}

func (w *world) restart(nodes []*harness.Node) {
	w.Helper()
	w.together(len(nodes), func(i int) {
		w.check(nodes[i].Kill(w.ctx))
		w.check(nodes[i].Start(w.ctx))
	})
}

// The leader is cut off, and its followers miss it by themselves. They take as
// long as it does itself, so that even pings are no worse than the margin.
func TestLeaderCutOff(t *testing.T) {
	t.Parallel()
	const fault = "leader cut off"
	w := newWorld(t, 15*time.Minute)
	x := extentOf()
	var seen table
	for range x.others() {
		leader, followers := w.ready()
		waiter, done := w.connect(addrs(followers...), 20*tick)
		all := w.duels(waiter, x.timeouts, side{fault, leader.Addr(), client.LeasePolicy{}, x.holders, false})
		w.age(all)
		w.check(leader.Partition(w.ctx))
		w.judge(&seen, all)
		w.healed()
		over(all)
		done()
	}
	seen.safe(w)
}
