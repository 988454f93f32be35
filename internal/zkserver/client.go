package zkserver

import (
	"bufio"
	"context"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/docent-go/docent/internal/zkserver/pipe"
)

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

// serve reads the connection until it ends.
func (c *conn) serve() {
	br := bufio.NewReaderSize(c.end, 4096)
	err := c.admit()
	if err == nil {
		err = c.handshake(br)
	}
	for err == nil {
		err = c.next(br)
	}
	c.s.mu.Lock()
	c.close()
	c.s.mu.Unlock()
}

// admit turns a connection away that is above the limit.
func (c *conn) admit() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.crowded(c) {
		return errConnOver
	}
	return nil
}

// crowded reports whether a new connection is above the limit. The connection
// itself counts. The mutex is held.
func (s *Server) crowded(c *conn) bool {
	if s.maxConns <= 0 {
		return false
	}
	n := 0
	for other := range s.conns {
		if other.owner == c.owner {
			n++
		}
	}
	return n > s.maxConns
}

// Partition holds both directions of the client's connections and keeps its dials
// waiting.
func (cl *ClientLink) Partition() {
	cl.s.mu.Lock()
	cl.partitioned = true
	cl.s.mu.Unlock()
	cl.holdLinks(pipe.HoldPartition)
}

// PartitionReplies holds only what the server sends. New dials wait.
func (cl *ClientLink) PartitionReplies() {
	cl.partitionHalf(func(k *link) *pipe.Half { return k.down })
}

// PartitionRequests holds only what the client sends. New dials wait.
func (cl *ClientLink) PartitionRequests() {
	cl.partitionHalf(func(k *link) *pipe.Half { return k.up })
}

func (cl *ClientLink) partitionHalf(pick func(*link) *pipe.Half) {
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	cl.partitioned = true
	for k := range cl.s.links {
		if k.owner == cl {
			pick(k).Hold(pipe.HoldPartition)
		}
	}
}

// Heal undoes Partition, PartitionReplies, PartitionRequests and every stalled
// reply.
func (cl *ClientLink) Heal() {
	cl.s.mu.Lock()
	cl.partitioned = false
	cl.s.networkChanged()
	cl.s.mu.Unlock()
	cl.releaseLinks(pipe.HoldPartition | pipe.HoldStalled)
}

// Freeze holds both directions of the client's connections, including later ones.
// Dials succeed.
func (cl *ClientLink) Freeze() { cl.holdLinks(pipe.HoldFrozen) }

// Thaw undoes Freeze.
func (cl *ClientLink) Thaw() { cl.releaseLinks(pipe.HoldFrozen) }

// Refuse makes the client's dials fail with ECONNREFUSED.
func (cl *ClientLink) Refuse() { cl.setRefusing(true) }

// Accept undoes Refuse.
func (cl *ClientLink) Accept() { cl.setRefusing(false) }

func (cl *ClientLink) setRefusing(on bool) {
	cl.s.mu.Lock()
	cl.refusing = on
	cl.s.networkChanged()
	cl.s.mu.Unlock()
}

// Cut closes the client's connections and returns how many there were.
func (cl *ClientLink) Cut() int {
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	n := 0
	for c := range cl.s.conns {
		if c.owner == cl {
			c.close()
			n++
		}
	}
	return n
}

// Pause holds both directions and stops the deadlines of the connections.
func (cl *ClientLink) Pause() {
	cl.s.mu.Lock()
	if cl.paused == nil {
		cl.paused = make(chan struct{})
	}
	for k := range cl.s.links {
		if k.owner == cl {
			k.down.Pause()
		}
	}
	cl.s.mu.Unlock()
	cl.holdLinks(pipe.HoldPaused)
}

// Resume undoes Pause. Deadlines have as much time left as they had.
func (cl *ClientLink) Resume() {
	cl.releaseLinks(pipe.HoldPaused)
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	if cl.paused != nil {
		close(cl.paused)
		cl.paused = nil
	}
	for k := range cl.s.links {
		if k.owner == cl {
			k.down.Resume()
		}
	}
}

// Gate returns at once if the client is not paused. Otherwise it waits until the
// client is resumed, or until ctx ends; it returns the cause of ctx then.
func (cl *ClientLink) Gate(ctx context.Context) error {
	for {
		cl.s.mu.Lock()
		paused := cl.paused
		cl.s.mu.Unlock()
		if paused == nil {
			return nil
		}
		select {
		case <-paused:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// SetLatency changes the latency of the client's connections, including later ones.
func (cl *ClientLink) SetLatency(lo, hi time.Duration) {
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	cl.latency = pipe.Latency{Min: lo, Max: hi}
	for k := range cl.s.links {
		if k.owner == cl {
			k.up.SetLatency(lo, hi)
			k.down.SetLatency(lo, hi)
		}
	}
}

func (cl *ClientLink) holdLinks(c pipe.HoldCause) {
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	cl.held |= c
	for k := range cl.s.links {
		if k.owner == cl {
			k.hold(c)
		}
	}
}

func (cl *ClientLink) releaseLinks(c pipe.HoldCause) {
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	cl.held &^= c
	for k := range cl.s.links {
		if k.owner == cl {
			k.release(c &^ cl.s.held)
		}
	}
}
