package zkserver

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/docent-go/docent/internal/zkserver/access"
	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zkserver/pipe"
	"github.com/docent-go/docent/internal/zkserver/stats"
	"github.com/docent-go/docent/internal/zoodefs"
)

// maxUnread is how many bytes a client may leave unread before its requests wait.
const maxUnread = 8 << 20

func newConn(s *Server, id int, cl *ClientLink, k *link, end *pipe.End) *conn {
	c := &conn{
		s: s, id: id, owner: cl, link: k, end: end,
		done: make(chan struct{}), ready: make(chan struct{}),
		rng: s.generator(cl.name, cl.dials, streamConn),
	}
	c.stats = stats.NewConn(time.Now())
	c.auth = []access.ID{{Scheme: "ip", Name: hostOf(end.Remote)}}
	return c
}

// hostOf returns the address by which the ip scheme knows a client. In memory every
// client is the loopback.
func hostOf(a net.Addr) string {
	if ap, err := netip.ParseAddrPort(a.String()); err == nil {
		return ap.Addr().Unmap().String()
	}
	return "127.0.0.1"
}

var (
	errFrameLength = errors.New("zktest: frame length out of range")
	errConnOver    = errors.New("zktest: connection is over")
)

// readFrame reads a frame of the given length. A length above the limit ends the
// connection before anything is allocated for it.
func (c *conn) readFrame(br *bufio.Reader, n uint32) ([]byte, error) {
	if int64(n) > int64(c.s.cfg.MaxFrame) {
		return nil, errFrameLength
	}
	p := make([]byte, n)
	_, err := io.ReadFull(br, p)
	return p, err
}

func readLength(br *bufio.Reader) (uint32, error) {
	var head [4]byte
	if _, err := io.ReadFull(br, head[:]); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(head[:]), nil
}

// next reads and handles one request.
func (c *conn) next(br *bufio.Reader) error {
	n, err := readLength(br)
	if err != nil {
		return err
	}
	frame, err := c.readFrame(br, n)
	if err != nil {
		return err
	}
	c.link.down.AwaitRoom(maxUnread)
	d := jute.Decoder{B: frame}
	r := &request{s: c.s, c: c, client: c.owner.name, xid: d.Int(), op: zoodefs.Op(d.Int()), at: time.Now()}
	if d.Err != nil {
		return d.Err
	}
	r.body = d.B
	r.describe()
	return c.handle(r)
}

// handle asks the judge about a request and takes it into the server.
func (c *conn) handle(r *request) error {
	s := c.s
	s.mu.Lock()
	r.session, r.ids = c.session, c.auth
	r.step = c.loginStep(r.op)
	c.received()
	s.counts.Ops[r.op]++
	r.verdict = s.judged(r)
	s.mu.Unlock()
	if r.verdict.Drop {
		s.mu.Lock()
		s.record(r)
		c.close()
		s.mu.Unlock()
		s.report()
		return errConnOver
	}
	if err := c.before(r); err != nil {
		return err
	}
	s.mu.Lock()
	if c.dead {
		s.mu.Unlock()
		return errConnOver
	}
	c.accept(r)
	s.mu.Unlock()
	s.report()
	return nil
}

// before runs the hooks and the delay that come before a request.
func (c *conn) before(r *request) error {
	for _, hook := range r.verdict.Before {
		hook(c.s.ctx, r.public())
	}
	return c.pause(r.verdict.Delay)
}

// pause waits, but not longer than the connection lasts.
func (c *conn) pause(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-c.done:
		return errConnOver
	}
}

// accept submits a request. The mutex is held.
func (c *conn) accept(r *request) {
	s := c.s
	switch {
	case r.op == zoodefs.OpAuth:
		c.authPacket(r)
		return
	case r.op == zoodefs.OpSASL && !s.cfg.lacks(zoodefs.OpSASL):
		c.saslPacket(r)
		return
	case !c.admitted() && !r.verdict.Ignore:
		c.turnAway(r, zoodefs.CodeSessionClosedSASL)
		return
	case !s.touch(c.session, c.timeout):
		return // the real server drops the request without an answer, too
	case r.verdict.Ignore:
		s.record(r)
		return
	case r.verdict.Fail != zoodefs.CodeOK:
		r.err = r.verdict.Fail
		c.refuse(r, s.tree.lastZxid)
		return
	case s.cfg.has(QuirkCloseOnUnknown) && (r.unknownPart || !s.knows(r.op)):
		r.err = zoodefs.CodeUnimplemented
		s.record(r)
		c.close()
		return
	case !s.knows(r.op):
		r.err = zoodefs.CodeUnimplemented
		c.refuse(r, -1)
		c.closeAfterOutput()
		return
	case s.readsOnly():
		c.acceptReadOnly(r)
		return
	}
	s.submit(r)
}

// acceptReadOnly performs a request on a server without a quorum.
func (c *conn) acceptReadOnly(r *request) {
	s := c.s
	switch {
	case isWrite(r.op):
		r.err = zoodefs.CodeNotReadOnly
		c.refuse(r, s.tree.lastZxid)
	case r.op == zoodefs.OpCloseSession: // it is local, so there is nothing to commit
		s.finish(r)
	default:
		s.prep.prepare(r)
		s.finish(r)
	}
}

// knows reports whether the server can process requests of the type.
func (s *Server) knows(op zoodefs.Op) bool {
	switch op {
	case zoodefs.OpConnect, zoodefs.OpExpire:
		return false
	case zoodefs.OpCheck:
		return !s.cfg.traits.refusesCheck
	default:
		return op.Known() && !s.cfg.lacks(op)
	}
}

// SetJudge makes judge decide about every request and every handshake from now
// on.
func (s *Server) SetJudge(judge Judge) {
	s.mu.Lock()
	s.judge = judge
	s.mu.Unlock()
}

// judged asks the judge about a request. The mutex is held.
func (s *Server) judged(r *request) Verdict {
	if s.judge == nil {
		return Verdict{}
	}
	return s.judge(r.public(), r.c.rng.Float64)
}
