package client

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// lease knows how long the nodes of a session are safe, and which holdings rely on
// that. While there are holdings, a timer looks after them. A hold that is over
// before the timer fires starts no goroutine.
type lease struct {
	s      *sessionState
	policy LeasePolicy

	mu         sync.Mutex // guards the rest; never held across I/O or callbacks
	holdings   []*holding
	unreleased []*holding      // ended with the lease, not yet given up by their holders
	timer      *time.Timer     // calls tick; nil before the first holding
	beats      int             // heartbeats so far
	awaited    int             // the number of the heartbeat whose answer may still come, 0 if none
	beaten     time.Time       // when the newest heartbeat was tried on the present connection
	next       int             // the node that the next heartbeat checks first, counted over all holdings
	blind      map[string]bool // nodes that may not be read, and so are not checked
	doubt      error           // why the lease is in jeopardy, nil if it is not
	doubted    time.Time       // when doubt was set
	jeopardy   chan struct{}   // closed while the lease is in jeopardy
}

func newLease(s *sessionState, p LeasePolicy) *lease {
	return &lease{s: s, policy: p, blind: map[string]bool{}, jeopardy: make(chan struct{})}
}

// inDoubt is called when the connection or an answer is in doubt.
func (l *lease) inDoubt(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endanger(why)
}

// endanger puts the lease in jeopardy. The caller holds l.mu.
func (l *lease) endanger(why error) {
	if l.doubt == nil {
		close(l.jeopardy)
	}
	l.doubt, l.doubted = why, time.Now()
}

// relieve ends the jeopardy if there is a newer proof. The caller holds l.mu.
func (l *lease) relieve(t leaseState) {
	if l.doubt != nil && t.proof.Sent.At.After(l.doubted) {
		l.doubt, l.jeopardy = nil, make(chan struct{})
	}
}

// up is called when a server has accepted the session. A heartbeat on an earlier
// connection may still block there, but its answer is not awaited any more.
func (l *lease) up() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaited, l.beaten = 0, time.Time{}
	if l.doubt != nil && len(l.holdings) == 0 {
		l.doubt, l.jeopardy = nil, make(chan struct{})
	}
	if !l.idle() {
		l.timer.Reset(0) // the next heartbeat relieves
	}
}

// add makes h rely on the lease. It reads the clocks itself. The process may have
// been stopped since the caller found that the lease stands. A timer that is set
// by the older reading would fire too late.
func (l *lease) add(h *holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.state()
	l.relieve(t)
	first := len(l.holdings) == 0
	l.holdings = append(l.holdings, h)
	if first { // otherwise the timer is set, for no later
		l.arm(t)
	}
}

// sessionOver tells the holdings that the session has ended. It runs once, on a
// goroutine of its own. A holding that is added later learns it from its Err.
func (l *lease) sessionOver() {
	l.mu.Lock()
	told := slices.Clone(l.holdings)
	l.mu.Unlock()
	for _, h := range told {
		h.lost(context.Cause(l.s.ctx))
	}
}

// remove ends h's reliance, whether it was lost or not.
func (l *lease) remove(h *holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(h)
}

// forget removes h from the lease, and stops the timer if it was the last. The caller
// holds l.mu.
func (l *lease) forget(h *holding) {
	same := func(other *holding) bool { return other == h }
	l.holdings = slices.DeleteFunc(l.holdings, same)
	l.unreleased = slices.DeleteFunc(l.unreleased, same)
	for _, path := range h.full {
		delete(l.blind, path)
	}
	if l.idle() && l.timer != nil {
		l.timer.Stop()
	}
}

// idle reports whether there is nothing to look after. The caller holds l.mu.
func (l *lease) idle() bool { return len(l.holdings) == 0 && len(l.unreleased) == 0 }

// arm sets the timer to the next moment at which something is due, by what is
// known at t. The caller holds l.mu, and the lease is not idle.
func (l *lease) arm(t leaseState) {
	d := clockCheck
	if len(l.holdings) > 0 {
		d = min(d, t.left)
	}
	if l.wantsBeat(t) {
		d = min(d, l.pause(t))
	}
	for _, h := range l.unreleased {
		if t.left > 0 {
			d = min(d, h.due.Sub(t.now))
		} else {
			d = min(d, t.promised.Sub(t.now))
		}
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(d, l.tick)
		return
	}
	l.timer.Reset(d)
}

