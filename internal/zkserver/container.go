package zkserver

import (
	"slices"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// armSweep schedules the next look for empty containers, at a multiple of the
// interval since the start. While there are no containers, no timer runs, so that
// an idle simulation comes to rest.
func (s *Server) armSweep() {
	if s.sweepArmed || s.closed || len(s.tree.containers)+len(s.tree.ttls) == 0 {
		return
	}
	s.sweepArmed = true
	every := s.cfg.SweepEvery
	// One nanosecond after the ticks at which sessions expire. At one instant the
	// order would be left to the scheduler.
	wait := every - (time.Since(s.epoch)-time.Nanosecond)%every
	s.sweepTimer = time.AfterFunc(wait, s.sweep)
}

func (s *Server) sweep() {
	if !s.beginTimer() {
		return
	}
	defer s.wg.Done()
	s.sweepArmed = false
	if !s.stopped && (s.member == nil || s.member.role == roleLeading) {
		s.sweepContainers()
	}
	s.armSweep()
	s.mu.Unlock()
	s.report()
}

// Sweep deletes what is due now: containers that have had children and have none,
// and TTL nodes that are too old. It returns how many deletions it asked for.
func (s *Server) Sweep() int {
	s.mu.Lock()
	n := s.sweepContainers()
	s.mu.Unlock()
	s.report()
	return n
}

func (s *Server) sweepContainers() int {
	var due []string
	for path := range s.tree.containers {
		if n := s.tree.nodes[path]; n.stat.cversion > 0 && len(n.children) == 0 {
			due = append(due, path)
		}
	}
	now := s.wallMillis()
	for path := range s.tree.ttls {
		n := s.tree.nodes[path]
		if ttl := n.stat.owner & maxTTL; len(n.children) == 0 && now-n.stat.mtime > ttl {
			due = append(due, path)
		}
	}
	slices.Sort(due)
	for _, path := range due {
		s.submit(&request{s: s, op: zoodefs.OpDeleteContainer, path: path, internal: true})
	}
	return len(due)
}
