package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/aside"
	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/lease"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/client/internal/where"
	"github.com/docent-go/docent/internal/wire"
)

// leaseKeeper carries out what the lease of a session decides. While there are holdings, a
// timer looks after them. A hold that is over before the timer fires starts no goroutine.
type leaseKeeper struct {
	leaseConfig

	mu       sync.Mutex // guards the rest; never held across I/O or callbacks
	m        *lease.Machine
	timer    *time.Timer   // calls tick; nil before the first holding
	jeopardy chan struct{} // closed while the lease is in doubt
}

// leaseConfig is what a leaseKeeper needs of its client.
type leaseConfig struct {
	cfg     *config
	s       *session.Session
	servers *where.Servers
	journal *aside.Journal
	teller  *aside.Teller
	remove  func(path string) // the node of a hold that was lost, in the background
}

func newLeaseKeeper(cfg leaseConfig) *leaseKeeper {
	return &leaseKeeper{leaseConfig: cfg, m: lease.New(cfg.cfg.lease.lease(), cfg.cfg.checkable), jeopardy: make(chan struct{})}
}

// state reads the clocks and the newest proof.
func (l *leaseKeeper) state() lease.State {
	proof, timeout := l.s.Link().Proof()
	return l.m.Policy().At(proof, timeout, l.cfg.clock.Now())
}

// update lets f change the lease, and then says whether the lease is in doubt.
func (l *leaseKeeper) update(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.m.Doubt() != nil
	f()
	switch after := l.m.Doubt() != nil; {
	case after && !before:
		close(l.jeopardy)
	case before && !after:
		l.jeopardy = make(chan struct{})
	}
	if l.m.Idle() && l.timer != nil {
		l.timer.Stop()
	}
}

// inDoubt is called when the connection or an answer is in doubt.
func (l *leaseKeeper) inDoubt(why error) { l.update(func() { l.m.Endanger(why, time.Now()) }) }

// up is called when a server has accepted the session.
func (l *leaseKeeper) up() {
	l.update(func() {
		if l.m.Up(); !l.m.Idle() {
			l.timer.Reset(0)
		}
	})
}

// add makes h rely on the lease. It reads the clocks itself. The process may have
// been stopped since the caller found that the lease stands. A timer that is set
// by the older reading would fire too late.
func (l *leaseKeeper) add(h *lease.Holding) {
	l.update(func() {
		t := l.state()
		if l.m.Add(h, t) { // otherwise the timer is set, for no later
			l.arm(t)
		}
	})
}

// sessionOver tells the holdings that the session has ended. It runs once, on a
// goroutine of its own, or on that of Close. A holding that is added later learns it from its Err.
func (l *leaseKeeper) sessionOver() {
	l.mu.Lock()
	told := l.m.Holdings()
	l.mu.Unlock()
	for _, h := range told {
		h.Lost(context.Cause(l.s.Context()))
	}
}

// leave ends h's reliance, whether it was lost or not.
func (l *leaseKeeper) leave(h *lease.Holding) { l.update(func() { l.m.Remove(h) }) }

// arm sets the timer to the next moment at which something is due, by what is
// known at t. The caller holds l.mu, and the lease is not idle.
func (l *leaseKeeper) arm(t lease.State) {
	d := l.m.Next(t)
	if l.timer == nil {
		l.timer = time.AfterFunc(d, l.tick)
		return
	}
	l.timer.Reset(d)
}

// tick runs on a goroutine of its own when the timer fires, and sends the heartbeats
// that are due. Before each of them the timer is set again. If a connection blocks
// this tick, it delays only heartbeats.
func (l *leaseKeeper) tick() {
	if !l.s.Enter() {
		return
	}
	defer l.s.Leave()
	for b := l.look(); b != nil; b = l.look() {
		l.beat(b)
	}
}

// look compares the clocks and acts by them. It returns the heartbeat that is due. It
// tells holders before it closes a connection, which may block.
func (l *leaseKeeper) look() *lease.Heartbeat {
	if l.s.Over() != nil {
		return nil
	}
	l.expire()
	var step lease.Step
	var e error
	l.update(func() {
		if l.m.Idle() {
			return
		}
		t := l.state()
		if step = l.m.Look(t); step.End {
			e = l.expiry(t)
		} else if !l.m.Idle() {
			l.arm(t)
		}
	})
	if step.End {
		l.s.Link().End(e)
	}
	l.removeNodes(step.Remove)
	return step.Beat
}