// tick runs on a goroutine of its own when the timer fires, and sends the heartbeats
// that are due. Before each of them the timer is set again. If a connection blocks
// this tick, it delays only heartbeats.
func (l *lease) tick() {
	if !l.s.begin() {
		return
	}
	defer l.s.running.Done()
	for {
		b, due := l.look()
		if !due {
			return
		}
		l.beat(b)
	}
}

// look compares the clocks and acts by them. It returns the heartbeat that is due. It
// tells holders before it closes a connection, which may block.
func (l *lease) look() (b heartbeat, due bool) {
	if l.s.over() != nil {
		return heartbeat{}, false
	}
	l.expire()
	l.mu.Lock()
	if l.idle() {
		l.mu.Unlock()
		return heartbeat{}, false
	}
	t := l.state()
	l.relieve(t)
	if len(l.unreleased) > 0 && !t.now.Before(t.promised) {
		e := l.expiry(t)
		l.mu.Unlock()
		l.s.link.End(e)
		return heartbeat{}, false
	}
	nodes := l.inTheWay(t)
	b, due = l.nextBeat(t)
	if !l.idle() {
		l.arm(t)
	}
	l.mu.Unlock()
	l.removeNodes(nodes)
	return b, due
}

// expiry describes a lease that is over at t. The caller holds l.mu.
func (l *lease) expiry(t leaseState) *LeaseExpiredError {
	return &LeaseExpiredError{
		Session: l.s.link.SessionID(), Proof: string(t.proof.Kind),
		SentAt: t.proof.Sent.At, AliveAt: t.proof.Alive.At, Timeout: t.timeout,
		Deadline: t.deadline(), Promised: t.promised, Margin: t.margin, Reason: l.doubt,
	}
}

// expire ends all holdings if their time is over. It reports whether there is time left.
func (l *lease) expire() (stands bool) {
	l.mu.Lock()
	t := l.state() // read here: it must not be older than the reading that made a holding begin
	if t.left > 0 || len(l.holdings) == 0 {
		l.mu.Unlock()
		return t.left > 0
	}
	e := l.expiry(t)
	ended := l.holdings
	l.holdings = nil
	for _, h := range ended {
		h.cause, h.due = e, e.Promised
	}
	l.unreleased = append(l.unreleased, ended...)
	l.arm(t)
	l.mu.Unlock()
	for _, h := range ended {
		h.lost(e)
	}
	l.s.core.journal.Say(slog.LevelWarn, "zookeeper: lease expired, locks are lost", "holds", len(ended), "reason", e)
	return false
}

// inTheWay returns the nodes of unreleased holdings whose promise has run out, if the
// lease stands again at t, and forgets these holdings. It leaves out a node on which
// a newer holding relies. The caller holds l.mu.
func (l *lease) inTheWay(t leaseState) (nodes []string) {
	if t.left <= 0 {
		return nil
	}
	for _, h := range slices.Clone(l.unreleased) {
		if t.now.Before(h.due) {
			continue
		}
		l.forget(h)
		for _, path := range h.full {
			if len(l.relying(path)) == 0 {
				nodes = append(nodes, path)
			}
		}
	}
	return nodes
}

// removeNodes deletes nodes that their holders did not release in time.
func (l *lease) removeNodes(nodes []string) {
	if len(nodes) == 0 {
		return
	}
	l.s.core.journal.Say(slog.LevelWarn, "zookeeper: locks that were lost were not released in time, their nodes are removed",
		"nodes", len(nodes), "first", nodes[0])
	for _, path := range nodes {
		l.s.core.remover.Remove(l.s, path)
	}
}

// relying returns the holdings that rely on a node. The caller holds l.mu.
func (l *lease) relying(path string) (found []*holding) {
	for _, h := range l.holdings {
		if slices.Contains(h.full, path) {
			found = append(found, h)
		}
	}
	return found
}

// missing ends the holdings that rely on path, a node that does not exist any more.
func (l *lease) missing(path string, why error) {
	l.mu.Lock()
	ended := l.relying(path)
	for _, h := range ended {
		h.cause = why
		l.forget(h)
	}
	l.mu.Unlock()
	for _, h := range ended {
		h.lost(why)
	}
}

// promised is when the nodes of the session's holds may go, zero if there are none.
func (l *lease) promised() time.Time {
	promised := l.state().promised
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle() {
		return time.Time{}
	}
	return promised
}
