package simulation_test

import (
	"slices"
	"testing"
	"time"

	sim "github.com/docent-go/docent/recipes/internal/simulation"
	"github.com/docent-go/docent/zktest"
)

// keeper is a server that behaves as ClickHouse Keeper without containers. A
// client that comes back is given a new session. A stop ends the sessions of the
// connected clients, and a request that the server does not know costs the
// connection.
var keeper = setting{
	test: "TestKeeperSeed", start: startKeeper, check: sim.Check, games: []game{mutexGame},
	tick: alone.tick, timeout: alone.timeout,
}

var gamesKeeper = keeper.of("TestKeeperGameSeed", games)

// unrecognised is the same server without the node by which clients recognise it.
var unrecognised = setting{
	test: "TestUnrecognisedKeeper", start: startUnrecognised, check: sim.Check, games: []game{mutexGame},
	tick: alone.tick, timeout: alone.timeout,
}

func startKeeper(t *testing.T, opts ...zktest.Option) cluster {
	t.Helper()
	return keeperCluster(startAlone(t, append(opts,
		zktest.WithProfile(zktest.ClickHouseKeeper), zktest.WithoutOps(zktest.OpCreateContainer))...))
}

func startUnrecognised(t *testing.T, opts ...zktest.Option) cluster {
	t.Helper()
	return keeperCluster(startAlone(t, append(opts,
		zktest.WithQuirks(zktest.QuirkNoReattach, zktest.QuirkCloseOnStop, zktest.QuirkCloseOnUnknown))...))
}

// keeperCluster has the faults of Keeper in one menu, and its stops in another. A
// client that hears nothing while the server stops does not hear that its session
// is over. Only the token helps then: docs/servers.md says so. So no fault comes
// with the stops that silences a connection without closing it.
func keeperCluster(c cluster) cluster {
	c.menu = slices.DeleteFunc(slices.Clone(aloneMenu), func(f fault) bool { return f.name == "restart" || f.name == "move" })
	silent := []string{
		"stall reply", "delay", "delay reply", "partition", "partition replies of", "freeze", "pause", "slow link of",
		"partition of all", "frozen server", "hung handshakes", "slow log", "late events",
	}
	c.parting = slices.DeleteFunc(slices.Clone(c.menu), func(f fault) bool { return slices.Contains(silent, f.name) })
	for range 4 {
		c.parting = append(c.parting, fault{"graceful stop", gracefulStop})
	}
	return c
}

// gracefulStop stops the server, which ends the sessions of its clients, for a while.
func gracefulStop(p *plan, w *world, _ *node, at, to time.Duration) {
	p.cutOff("", at, to)
	p.during(at, to, "graceful stop", func() {
		now := w.now()
		w.h.Note(func() { w.h.Stops = append(w.h.Stops, sim.Stop{At: now, Heard: now + 2*latencyHi}) })
		w.alone.Stop()
	}, func() { w.alone.Resume() })
}

// TestKeeperSchedules plays many seeds of mutexes on ClickHouse Keeper.
func TestKeeperSchedules(t *testing.T) {
	t.Parallel()
	count := number(t, keeperSeedsEnv, keeperSchedules)
	if sum := playMany(t, keeper, count); !t.Failed() {
		sum.wantKeeper(t, int(count))
	}
}

// TestKeeperGameSchedules plays the other kinds of locks there.
func TestKeeperGameSchedules(t *testing.T) {
	t.Parallel()
	count := number(t, keeperSeedsEnv, keeperSchedules) / 2
	if sum := playMany(t, gamesKeeper, count); !t.Failed() {
		sum.wantKeeper(t, int(count))
	}
}

// TestKeeperSeed plays one schedule and prints what happened in it.
func TestKeeperSeed(t *testing.T) {
	t.Parallel()
	playOne(t, keeper)
}

// TestKeeperGameSeed plays one schedule and prints what happened in it.
func TestKeeperGameSeed(t *testing.T) {
	t.Parallel()
	playOne(t, gamesKeeper)
}

// TestUnrecognisedKeeper checks that the schedules are bad enough: clients that take
// a Keeper for a ZooKeeper believe in locks that others have got.
func TestUnrecognisedKeeper(t *testing.T) {
	t.Parallel()
	wantBroken(t, unrecognised, sim.ErrOverlap, 1)
}

// wantKeeper asks for contention, and for the trouble of Keeper: every disconnection
// costs a session there.
func (t *totals) wantKeeper(tb testing.TB, schedules int) {
	tb.Helper()
	per := atLeast(tb, schedules)
	per("grants", t.Grants, 20)
	per("waits for others", t.Waits, 6)
	per("lost sessions", t.SessionsLost, 2)
	per("lost holds", t.HoldsLost, 0.3)
}
