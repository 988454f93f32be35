package zktest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// record notes a request whose fate is known. The mutex is held.
func (s *Server) record(r *request) {
	if len(s.observers) == 0 && s.cfg.logSize <= 0 {
		return
	}
	seen := r.public()
	if s.cfg.logSize > 0 {
		if len(s.log) >= 2*s.cfg.logSize {
			s.log = append(s.log[:0], s.log[s.cfg.logSize:]...)
		}
		s.log = append(s.log, seen)
	}
	if len(s.observers) > 0 {
		s.unseen = append(s.unseen, seen)
	}
}

// report calls the observers, outside the mutex and one request at a time.
func (s *Server) report() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reporting {
		return // whoever is at it goes on until nothing is left
	}
	s.reporting = true
	for len(s.unseen) > 0 {
		batch, observers := s.unseen, s.observers
		s.unseen = nil
		s.mu.Unlock()
		for _, r := range batch {
			for _, f := range observers {
				f(r)
			}
		}
		s.mu.Lock()
	}
	s.reporting = false
}

// OnRequest calls f for every request from now on, when its fate is known:
// applied and answered, or struck by a rule. Calls come one at a time and in
// the order of the server's decisions, on the server's goroutines; f may call
// the server, but while it runs nobody else's requests are reported.
func (s *Server) OnRequest(f func(Request)) {
	s.mu.Lock()
	s.observers = append(slices.Clip(s.observers), f)
	s.mu.Unlock()
}

// Log returns the most recent requests, oldest first: at least as many as
// [WithLogSize] says, if there were so many.
func (s *Server) Log() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.log...)
}

// ResetCounts sets the counts of requests, events and expired sessions to
// zero, to count what one step of a test does.
func (s *Server) ResetCounts() {
	s.mu.Lock()
	s.counts = counters{ops: map[Op]int{}}
	s.mu.Unlock()
}

// Count returns how many requests of the type have arrived, those struck by a
// rule included.
func (s *Server) Count(op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts.ops[op]
}

// Counts returns how many requests of each type have arrived.
func (s *Server) Counts() map[Op]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts.ops)
}

// EventCount returns how many watch events have been sent.
func (s *Server) EventCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts.events
}

// ExpiredCount returns how many sessions the server has ended.
func (s *Server) ExpiredCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts.expired
}

// String returns one line about the request, for logs and failed tests.
func (r Request) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s client=%q conn=%d session=%#x xid=%d %v", r.Time.Format("15:04:05.000000"),
		r.Client, r.Conn, uint64(r.Session), r.Xid, r.Op)
	switch {
	case len(r.Paths) > 1:
		fmt.Fprintf(&b, " %s", strings.Join(r.Paths, " "))
	case r.Path != "":
		fmt.Fprintf(&b, " %s", r.Path)
	}
	if r.Result != "" && r.Result != r.Path {
		fmt.Fprintf(&b, " -> %s", r.Result)
	}
	if r.Zxid != 0 {
		fmt.Fprintf(&b, " zxid=%#x", r.Zxid)
	}
	if r.Err != CodeOK {
		fmt.Fprintf(&b, " err=%v", r.Err)
	}
	if r.Fault != "" {
		fmt.Fprintf(&b, " fault=%q", r.Fault)
	}
	return b.String()
}
