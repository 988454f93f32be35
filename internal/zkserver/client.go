package zkserver

import (
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/docent-go/docent/internal/zkserver/pipe"
)

// ClientLink is the network between one client and the server. Its random draws
// depend on the server's seed, the client's name and the number of the connection,
// and on nothing else. A ClientLink is safe for concurrent use.
type ClientLink struct {
	s    *Server
	name string

	// Guarded by the server's mutex.
	dials       int
	rng         *rand.Rand
	held        pipe.HoldCause
	refusing    bool
	partitioned bool
	paused      chan struct{} // closed on resume; nil while not paused
	latency     pipe.Latency
	lane        pipe.Lane // the instants at which its dials end
}

// Client returns the link of the named client. The first call with a name makes the
// link.
func (s *Server) Client(name string) *ClientLink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client(name)
}

func (s *Server) client(name string) *ClientLink {
	if cl := s.clients[name]; cl != nil {
		return cl
	}
	cl := &ClientLink{
		s: s, name: name, latency: pipe.Latency{Min: s.cfg.MinLatency, Max: s.cfg.MaxLatency},
		rng: s.generator(name, 0, streamDial),
	}
	cl.lane = s.timetable.Take(s.generator(name, 0, streamLane))
	s.clients[name] = cl
	return cl
}

// Name returns the client's name.
func (cl *ClientLink) Name() string { return cl.name }

// Dial connects to the server in memory. While the server or the link refuses, the
// error is ECONNREFUSED. While the link is partitioned, Dial waits until it heals
// or done is closed; the error is [os.ErrDeadlineExceeded] then. After an error no
// connection remains.
func (cl *ClientLink) Dial(done <-chan struct{}) (net.Conn, error) {
	s := cl.s
	for {
		s.mu.Lock()
		changed := s.changed
		switch {
		case s.closed || s.stopped || s.refusing || cl.refusing:
			s.mu.Unlock()
			return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
		case !cl.partitioned && !s.partitioned:
			delay := cl.latency.Draw(cl.rng)
			if delay <= 0 {
				defer s.mu.Unlock()
				return s.open(cl, nil, pipe.Addr(cl.name)), nil
			}
			s.mu.Unlock()
			return cl.dialUntil(cl.lane.From(time.Now().Add(delay)), done)
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-done:
			return nil, os.ErrDeadlineExceeded
		}
	}
}

// dialUntil makes a connection at the given time, when the handshake of TCP has
// taken its latency.
func (cl *ClientLink) dialUntil(at time.Time, done <-chan struct{}) (net.Conn, error) {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
	case <-done:
		return nil, os.ErrDeadlineExceeded
	}
	s := cl.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.stopped {
		return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	return s.open(cl, nil, pipe.Addr(cl.name)), nil
}

// open makes a connection and starts to serve it. The mutex is held. tcp is the
// socket at the client's end, nil in memory.
func (s *Server) open(cl *ClientLink, tcp net.Conn, remote net.Addr) *pipe.End {
	cl.dials++
	s.lastConn++
	lanes := s.generator(cl.name, cl.dials, streamLane)
	k := &link{
		up:    pipe.NewHalf(s.generator(cl.name, cl.dials, streamUp), cl.latency, s.timetable.Take(lanes)),
		down:  pipe.NewHalf(s.generator(cl.name, cl.dials, streamDown), cl.latency, s.timetable.Take(lanes)),
		owner: cl, tcp: tcp,
	}
	if held := cl.held | s.held; held != 0 {
		k.hold(held)
	}
	if cl.paused != nil {
		k.down.Pause()
	}
	here := pipe.Addr("zktest")
	clientEnd := &pipe.End{In: k.down, Out: k.up, Local: remote, Remote: here}
	serverEnd := &pipe.End{In: k.up, Out: k.down, Local: here, Remote: remote}
	clientEnd.OnClose = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		k.clientGone = true
		s.forget(k)
	}
	c := newConn(s, s.lastConn, cl, k, serverEnd)
	s.conns[c] = struct{}{}
	s.links[k] = struct{}{}
	s.wg.Go(c.serve)
	return clientEnd
}

// forget drops a link when neither side uses it any more. While one side does, a
// later call may have to release what the link holds.
func (s *Server) forget(k *link) {
	if k.clientGone && k.serverGone {
		delete(s.links, k)
		s.timetable.Free(k.up.Lane)
		s.timetable.Free(k.down.Lane)
	}
}
