package zkserver

import (
	"cmp"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zkserver/pipe"
	"github.com/docent-go/docent/internal/zkserver/stats"
	"github.com/docent-go/docent/internal/zoodefs"
)

// reply queues the answer to r and does to it what the verdict says. The mutex is
// held.
func (c *conn) reply(r *request, frame []byte) {
	v := &r.verdict
	switch {
	case c.dead || v.Ignore:
		return
	case r.op == zoodefs.OpCheck && r.err == zoodefs.CodeOK:
		return // the real server fails while it writes the answer
	case v.LoseReply:
		c.close()
		return
	case v.Stall:
		c.link.down.Hold(pipe.HoldStalled)
	}
	c.observe(r, len(frame)-4)
	item := &outItem{frame: frame, ready: len(v.After) == 0 && v.ReplyDelay == 0, stays: c.gated(r, 0, "")}
	c.out = append(c.out, item)
	if v.CloseAfter || r.op == zoodefs.OpCloseSession {
		c.out = append(c.out, &outItem{close: true, ready: true})
	}
	if !item.ready {
		c.prepareItem(item, r)
	}
	c.flush()
}

// refuse answers with an error and nothing else.
func (c *conn) refuse(r *request, zxid int64) {
	if len(c.waiting) > 0 {
		c.waiting = append(c.waiting, r) // it is answered after the writes before it
		return
	}
	e := jute.NewFrame(16)
	e.Header(r.xid, zxid, r.err)
	c.s.record(r)
	c.reply(r, e.Frame())
}

// prepareItem runs the hooks of a reply, and then lets the reply out.
func (c *conn) prepareItem(item *outItem, r *request) {
	v, seen := r.verdict, r.public()
	release := func() {
		c.s.mu.Lock()
		item.ready = true
		c.flush()
		c.s.mu.Unlock()
	}
	if len(v.After) == 0 {
		time.AfterFunc(v.ReplyDelay, release)
		return
	}
	c.s.wg.Go(func() {
		for _, hook := range v.After {
			hook(c.s.ctx, seen)
		}
		if v.ReplyDelay > 0 {
			time.AfterFunc(v.ReplyDelay, release)
			return
		}
		release()
	})
}

// event queues a watch event.
func (c *conn) event(t zoodefs.EventType, path string, zxid int64) {
	if c.dead || c.muted {
		return
	}
	c.s.counts.Events++
	e := jute.NewFrame(32 + len(path))
	e.Header(zoodefs.XidNotification, zxid, zoodefs.CodeOK)
	e.Int(int32(t))
	e.Int(zoodefs.StateSyncConnected)
	e.Text(path)
	c.out = append(c.out, &outItem{frame: e.Frame(), event: true, ready: true, stays: c.gated(nil, t, path)})
	c.flush()
}

// flush hands to the link the frames that may leave. The link never blocks.
func (c *conn) flush() {
	for len(c.out) > 0 && c.out[0].ready && c.out[0].stays == nil && !c.dead {
		item := c.out[0]
		c.out = c.out[1:]
		switch {
		case item.close:
			c.close()
		case item.event:
			c.sent()
			c.link.down.Write(item.frame, c.s.eventDelay)
		default:
			c.sent()
			c.link.down.Write(item.frame, 0)
		}
	}
}

// closeAfterOutput closes the connection after everything that is queued.
func (c *conn) closeAfterOutput() {
	c.out = append(c.out, &outItem{close: true, ready: true})
	c.flush()
}

// mute discards all further output: the reply to the current request is lost, and
// so are the events that it causes.
func (c *conn) mute() { c.muted = true }

// received counts a packet from the client. The mutex is held.
func (c *conn) received() {
	c.stats.Received++
	c.stats.LastIn = time.Now()
	c.s.stats.Received++
}

// sent counts a packet to the client. The mutex is held.
func (c *conn) sent() {
	c.stats.Sent++
	c.s.stats.Sent++
}

// observe counts a request that is answered with size bytes. Auth requests and the
// handshakes of sessions that come back do not count, because they do not pass the
// stages of the real server.
func (c *conn) observe(r *request, size int) {
	if r.op == zoodefs.OpAuth || r.op == zoodefs.OpSASL || r.op == zoodefs.OpConnect && r.txn == nil {
		return
	}
	now := time.Now()
	for _, l := range []*stats.Latencies{&c.stats.Latency, &c.s.stats.Latency} {
		l.Add(now.Sub(r.at))
	}
	st, all := &c.stats, &c.s.stats
	st.LastOp, st.LastZxid, st.LastResponse = r.op, c.s.tree.lastZxid, now
	if r.txn != nil && r.txn.op == zoodefs.OpError {
		st.LastOp = zoodefs.OpError
	}
	if r.op == zoodefs.OpConnect {
		return
	}
	if r.xid >= 0 {
		st.LastXid = r.xid
	}
	if all.LastResponse < 0 || size < all.MinResponse {
		all.MinResponse = size
	}
	all.MaxResponse = max(all.MaxResponse, size)
	all.LastResponse = size
}

// close ends the connection. Its session, if it has one, stays. The mutex is held.
func (c *conn) close() {
	if c.dead {
		return
	}
	c.dead = true
	close(c.done)
	c.s.watches.Forget(c)
	if ses := c.s.sessions[c.session]; ses != nil && ses.conn == c {
		ses.conn = nil
	}
	delete(c.s.conns, c)
	c.link.serverGone = true
	c.s.forget(c.link)
	c.out, c.waiting = nil, nil
	// Later reads fail at once. The client hears of the end after everything that
	// was written before.
	_ = c.end.Close() // it was open until now
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
