package zkserver

import (
	"cmp"
	"slices"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Outgoing is a reply or a watch event that is to leave a connection.
type Outgoing struct {
	Number  int // counted by the server
	Client  string
	Conn    int
	Session int64
	Event   zoodefs.EventType // zero for a reply
	Path    string            // of the event
	Request Request           // that is answered
}

// GateOutput makes gate decide, from now on, which replies and events stay until
// [Server.LetOut]. The frames behind them on the connection stay as well. Without a gate
// everything that stays leaves. The server calls gate with its mutex held, so it must not
// call the server.
func (s *Server) GateOutput(gate func(Outgoing) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outGate = gate
	if gate != nil {
		return
	}
	for c := range s.conns {
		for _, item := range c.out {
			item.stays = nil
		}
		c.flush()
	}
}

// Staying returns what the gate keeps: of each connection the first, by the number of the
// connection.
func (s *Server) Staying() []Outgoing {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Outgoing
	for c := range s.conns {
		if len(c.out) > 0 && c.out[0].stays != nil {
			all = append(all, *c.out[0].stays)
		}
	}
	slices.SortFunc(all, func(a, b Outgoing) int { return cmp.Compare(a.Conn, b.Conn) })
	return all
}

// LetOut lets what [Server.Staying] has listed under a number leave.
func (s *Server) LetOut(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if len(c.out) > 0 && c.out[0].stays != nil && c.out[0].stays.Number == number {
			c.out[0].stays = nil
			c.flush()
		}
	}
}

// gated asks the gate about the answer to r, or about an event if r is nil. The mutex is
// held.
func (c *conn) gated(r *request, event zoodefs.EventType, path string) *Outgoing {
	if c.s.outGate == nil {
		return nil
	}
	c.s.outNumber++
	o := &Outgoing{Number: c.s.outNumber, Client: c.owner.name, Conn: c.id, Session: c.session, Event: event, Path: path}
	if r != nil {
		o.Request = r.public()
	}
	if !c.s.outGate(*o) {
		return nil
	}
	return o
}
