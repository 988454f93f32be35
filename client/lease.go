package client

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// lease is what a session knows about how long its nodes are safe, and who
// relies on it. While somebody does, a goroutine renews it; a hold that is
// over before the first heartbeat is due never starts one.
type lease struct {
	s      *session
	policy LeasePolicy

	poke chan struct{} // holds a token when something has changed

	mu       sync.Mutex // guards the rest; never held across I/O or callbacks
	holdings []*Holding
	left     map[*Holding]struct{} // lost, and not given up by their holders
	next     int                   // which node the next heartbeat checks first, counted over all holdings
	blind    map[string]bool       // nodes that may not be read, and so not checked
	starter  *time.Timer           // starts run
	running  bool
	beaten   time.Time     // when the newest heartbeat was sent
	doubt    error         // why the lease is in jeopardy, nil if it is not
	doubted  time.Time     // since when
	jeopardy chan struct{} // closed while it is
}

func newLease(s *session, p LeasePolicy) *lease {
	return &lease{s: s, policy: p, poke: make(chan struct{}, 1), left: map[*Holding]struct{}{}, blind: map[string]bool{}, jeopardy: make(chan struct{})}
}

// standing is the state of a lease at one moment.
type standing struct {
	terms
	proof   wire.Proof
	timeout time.Duration
	now     time.Time
	left    time.Duration // until holds end; negative if they should have
}

// deadline is the instant until which nobody else can hold.
func (t standing) deadline() time.Time { return t.now.Add(t.left + t.margin) }

// standing reads the clocks and compares.
func (l *lease) standing() standing {
	proof, timeout := l.s.link.Proof()
	now := l.s.core.cfg.clock.Now()
	t := standing{terms: l.policy.terms(timeout), proof: proof, timeout: timeout, now: now.At}
	if proof.Kind != wire.NoProof {
		t.left = t.life - t.margin - now.Since(proof.Alive)
	}
	return t
}

// unease is called when the connection or an answer is in doubt.
func (l *lease) unease(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.doubt == nil {
		close(l.jeopardy)
	}
	l.doubt, l.doubted = why, time.Now()
}

// relieve ends the jeopardy if there is a newer proof. The caller holds l.mu.
func (l *lease) relieve(t standing) {
	if l.doubt != nil && t.proof.Sent.At.After(l.doubted) {
		l.doubt, l.jeopardy = nil, make(chan struct{})
	}
}

// up is called when a server has accepted the session.
func (l *lease) up() {
	l.wake() // the next heartbeat relieves
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.doubt != nil && len(l.holdings) == 0 {
		l.doubt, l.jeopardy = nil, make(chan struct{})
	}
}

// wake makes run look again.
func (l *lease) wake() {
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// add makes h rely on the lease, which has just been found to stand at t.
func (l *lease) add(h *Holding, t standing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.relieve(t)
	l.holdings = append(l.holdings, h)
	if !l.running && l.starter == nil {
		l.starter = time.AfterFunc(l.pause(t), l.run)
	}
}

// remove ends h's reliance, whether it was lost or not.
func (l *lease) remove(h *Holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.left, h)
	l.drop(h)
}

// drop forgets h, and stops what runs when it was the last. The caller holds
// l.mu.
func (l *lease) drop(h *Holding) {
	if i := slices.Index(l.holdings, h); i >= 0 {
		l.holdings = slices.Delete(l.holdings, i, i+1)
	}
	for _, path := range h.full {
		delete(l.blind, path)
	}
	if len(l.holdings) > 0 {
		return
	}
	if l.starter != nil {
		l.starter.Stop()
		l.starter = nil
	}
	l.wake()
}

// expired ends all holdings if their time is over, and reports whether it is.
func (l *lease) expired(t standing) bool {
	if t.left > 0 {
		return false
	}
	l.mu.Lock()
	e := &LeaseExpiredError{
		Session: l.s.link.SessionID(), Proof: t.proof.Kind.String(),
		SentAt: t.proof.Sent.At, AliveAt: t.proof.Alive.At, Timeout: t.timeout,
		Deadline: t.deadline(), Margin: t.margin, Reason: l.doubt,
	}
	lost := l.holdings
	l.holdings = nil
	for _, h := range lost {
		h.cause = e
		l.left[h] = struct{}{}
	}
	if len(lost) > 0 {
		time.AfterFunc(max(0, t.left+t.margin), func() { l.abandon(e) })
	}
	l.mu.Unlock()
	for _, h := range lost {
		h.lost(e)
	}
	if len(lost) > 0 {
		l.s.core.journal.say(slog.LevelWarn, "zookeeper: lease expired, locks are lost", "holds", len(lost), "reason", e)
	}
	return true
}

// abandon gives the session up at the deadline, if a hold that was lost is
// still not released: its node would stand in everybody's way for as long as
// the session lives.
func (l *lease) abandon(e *LeaseExpiredError) {
	l.mu.Lock()
	n := len(l.left)
	l.mu.Unlock()
	if n > 0 && l.s.over() == nil {
		l.s.core.remember(l.s)
		l.s.link.End(e)
	}
}

// gone ends the holdings that rely on a node which is not there.
func (l *lease) gone(path string, why error) {
	l.mu.Lock()
	var lost []*Holding
	for _, h := range l.holdings {
		if slices.Contains(h.full, path) {
			lost = append(lost, h)
		}
	}
	for _, h := range lost {
		h.cause = why
		l.drop(h)
	}
	l.mu.Unlock()
	for _, h := range lost {
		h.lost(why)
	}
}
