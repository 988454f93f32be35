package zktest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// journal keeps the requests whose fate is known and tells observers. The
// servers of an ensemble share one. It is guarded by their mutex.
type journal struct {
	size      int
	observers []func(Request)
	log       []Request
	unseen    []Request // recorded, not yet given to observers
	reporting bool

	commitObservers []func(Commit)
	unseenCommits   []Commit
}

func newJournal(size int) *journal { return &journal{size: size} }

// record notes a request whose fate is known. The mutex is held.
func (s *Server) record(r *request) {
	j := s.journal
	if len(j.observers) == 0 && j.size <= 0 {
		return
	}
	seen := r.public()
	if j.size > 0 {
		if len(j.log) >= 2*j.size {
			j.log = append(j.log[:0], j.log[j.size:]...)
		}
		j.log = append(j.log, seen)
	}
	if len(j.observers) > 0 {
		j.unseen = append(j.unseen, seen)
	}
}

// report calls the observers, outside the mutex and one request at a time.
func (s *Server) report() {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journal
	if j.reporting {
		return // whoever is at it goes on until nothing is left
	}
	j.reporting = true
	for len(j.unseen)+len(j.unseenCommits) > 0 {
		batch, observers := j.unseen, j.observers
		commits, commitObservers := j.unseenCommits, j.commitObservers
		j.unseen, j.unseenCommits = nil, nil
		s.mu.Unlock()
		for _, c := range commits {
			for _, f := range commitObservers {
				f(c)
			}
		}
		for _, r := range batch {
			for _, f := range observers {
				f(r)
			}
		}
		s.mu.Lock()
	}
	j.reporting = false
}

// OnRequest calls f for every request from now on, when its fate is known:
// applied and answered, or struck by a rule. Calls come one at a time and in
// the order of the server's decisions, on the server's goroutines; f may call
// the server, but while it runs nobody else's requests are reported. On a
// member of an ensemble it reports the requests of all members.
func (s *Server) OnRequest(f func(Request)) {
	s.mu.Lock()
	s.journal.observers = append(slices.Clip(s.journal.observers), f)
	s.mu.Unlock()
}

// Log returns the most recent requests, oldest first: at least as many as
// [WithLogSize] says, if there were so many. On a member of an ensemble it
// returns those of all members.
func (s *Server) Log() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.journal.log...)
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
	b.WriteString(r.Time.Format("15:04:05.000000"))
	if r.Member != 0 {
		fmt.Fprintf(&b, " member=%d", r.Member)
	}
	fmt.Fprintf(&b, " client=%q conn=%d session=%#x xid=%d %v",
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
