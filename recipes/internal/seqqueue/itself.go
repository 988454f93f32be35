// The warning of an acquire that may wait for itself: of one within a hold of the same lock,
// whose context is not that of the hold. Nothing tells such an acquire from one of another
// goroutine for certain. So the warning is a suspicion, and says so.

package seqqueue

import (
	"context"
	"slices"
	"time"
)

// suspicion is the doubt of a member that waits without a deadline. It looks twice. If one
// hold of the member's own client stands in its way both times, it warns. Turns that change
// hands are no reason.
//
// A member that gets its turn after a warning was not waiting for itself. The next one in the
// queue waits twice as long before it warns. So a lock with long holds warns a few times only.
type suspicion struct {
	m     *Member
	begun time.Time
	looks [2]*time.Timer

	holds []*Member // in the way at the first look; guarded by the chain's mutex, as is the rest
	told  bool
}

// suspect begins a suspicion. The error of an acquire with a deadline says behind whom it has
// waited, so that such an acquire needs none.
func (m *Member) suspect(ctx context.Context) {
	_, bounded := ctx.Deadline()
	if bounded || m.chain == nil || m.gated() || m.doubt != nil {
		return
	}
	after := max(m.Session.Timeout(), time.Duration(m.q.patience.Load()))
	s := &suspicion{m: m, begun: time.Now()}
	s.looks = [2]*time.Timer{time.AfterFunc(after/2, s.look), time.AfterFunc(after, s.tell)}
	m.doubt = s
}

// look notes the holds of m's client in the way of m.
func (s *suspicion) look() {
	c := s.m.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.members {
		if h.inTheWayOf(s.m) {
			s.holds = append(s.holds, h)
		}
	}
}

// inTheWayOf reports whether m is held, or about to be, and blocks waiter. The caller holds
// the chain's mutex.
func (m *Member) inTheWayOf(waiter *Member) bool {
	return m.state == first && m.Node.before(waiter.Node) && (!m.shared || !waiter.shared)
}

// tell warns if one of the holds is still in the way, and no member has warned of it.
func (s *suspicion) tell() {
	s.m.chain.mu.Lock()
	i := slices.IndexFunc(s.holds, func(h *Member) bool { return h.inTheWayOf(s.m) && !h.suspected })
	if i >= 0 {
		s.holds[i].suspected, s.told = true, true
	}
	s.m.chain.mu.Unlock()
	if i >= 0 {
		inner.Logger(s.m.q.c).Warn("zookeeper: an acquire has waited long behind a hold of its own client; if it is made within that hold, it waits for itself for ever",
			"hold", s.m.q.Path(s.holds[i].Node), "waits", s.m.Path, "for", time.Since(s.begun).Round(time.Second),
			"remedy", "pass the context of the hold to the acquire, or release the hold before; if another goroutine holds, all is well")
	}
}

// calm ends the suspicion of m. turn says that its turn has come.
func (m *Member) calm(turn bool) {
	s := m.doubt
	if s == nil {
		return
	}
	m.doubt = nil
	for _, t := range s.looks {
		t.Stop()
	}
	m.chain.mu.Lock()
	defer m.chain.mu.Unlock()
	if s.told && turn {
		m.q.patience.Store(int64(2 * time.Since(s.begun)))
	}
}
