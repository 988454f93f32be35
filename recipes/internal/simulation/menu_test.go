package simulation_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	sim "github.com/docent-go/docent/recipes/internal/simulation"
	"github.com/docent-go/docent/zktest"
)

// A plan is drawn from a menu of faults; what stands twice comes twice as
// often.

// ofClients are the faults that strike clients, and what operators do.
var ofClients = []fault{
	ruled("drop before", func(_ *world, s server, m zktest.Match) *zktest.Rule { return s.DropBefore(m) }),
	ruled("lose reply", func(_ *world, s server, m zktest.Match) *zktest.Rule { return s.LoseReply(m) }),
	ruled("lose reply", func(_ *world, s server, m zktest.Match) *zktest.Rule { return s.LoseReply(m) }),
	ruled("lose reply", func(_ *world, s server, m zktest.Match) *zktest.Rule { return s.LoseReply(m) }),
	ruled("drop after", func(_ *world, s server, m zktest.Match) *zktest.Rule { return s.DropAfter(m) }),
	ruled("stall reply", func(_ *world, s server, m zktest.Match) *zktest.Rule { return s.StallReply(m) }),
	ruled("delay", func(w *world, s server, m zktest.Match) *zktest.Rule { return s.Delay(m, w.plan.length(w.h.Timeout)) }),
	ruled("delay reply", func(w *world, s server, m zktest.Match) *zktest.Rule {
		return s.DelayReply(m, w.plan.length(w.h.Timeout))
	}),

	linked("partition", true, func(n *node) { n.link.Partition() }, func(n *node) { n.link.Heal() }),
	linked("partition", true, func(n *node) { n.link.Partition() }, func(n *node) { n.link.Heal() }),
	linked("partition replies of", true, func(n *node) { n.link.PartitionReplies() }, func(n *node) { n.link.Heal() }),
	linked("cut and refuse", true, func(n *node) { n.link.Refuse(); n.link.Cut() }, func(n *node) { n.link.Accept() }),
	linked("freeze", true, func(n *node) { n.link.Freeze() }, func(n *node) { n.link.Thaw() }),
	linked("pause", false, func(n *node) { n.link.Pause() }, func(n *node) { n.link.Resume() }),
	linked("cut", false, func(n *node) { n.link.Cut() }, func(*node) {}),
	linked("slow link of", false, func(n *node) { n.link.SetLatency(20*time.Millisecond, 400*time.Millisecond) },
		func(n *node) { n.link.SetLatency(latencyLo, latencyHi) }),

	{"expire", expire},
	{"expire", expire},
	{"delete", deleteContender},
	{"delete", deleteContender},
	{"sweep directory", sweepDirectory},
	{"foreign", addForeign},
	{"close", closeClient},
}

// aloneMenu adds the faults of a server on its own.
var aloneMenu = append(slices.Clone(ofClients), []fault{
	general("partition of all", true, (*zktest.Server).Partition, (*zktest.Server).Heal),
	general("frozen server", true, (*zktest.Server).Freeze, (*zktest.Server).Thaw),
	general("hung handshakes", true, func(s *zktest.Server) { s.HangHandshake(); s.CutAll() }, (*zktest.Server).Accept),
	general("restart", true, (*zktest.Server).Stop, (*zktest.Server).Resume),
	general("slow log", false, func(s *zktest.Server) { s.SlowLog(700 * time.Millisecond) }, func(s *zktest.Server) { s.SlowLog(0) }),
	general("late events", false, func(s *zktest.Server) { s.DelayEvents(1500 * time.Millisecond) }, func(s *zktest.Server) { s.DelayEvents(0) }),
	general("new leader", false, (*zktest.Server).ChangeLeader, func(*zktest.Server) {}),
	general("sweep", false, func(s *zktest.Server) { s.Sweep() }, func(s *zktest.Server) { s.Sweep() }),
	{"move", move},
}...)

// length draws how long something takes.
func (p *plan) length(limit time.Duration) time.Duration {
	return 1 + time.Duration(p.r.Int64N(int64(limit)))
}