// expiry describes a lease that is over at t. The caller holds l.mu.
func (l *leaseKeeper) expiry(t lease.State) *LeaseExpiredError {
	return &LeaseExpiredError{
		Session: l.s.ID(), Proof: string(t.Proof.Kind),
		SentAt: t.Proof.Sent.At, AliveAt: t.Proof.Alive.At, Timeout: t.Timeout,
		Deadline: t.Deadline(), Promised: t.Promised, Margin: t.Margin, Reason: l.m.Doubt(),
	}
}

// expire ends all holdings if their time is over. It reports whether there is time left.
func (l *leaseKeeper) expire() (stands bool) {
	l.mu.Lock()
	t := l.state() // read here: it must not be older than the reading that made a holding begin
	ended := l.m.Expire(t)
	if len(ended) == 0 {
		l.mu.Unlock()
		return t.Left > 0
	}
	e := l.expiry(t)
	for _, h := range ended {
		h.Cause = e
	}
	l.arm(t)
	l.mu.Unlock()
	for _, h := range ended {
		h.Lost(e)
	}
	l.journal.Say(slog.LevelWarn, "zookeeper: lease expired, locks are lost", "holds", len(ended), "reason", e)
	return false
}

// removeNodes deletes nodes that their holders did not release in time.
func (l *leaseKeeper) removeNodes(nodes []string) {
	if len(nodes) == 0 {
		return
	}
	l.journal.Say(slog.LevelWarn, "zookeeper: locks that were lost were not released in time, their nodes are removed",
		"nodes", len(nodes), "first", nodes[0])
	for _, path := range nodes {
		l.remove(path)
	}
}

// missing ends the holdings that rely on path, a node that does not exist any more.
func (l *leaseKeeper) missing(path string, why error) {
	var ended []*lease.Holding
	l.update(func() {
		ended = l.m.Missing(path)
		for _, h := range ended {
			h.Cause = why
		}
	})
	for _, h := range ended {
		h.Lost(why)
	}
}

// promised is when the nodes of the session's holds may go, zero if there are none.
func (l *leaseKeeper) promised() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m.Idle() {
		return time.Time{}
	}
	return l.m.Promised(l.state())
}

// nodes are the nodes of all holdings that were not given up.
func (l *leaseKeeper) nodes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.m.Nodes()
}

// errUnanswered is why the client gives up a connection on which a heartbeat got no
// answer.
var errUnanswered = errors.New("a heartbeat was not answered in time")

// beat sends a heartbeat and waits for its answer. It only reports doubts: the timer
// decides when holds end.
func (l *leaseKeeper) beat(b *lease.Heartbeat) {
	ctx, cancel := context.WithDeadlineCause(l.s.Context(), b.At.Add(b.Patience), errUnanswered)
	defer cancel()
	x := checks(b.Nodes)
	err := l.s.Link().Do(ctx, x)
	if err == nil {
		err = l.s.Answer(x)
	}
	missed := func(why error) { l.update(func() { l.m.Missed(b.Number, why, time.Now()) }) }
	switch {
	case errors.Is(err, wire.ErrNotConnected):
		missed(fmt.Errorf("%w: %s", ErrNotConnected, l.servers.Report()))
	case err != nil && errors.Is(context.Cause(ctx), errUnanswered):
		missed(errUnanswered)
		if l.s.Restores() { // else the end of the connection would be the end of the session
			l.s.Link().DropLive(b.At, errUnanswered)
		}
	case err != nil:
		missed(err)
	default:
		l.hear(b.Nodes, x.Reply.Parts)
	}
	l.update(func() { l.m.Heard(b.Number) })
	l.told(b, err)
}

// hear handles the results of the checks of nodes.
func (l *leaseKeeper) hear(nodes []string, results []wire.Result) {
	for i, path := range nodes[:min(len(nodes), len(results))] {
		err := fate.OfCode(results[i].Code)
		if err == nil || errors.Is(err, fate.RuntimeInconsistency) {
			continue
		}
		if errors.Is(err, zk.ErrNoNode) {
			l.missing(path, fmt.Errorf("heartbeat: %s: %w", path, err))
			return
		}
		known := false
		l.update(func() { known = l.m.Unreadable(path) })
		if !known {
			l.journal.Say(slog.LevelWarn, "zookeeper: a held node may not be read, so that its deletion would not be noticed",
				"node", path, "reason", err)
		}
		return
	}
	l.update(func() { l.m.Readable(nodes) })
}

// told tells the observer of a heartbeat.
func (l *leaseKeeper) told(b *lease.Heartbeat, err error) {
	t := l.state()
	l.cfg.observer.tellHeartbeat(l.teller, HeartbeatInfo{
		Session: l.s.ID(), Nodes: len(b.Nodes),
		Begun: b.At, Duration: time.Since(b.At), Left: t.Left, Full: t.Life - t.Margin, Err: err,
	})
}
