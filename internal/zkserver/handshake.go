package zkserver

import (
	"bufio"
	"time"

	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zoodefs"
)

// handshake reads the first frame, which is a connect request unless its
// length spells a four-letter word.
func (c *conn) handshake(br *bufio.Reader) error {
	n, err := readLength(br)
	if err != nil {
		return err
	}
	if word, ok := fourLetterWord(n); ok {
		return c.answerWord(word, br)
	}
	frame, err := c.readFrame(br, n)
	if err != nil {
		return err
	}
	c.s.mu.Lock()
	c.received()
	c.s.mu.Unlock()
	d := jute.Decoder{B: frame}
	req := d.Connect()
	if d.Err != nil {
		return d.Err
	}
	if err := c.awaitAccept(); err != nil {
		return err
	}
	r := &request{s: c.s, c: c, client: c.owner.name, op: zoodefs.OpConnect, session: req.Session, at: time.Now()}
	if err := c.judgeConnect(r); err != nil {
		return err
	}
	c.s.mu.Lock()
	c.connect(r, req)
	c.s.mu.Unlock()
	c.s.report()
	select {
	case <-c.ready:
		return nil
	case <-c.done:
		return errConnOver
	}
}

// awaitAccept keeps the handshake waiting while the server hangs, and for one
// latency after that. Handshakes that went on at one instant would get their
// session ids in any order.
func (c *conn) awaitAccept() error {
	for waited := false; ; waited = true {
		c.s.mu.Lock()
		hanging, changed := c.s.hanging, c.s.changed
		c.s.mu.Unlock()
		if !hanging {
			if waited {
				return c.pause(c.link.up.Again())
			}
			return nil
		}
		select {
		case <-changed:
		case <-c.done:
			return errConnOver
		}
	}
}

// judgeConnect applies the verdict about a handshake.
func (c *conn) judgeConnect(r *request) error {
	s := c.s
	s.mu.Lock()
	s.counts.Ops[zoodefs.OpConnect]++
	r.verdict = s.judged(r)
	if r.verdict.Drop || r.verdict.Ignore {
		s.record(r)
	}
	s.mu.Unlock()
	if r.verdict.Drop {
		s.report()
		return errConnOver
	}
	if err := c.before(r); err != nil {
		return err
	}
	if r.verdict.Ignore {
		s.report()
		<-c.done
		return errConnOver
	}
	return nil
}

// connect opens a session or attaches the connection to one. The mutex is
// held.
func (c *conn) connect(r *request, req jute.ConnectRequest) {
	s := c.s
	if c.dead {
		return
	}
	if s.cfg.has(QuirkNoReattach) {
		req.Session, req.LastZxid, req.OldClient = 0, 0, true
	}
	if s.readsOnly() {
		c.connectReadOnly(r, req)
		return
	}
	if s.away() && s.cfg.has(QuirkAnswerLeaderless) {
		c.answerLeaderless(r, s.clampTimeout(req.TimeoutMS))
		return
	}
	if s.away() || req.LastZxid > s.tree.lastZxid {
		// The server closes the connection without an answer if it has no quorum, or
		// if the client has seen a later zxid.
		c.close()
		return
	}
	c.oldClient = req.OldClient
	c.timeout = s.clampTimeout(req.TimeoutMS)
	if req.Session == 0 && r.verdict.Fail == zoodefs.CodeOK {
		r.session = s.nextSession
		s.nextSession++
		c.session, r.timeout = r.session, c.timeout
		if s.member == nil {
			s.track(r)
		}
		s.submit(r)
		return
	}
	// The older connection is closed first, even if the password is wrong.
	if ses := s.sessions[req.Session]; ses != nil && ses.conn != nil {
		ses.conn.close()
	}
	if r.verdict.LoseReply {
		c.mute()
	}
	valid := passwordMatches(req.Session, req.Password) && r.verdict.Fail == zoodefs.CodeOK
	if s.member != nil && valid {
		s.member.revalidate(c, r)
		return
	}
	c.attach(r, valid && s.touch(r.session, c.timeout))
}

