package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/lease"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

// leaseKeeper carries out what the lease of a session decides. While there are holdings, a
// timer looks after them. A hold that is over before the timer fires starts no goroutine.
type leaseKeeper struct {
	s *sessionState

	mu       sync.Mutex // guards the rest; never held across I/O or callbacks
	m        *lease.Machine
	timer    *time.Timer   // calls tick; nil before the first holding
	jeopardy chan struct{} // closed while the lease is in doubt
}

func newLeaseKeeper(s *sessionState) *leaseKeeper {
	return &leaseKeeper{s: s, m: lease.New(s.core.cfg.lease.lease(), s.core.checkable), jeopardy: make(chan struct{})}
}

// state reads the clocks and the newest proof.
func (l *leaseKeeper) state() lease.State {
	proof, timeout := l.s.Link().Proof()
	return l.m.Policy().At(proof, timeout, l.s.core.cfg.clock.Now())
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
func (l *leaseKeeper) add(h *holding) {
	l.update(func() {
		t := l.state()
		if l.m.Add(&h.Holding, t) { // otherwise the timer is set, for no later
			l.arm(t)
		}
	})
}

// sessionOver tells the holdings that the session has ended. It runs once, on a
// goroutine of its own. A holding that is added later learns it from its Err.
func (l *leaseKeeper) sessionOver() {
	l.mu.Lock()
	told := l.m.Holdings()
	l.mu.Unlock()
	for _, h := range told {
		h.Lost(context.Cause(l.s.Context()))
	}
}

// remove ends h's reliance, whether it was lost or not.
func (l *leaseKeeper) remove(h *holding) { l.update(func() { l.m.Remove(&h.Holding) }) }

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
func (l *leaseKeeper) look() *lease.Beat {
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
	l.s.core.journal.Say(slog.LevelWarn, "zookeeper: lease expired, locks are lost", "holds", len(ended), "reason", e)
	return false
}

// removeNodes deletes nodes that their holders did not release in time.
func (l *leaseKeeper) removeNodes(nodes []string) {
	if len(nodes) == 0 {
		return
	}
	l.s.core.journal.Say(slog.LevelWarn, "zookeeper: locks that were lost were not released in time, their nodes are removed",
		"nodes", len(nodes), "first", nodes[0])
	for _, path := range nodes {
		l.s.core.remover.Remove(l.s, path)
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
func (l *leaseKeeper) beat(b *lease.Beat) {
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
		missed(fmt.Errorf("%w: %s", ErrNotConnected, l.s.core.servers.Report()))
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
			l.s.core.journal.Say(slog.LevelWarn, "zookeeper: a held node may not be read, so that its deletion would not be noticed",
				"node", path, "reason", err)
		}
		return
	}
	l.update(func() { l.m.Readable(nodes) })
}

// holding is an inside.Holding.
type holding struct {
	lease.Holding // guarded by the lease's mu

	s     *Session
	paths []string
	one   [1]string // backs the full paths
}

// hold is inside.Functions.Hold.
func hold(ctx context.Context, s *Session, lost func(error), paths ...string) (inside.Holding, error) {
	h := &holding{Holding: lease.Holding{Lost: lost}, s: s}
	full, err := s.fullPaths(h.one[:0], paths)
	if err != nil {
		return nil, err
	}
	if _, err := s.session.AwaitProduct(ctx); err != nil { // it decides how long the session lives
		return nil, err
	}
	h.paths, h.Full = full, full
	if s.prefix != "" { // otherwise both are the same
		h.paths = slices.Clone(paths)
	}
	if err := h.prove(ctx); err != nil {
		return nil, err
	}
	s.session.lease.add(h)
	return h, nil
}

// prove waits until the lease has some time left.
func (h *holding) prove(ctx context.Context) error {
	l := h.s.session.lease
	for {
		t := l.state()
		if t.Left >= t.Beat/2 {
			return nil
		}
		if err := l.m.Policy().Check(t.Timeout); err != nil {
			return err
		}
		if err := h.s.confirm(ctx, h.paths, h.Full); err != nil {
			return err
		}
		if t = l.state(); t.Left >= t.Beat/2 {
			return nil
		}
		// The server has not yet told the leader of a sign of life that is young
		// enough.
		if ctxerr.Sleep(ctx, t.Beat/4) != nil {
			return ctxerr.Ended(ctx)
		}
	}
}

func (h *holding) Err() error {
	s := h.s.session
	over := s.Over
	if !s.lease.expire() { // otherwise the session has time left as well: it ends later
		over = s.Err
	}
	if err := over(); err != nil {
		return err
	}
	s.lease.mu.Lock()
	defer s.lease.mu.Unlock()
	return h.Cause
}

func (h *holding) Deadline() time.Time {
	return h.s.session.lease.state().Deadline() // there is a proof, or it would not be held
}

func (h *holding) Jeopardy() <-chan struct{} {
	l := h.s.session.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.jeopardy
}

func (h *holding) Confirm(ctx context.Context) error { return h.s.confirm(ctx, h.paths, h.Full) }

func (h *holding) Done() { h.s.session.lease.remove(h) }

// told tells the observer of a heartbeat.
func (l *leaseKeeper) told(b *lease.Beat, err error) {
	hook := l.s.core.cfg.observer.Heartbeat
	if hook == nil {
		return
	}
	t := l.state()
	info := HeartbeatInfo{
		Session: l.s.ID(), Nodes: len(b.Nodes),
		Begun: b.At, Duration: time.Since(b.At), Left: t.Left, Full: t.Life - t.Margin, Err: err,
	}
	l.s.core.teller.Tell(func() { hook(info) })
}