// expire ends a client's session from outside.
func expire(p *plan, w *world, n *node, at, _ time.Duration) {
	p.add(at, "expire the session of "+n.name, func() {
		for _, s := range w.authority().Sessions() {
			if s.Client == n.name && (s.Connected || w.ensemble != nil) {
				now := w.now()
				if w.authority().ExpireSession(s.ID) {
					w.h.Note(func() { w.h.Forces = append(w.h.Forces, sim.Force{Session: s.ID, At: now}) })
				}
			}
		}
	})
}

// closeClient closes a client while its actors work. It is not there any more
// for the rest of the schedule.
func closeClient(p *plan, w *world, n *node, at, _ time.Duration) {
	within := p.length(2 * w.h.Timeout)
	p.add(at, "close "+n.name, func() {
		if n.c.Load() == nil || n.closed.Swap(true) {
			return
		}
		c := &sim.Closing{Client: n.name, Within: within, Begun: w.now(), Ended: sim.Never}
		w.h.Note(func() { w.h.Closings = append(w.h.Closings, c) })
		go func() { // ends within its context, or the history shows it
			ctx, cancel := context.WithTimeout(w.ctx, within)
			defer cancel()
			err := n.c.Load().CloseContext(ctx)
			now := w.now()
			w.h.Note(func() { c.Ended, c.Err = now, err })
			w.trace.note(now, err, text("closed "+n.name))
		}()
	})
}

// move lets the connection of a client's session become an old one.
func move(p *plan, w *world, n *node, at, _ time.Duration) {
	p.add(at, "move the session of "+n.name, func() {
		for _, s := range w.alone.Sessions() {
			if s.Client == n.name {
				w.alone.MoveSession(s.ID)
			}
		}
	})
}

// deleteContender is an operator that deletes the node of a holder, of a waiter,
// or all of them.
func deleteContender(p *plan, w *world, _ *node, at, _ time.Duration) {
	l := w.locks[p.r.IntN(len(w.locks))]
	place := p.r.IntN(5)
	p.add(at, fmt.Sprintf("delete contender %d of %s", place, l.path), func() {
		line := w.h.Standing(l.path)
		switch {
		case len(line) == 0:
		case place == 4:
			for _, path := range line {
				w.remove(path)
			}
		default:
			w.remove(line[max(0, place-1)%len(line)])
		}
	})
}

// sweepDirectory is an operator that deletes the contenders of a lock and, as
// soon as they are gone, its directory. The next contender makes the directory
// again, and its numbers begin at 0. The operator does so again and again for a
// while.
func sweepDirectory(p *plan, w *world, _ *node, at, _ time.Duration) {
	l := w.locks[p.r.IntN(len(w.locks))]
	all := p.r.IntN(2) == 0
	for range 1 + p.r.IntN(8) {
		p.add(at, "sweep directory "+l.path, func() {
			if all {
				for _, path := range w.h.Standing(l.path) {
					w.remove(path)
				}
			}
			if len(w.authority().Children(l.path)) == 0 && w.authority().Delete(l.path) == nil {
				w.h.Note(func() { w.sum.Anew++ })
			}
		})
		at = min(at+p.length(time.Second), disturbed-time.Millisecond)
	}
}

// foreign are children of a mutex that are not ours: some look like contenders
// and only one is.
var foreign = []string{"lock-", "lock--1", "lock-12", "notes", "read-0000000001", foreignContender}

// addForeign lets another program put nodes in a lock's directory for a while.
func addForeign(p *plan, w *world, _ *node, at, to time.Duration) {
	l := w.locks[p.r.IntN(len(w.locks))]
	name := l.kind.foreign[p.r.IntN(len(l.kind.foreign))]
	p.during(at, to, "foreign child "+l.path+"/"+name,
		func() { _ = w.authority().Create(l.path+"/"+name, nil) }, // it may be there already
		func() { w.remove(l.path + "/" + name) })
}
