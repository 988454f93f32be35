package proxy

import (
	"maps"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Stats counts what passed through a connection or a proxy.
type Stats struct {
	Requests      map[zoodefs.Op]int // read from clients, whatever became of them
	Replies       map[zoodefs.Op]int // read from the server, whatever became of them
	Notifications int                // watch events read from the server
	// RoundTrips counts how often a client waited for the server: requests sent while
	// another is unanswered, or in one flush with it, share one. Handshakes, pings,
	// auth and the renewal of watches make none.
	RoundTrips int
	Swallowed  int // answers dropped by a rule
	Cuts       int // connections cut by a rule or CutAll
}

// ConnStats are the counts of one connection.
type ConnStats struct {
	Conn    int   // counted from 1
	Session int64 // 0 before a handshake
	Open    bool
	Stats
}

func newStats() Stats { return Stats{Requests: map[zoodefs.Op]int{}, Replies: map[zoodefs.Op]int{}} }

func (s *Stats) clone() Stats {
	c := *s
	c.Requests, c.Replies = maps.Clone(s.Requests), maps.Clone(s.Replies)
	return c
}

func (s *Stats) add(o *Stats) {
	for op, n := range o.Requests {
		s.Requests[op] += n
	}
	for op, n := range o.Replies {
		s.Replies[op] += n
	}
	s.Notifications += o.Notifications
	s.RoundTrips += o.RoundTrips
	s.Swallowed += o.Swallowed
	s.Cuts += o.Cuts
}

// Stats returns the counts of all connections, closed ones too, since the start or
// the last ResetStats.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	total := newStats()
	for _, c := range p.all {
		total.add(&c.stats)
	}
	return total
}

// Conns returns the counts of each connection, closed ones too, in the order they
// were accepted.
func (p *Proxy) Conns() []ConnStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]ConnStats, 0, len(p.all))
	for _, c := range p.all {
		out = append(out, ConnStats{Conn: c.id, Session: c.session, Open: p.live[c], Stats: c.stats.clone()})
	}
	return out
}

// ResetStats sets all counts to zero.
func (p *Proxy) ResetStats() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.all {
		c.stats = newStats()
	}
}
