package simulation_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
	"github.com/docent-go/docent/zktest"
)

const (
	members       = 3
	enoughToBreak = 500 // schedules; two or three do it, from the seeds that tests begin with
)

// ensemble is three members, with the faults that only they have. Its tick is
// what the default lease policy assumes, and so is its syncLimit: the deadlines
// of holds are as late as they may be.
var ensemble = setting{
	test: "TestEnsembleSeed", start: startEnsemble, check: sim.Check, games: []game{mutexGame},
	tick: 2 * time.Second, timeout: anyTimeout,
}

// anyTimeout draws a timeout that the default lease policy accepts. Members tell
// each other of signs of life at multiples of half a tick, and sessions end at
// multiples of a tick. With whole seconds every session would live a second
// longer than it was promised. Short timeouts are drawn more often, as more of
// such sessions end in a schedule.
func anyTimeout(r *rand.Rand) time.Duration {
	return 4*time.Second + time.Duration(r.IntN(1+r.IntN(12_000)))*time.Millisecond
}

// trusting is an ensemble whose clients take any answer for a proof that their
// session lives.
var trusting = setting{
	test: "TestAnswersProveNothing", start: startEnsemble, check: sim.Check, games: []game{mutexGame},
	tick: ensemble.tick, timeout: anyTimeout,
	lease: client.LeasePolicy{Heartbeat: client.HeartbeatPings},
}

// hasty is an ensemble whose clients assume that signs of life reach the leader
// at once, and leave nothing for what they do not know.
var hasty = setting{
	test: "TestSignsOfLifeTakeTime", start: startEnsemble, check: sim.Check, games: []game{mutexGame},
	tick: ensemble.tick, timeout: anyTimeout,
	lease: client.LeasePolicy{TickTime: 1, SchedulingSlack: 1, SafetyMargin: 1},
}

// stretched is an ensemble whose clients send heartbeats as rarely as the lease allows.
var stretched = setting{
	test: "TestEnsembleStretchedSeed", start: startEnsemble, check: sim.Check, games: []game{mutexGame},
	tick: ensemble.tick, timeout: anyTimeout, lease: longestPeriod,
}

var longestPeriod = client.LeasePolicy{HeartbeatPeriod: time.Hour}

func startEnsemble(t *testing.T, opts ...zktest.Option) cluster {
	t.Helper()
	e := zktest.NewEnsemble(t, members, opts...)
	const all = "zk1:2181,zk2:2181,zk3:2181"
	c := cluster{
		hosts: []string{all, "zk1:2181", "zk2:2181", "zk3:2181"}, ensemble: e, menu: ensembleMenu, parting: partingMenu,
		link: func(client string) link { return e.Client(client) },
	}
	for i := range members {
		c.servers = append(c.servers, e.Server(i+1))
	}
	return c
}

// ensembleMenu adds the faults of an ensemble.
var ensembleMenu = append(slices.Clone(ofClients), membersMenu...)

// partingMenu has only what parts members from each other, or from clients.
var partingMenu = append(slices.Clone(membersMenu), []fault{
	isolate, isolate, isolate, isolateLeader, isolateLeader, deposeLeader, deposeLeader, deposeLeader,
	linked("partition", true, func(n *node) { n.link.Partition() }, func(n *node) { n.link.Heal() }),
	linked("partition replies of", true, func(n *node) { n.link.PartitionReplies() }, func(n *node) { n.link.Heal() }),
	linked("freeze", true, func(n *node) { n.link.Freeze() }, func(n *node) { n.link.Thaw() }),
}...)

var (
	isolate = member("isolate", func(e *zktest.Ensemble, m *zktest.Member) { e.Isolate(m.ID()) },
		func(e *zktest.Ensemble, _ *zktest.Member) { e.Heal() })
	isolateLeader = leader("isolate leader", func(e *zktest.Ensemble, m *zktest.Member) { e.Isolate(m.ID()) },
		func(e *zktest.Ensemble, _ *zktest.Member) { e.Heal() })
	deposeLeader = leader("depose", depose, func(e *zktest.Ensemble, _ *zktest.Member) { e.Heal() })
)

// membersMenu are the faults of members and of the ways between them.
var membersMenu = []fault{
	linked("partition requests of", true, func(n *node) { n.link.PartitionRequests() }, func(n *node) { n.link.Heal() }),
	isolate, isolateLeader, deposeLeader, deposeLeader,
	member("mute", func(e *zktest.Ensemble, m *zktest.Member) { e.CutOneWay(m.ID(), 1+m.ID()%members) },
		func(e *zktest.Ensemble, _ *zktest.Member) { e.Heal() }),
	member("deafen", func(e *zktest.Ensemble, m *zktest.Member) { e.CutOneWay(1+m.ID()%members, m.ID()) },
		func(e *zktest.Ensemble, _ *zktest.Member) { e.Heal() }),
	member("halt", func(_ *zktest.Ensemble, m *zktest.Member) { m.Halt() },
		func(_ *zktest.Ensemble, m *zktest.Member) { m.Continue() }),
	leader("halt leader", func(_ *zktest.Ensemble, m *zktest.Member) { m.Halt() },
		func(_ *zktest.Ensemble, m *zktest.Member) { m.Continue() }),
	member("lag", func(_ *zktest.Ensemble, m *zktest.Member) { m.Lag(900 * time.Millisecond) },
		func(_ *zktest.Ensemble, m *zktest.Member) { m.Lag(0) }),
	member("hold commits of", func(_ *zktest.Ensemble, m *zktest.Member) { m.HoldCommits() },
		func(_ *zktest.Ensemble, m *zktest.Member) { m.ReleaseCommits() }),
	member("stop", func(_ *zktest.Ensemble, m *zktest.Member) { m.Stop() },
		func(_ *zktest.Ensemble, m *zktest.Member) { m.Resume() }),
	member("elect", func(_ *zktest.Ensemble, m *zktest.Member) { _ = m.ChangeLeader() }, // it may not be able to lead
		func(*zktest.Ensemble, *zktest.Member) {}),
}