// revalidate asks the leader whether a client may come back with its session, which
// then belongs to this member. If the session has a connection to another member,
// that connection stays open, as on the real server. A request on it that needs the
// leader finds that the session has moved.
func (m *Member) revalidate(c *conn, r *request) {
	m.ask(func(lead *Member) {
		valid := lead.touch(r.session, c.timeout)
		if valid {
			lead.sessions[r.session].owner = m.server
		}
		if c.dead {
			return
		}
		if valid {
			m.learnSession(r.session, c.timeout, r.client)
		}
		c.attach(r, valid)
	})
}

// connectReadOnly answers a handshake on a server without a quorum. Such a server has
// local sessions only. It closes the connection of a client that does not ask for a
// read-only server, has seen a later zxid, or comes back with a session of the quorum.
func (c *conn) connectReadOnly(r *request, req jute.ConnectRequest) {
	s := c.s
	ses := s.sessions[req.Session]
	if !req.ReadOnly || req.LastZxid > s.tree.lastZxid || ses != nil && !ses.local {
		c.close()
		return
	}
	c.oldClient, c.timeout = req.OldClient, s.clampTimeout(req.TimeoutMS)
	switch {
	case req.Session != 0:
		if ses != nil && ses.conn != nil {
			ses.conn.close()
		}
		valid := ses != nil && passwordMatches(req.Session, req.Password) && r.verdict.Fail == zoodefs.CodeOK
		c.attach(r, valid && s.touch(r.session, c.timeout))
	case s.cfg.GlobalSessions:
		c.refuseSession(r)
	default:
		r.session, r.timeout = s.nextSession, c.timeout
		s.nextSession++
		s.track(r)
		s.sessions[r.session].local = true
		s.touch(r.session, r.timeout)
		c.attach(r, true)
	}
}

// refuseSession answers a handshake as a read-only server does that has no local sessions:
// with the header of a reply, and nothing more until it gives the connection up.
func (c *conn) refuseSession(r *request) {
	r.err = zoodefs.CodeNotReadOnly
	e := jute.NewFrame(16)
	e.Header(0, c.s.tree.lastZxid, r.err)
	c.s.record(r)
	c.reply(r, e.Frame())
	time.AfterFunc(c.timeout, func() {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		c.close()
	})
}

// attach answers a client that comes back with a session.
func (c *conn) attach(r *request, valid bool) {
	if !valid {
		r.err = zoodefs.CodeSessionExpired
		c.s.record(r)
		c.connectReply(r, 0, 0, make([]byte, 16))
		c.closeAfterOutput()
		return
	}
	c.session = r.session
	c.s.sessions[r.session].conn = c
	c.s.record(r)
	c.connected(r)
}

// connected tells the client its session and lets its requests in.
func (c *conn) connected(r *request) {
	password := make([]byte, 16)
	if !c.s.cfg.has(QuirkNoReattach) {
		password = sessionPassword(c.session)
	}
	c.connectReply(r, c.timeout, c.session, password)
	close(c.ready)
}

// answerLeaderless turns a client away as Keeper does.
func (c *conn) answerLeaderless(r *request, timeout time.Duration) {
	e := jute.NewFrame(36)
	e.Int(leaderlessProtocol)
	e.Int(int32(timeout / time.Millisecond))
	e.Long(-1)
	e.Buffer(make([]byte, 16))
	c.reply(r, e.Frame())
	c.closeAfterOutput()
}

func (c *conn) connectReply(r *request, timeout time.Duration, id int64, password []byte) {
	e := jute.NewFrame(48)
	e.Int(0)
	e.Int(int32(timeout / time.Millisecond))
	e.Long(id)
	e.Buffer(password)
	if !c.oldClient {
		e.Bool(c.s.readsOnly())
	}
	c.reply(r, e.Frame())
}