// depose cuts a leader off and lets the others elect another at once, while it
// goes on serving.
func depose(e *zktest.Ensemble, old *zktest.Member) {
	e.Isolate(old.ID())
	for i := 1; i <= members; i++ {
		if m := e.Server(i); m != old {
			m.Stop()
			m.Resume()
		}
	}
}

// member is a fault of a member that the plan draws, or of one that serves the
// first contender of a lock then.
func member(name string, do, undo func(*zktest.Ensemble, *zktest.Member)) fault {
	return fault{name, func(p *plan, w *world, _ *node, at, to time.Duration) {
		m := w.ensemble.Server(1 + p.r.IntN(members))
		what := name + " " + m.Host()
		var l *resource
		if p.r.IntN(4) > 0 {
			l = w.locks[p.r.IntN(len(w.locks))]
			what = name + " that serves the first of " + l.path
		}
		p.during(at, to, what, func() {
			if l != nil {
				m = w.serving(l, m)
			}
			do(w.ensemble, m)
		}, func() { undo(w.ensemble, m) })
	}}
}

// serving returns the member that the first contender of a lock is connected
// to, or another if there is none.
func (w *world) serving(l *resource, otherwise *zktest.Member) *zktest.Member {
	first := w.h.First(l.path)
	for i := 1; i <= members; i++ {
		for _, s := range w.ensemble.Server(i).Sessions() {
			if first != 0 && s.ID == first && s.Connected {
				return w.ensemble.Server(i)
			}
		}
	}
	return otherwise
}

// leader is a fault of the member that leads then, if there is one.
func leader(name string, do, undo func(*zktest.Ensemble, *zktest.Member)) fault {
	return fault{name, func(p *plan, w *world, _ *node, at, to time.Duration) {
		var struck *zktest.Member
		p.during(at, to, name, func() {
			if struck = w.ensemble.Leader(); struck != nil {
				do(w.ensemble, struck)
			}
		}, func() {
			if struck != nil {
				undo(w.ensemble, struck)
			}
		})
	}}
}

// TestEnsembleSchedules plays many seeds on an ensemble.
func TestEnsembleSchedules(t *testing.T) {
	t.Parallel()
	count := number(t, ensembleSeedsEnv, ensembleSchedules)
	if sum := playMany(t, ensemble, count); !t.Failed() {
		sum.wantAtLeast(t, int(count))
	}
}

// TestEnsembleSeed plays one schedule on an ensemble and prints what happened
// in it.
func TestEnsembleSeed(t *testing.T) {
	t.Parallel()
	playOne(t, ensemble)
}

// TestEnsembleStretchedSchedules plays fewer seeds with the longest period of heartbeats,
// which changes what a hold survives, and nothing of what it promises.
func TestEnsembleStretchedSchedules(t *testing.T) {
	t.Parallel()
	const part, least = 4, 28 // fewer do not meet every trouble
	count := max(number(t, ensembleSeedsEnv, ensembleSchedules)/part, least)
	if sum := playMany(t, stretched, count); !t.Failed() {
		sum.wantAtLeast(t, int(count))
	}
}

// TestEnsembleStretchedSeed plays one of these schedules.
func TestEnsembleStretchedSeed(t *testing.T) {
	t.Parallel()
	playOne(t, stretched)
}

// TestAnswersProveNothing checks that the faults of an ensemble are bad enough. A
// lease that believes in answers breaks the promise of one holder. It breaks
// nothing that a fenced resource relies on.
func TestAnswersProveNothing(t *testing.T) {
	t.Parallel()
	wantBroken(t, trusting, sim.ErrOverlap, 11)
}

// TestSignsOfLifeTakeTime checks that the clocks of an ensemble are sharp enough.
// A lease may take a committed write for a sign of life which the leader has.
// Such a lease names deadlines that are not kept.
func TestSignsOfLifeTakeTime(t *testing.T) {
	t.Parallel()
	wantBroken(t, hasty, sim.ErrDeadline, 157)
}

// wantBroken plays schedules until one breaks a promise. No schedule may break
// what holds whatever clients believe.
func wantBroken(t *testing.T, k setting, promise error, first uint64) {
	t.Helper()
	first = number(t, seedEnv, first)
	for seed := first; seed < first+enoughToBreak; seed++ {
		r := runOn(t, seed, k)
		for _, err := range sim.CheckFenced(r.history) {
			t.Errorf("seed %d: %v", seed, err)
		}
		if i := slices.IndexFunc(r.broken, func(err error) bool { return errors.Is(err, promise) }); i >= 0 {
			t.Logf("seed %d: %v", seed, r.broken[i])
			return
		}
	}
	t.Errorf("no schedule breaks it: %v", promise)
}

// healEnsemble ends every fault of members and waits for a leader. Without a
// leader an operator can do nothing.
func (w *world) healEnsemble() {
	w.ensemble.Heal()
	for i := 1; i <= members; i++ {
		m := w.ensemble.Server(i)
		m.Continue()
		m.Lag(0)
		m.ReleaseCommits()
	}
	if _, err := w.ensemble.AwaitLeader(w.ctx); err != nil {
		w.leave(sim.ResidueClose, "no leader: "+err.Error())
	}
}
