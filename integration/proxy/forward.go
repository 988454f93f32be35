package proxy

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"

	"github.com/docent-go/docent/internal/zoodefs"
)

// serve passes one connection on and returns when both halves are closed.
func (p *Proxy) serve(ctx context.Context, client *net.TCPConn) {
	c := p.admit(client)
	if c == nil {
		_ = client.Close()
		return
	}
	defer p.discard(c)
	reader, err := c.open(ctx)
	if err != nil {
		p.note("#%d %v", c.id, err)
		_ = client.SetLinger(0) // reset: the server could not be reached
		return
	}
	if isWord(reader) {
		c.passWords(reader)
		return
	}
	var requests sync.WaitGroup
	requests.Go(func() {
		err := c.forwardRequests(reader)
		c.note("requests end: %v", err)
		if c.passGates(&p.toServer, &c.toServer) {
			c.leave(clientLeft)
		}
	})
	err = c.forwardReplies(bufio.NewReaderSize(c.server, bufferSize))
	c.note("replies end: %v", err)
	c.passGates(&p.toClient, &c.toClient)
	c.closeGone()
	_ = client.Close()
	requests.Wait()
}

var errCut = errors.New("cut")

// forwardRequests passes frames from client to server until one side ends or a rule
// cuts the connection.
func (c *conn) forwardRequests(r *bufio.Reader) error {
	flush := false // the frame came in one read with the one before
	for first := true; ; first = false {
		frame, err := readFrame(r)
		if err != nil {
			return err
		}
		req := c.arrived(frame, first, flush)
		flush = r.Buffered() > 0 && ordinary(req.Op)
		if err := c.act(frame, req); err != nil {
			return err
		}
	}
}

// arrived counts a request.
func (c *conn) arrived(frame []byte, first, flush bool) Request {
	parse := parseRequest
	if first {
		parse = parseConnect
	}
	req := parse(frame)
	req.Conn = c.id
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if !first {
		req.Session = c.session
	}
	c.stats.Requests[req.Op]++
	if ordinary(req.Op) && c.pending.ordinary == 0 && !flush {
		c.stats.RoundTrips++
	}
	c.p.trace.add("#%d > %s xid %d %s%v watch %t", c.id, req.Op, req.Xid, req.Path, req.Parts, req.Watch)
	return req
}

// act does to a request what its rule says, by default nothing but forward it.
func (c *conn) act(frame []byte, req Request) error {
	rule := c.p.choose(req)
	a := &asked{Request: req, rule: rule}
	if rule == nil {
		return c.forward(frame, a)
	}
	c.note("! %s: %s xid %d %s", rule.action, req.Op, req.Xid, req.Path)
	for _, f := range rule.then {
		f(req)
	}
	switch rule.action {
	case CutBefore:
		c.leave(cutCounted)
		rule.noteFired(req)
		return errCut
	case Stall:
		rule.stall(&c.toServer, &c.toClient)
		rule.noteFired(req)
	case StallRequests:
		rule.stall(&c.toServer)
		rule.noteFired(req)
	case StallReplies:
		rule.awaitAnswer(a)
	case SwallowReply, SwallowReplyAndCut, CutAfterSend:
	}
	if err := c.forward(frame, a); err != nil {
		return err
	}
	switch rule.action {
	case CutAfterSend:
		c.leave(cutLinger)
		rule.noteFired(req)
		return errCut
	case SwallowReply, SwallowReplyAndCut, StallReplies:
		rule.noteFired(req)
	case CutBefore, Stall, StallRequests:
	}
	return nil
}

// forward writes a request to the server once the gates let it.
func (c *conn) forward(frame []byte, a *asked) error {
	if !c.passGates(&c.p.toServer, &c.toServer) {
		return errCut
	}
	c.p.mu.Lock()
	c.pending.add(a)
	c.p.mu.Unlock()
	_, err := c.server.Write(frame)
	return err
}

// forwardReplies passes frames from server to client until the server ends. Once the
// client is gone it only reads them.
func (c *conn) forwardReplies(r *bufio.Reader) error {
	for first := true; ; first = false {
		frame, err := readFrame(r)
		if err != nil {
			return err
		}
		a, rep := c.answered(frame, first)
		if a != nil && a.rule != nil {
			kept := c.treatAnswer(a)
			a.rule.noteAnswered(rep)
			if !kept {
				continue
			}
		}
		if !c.passGates(&c.p.toClient, &c.toClient) {
			continue
		}
		if _, err := c.plain.Write(frame); err != nil {
			c.leave(clientLeft)
		}
	}
}

// answered counts an answer and finds its request, nil for a notification.
func (c *conn) answered(frame []byte, first bool) (*asked, Reply) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if first {
		c.session = parseConnected(frame)
		c.stats.Replies[zoodefs.OpConnect]++
		c.p.trace.add("#%d < connected session %#x", c.id, uint64(c.session))
		return c.pending.take(0), Reply{}
	}
	rep := parseReply(frame)
	if rep.Xid == xidNotification {
		c.stats.Notifications++
		c.p.trace.add("#%d < notification", c.id)
		return nil, rep
	}
	a := c.pending.take(rep.Xid)
	if a == nil {
		c.p.trace.add("#%d < xid %d of no request", c.id, rep.Xid)
		return nil, rep
	}
	if rep.Err == 0 && a.Op.Creates() {
		rep.Path = madePath(frame)
	}
	c.stats.Replies[a.Op]++
	c.p.trace.add("#%d < %s xid %d zxid %#x err %d %s", c.id, a.Op, rep.Xid, rep.Zxid, rep.Err, rep.Path)
	return a, rep
}

// treatAnswer does to the answer to a what a's rule says, and reports whether the
// client is to hear it.
func (c *conn) treatAnswer(a *asked) (kept bool) {
	switch a.rule.action {
	case SwallowReply:
		c.swallowed()
	case SwallowReplyAndCut:
		c.swallowed()
		c.leave(cutCounted)
	case CutAfterSend:
		_ = c.server.CloseWrite()
	case StallReplies:
		a.rule.stallAnswer(a, &c.toClient)
		return true
	case CutBefore, Stall, StallRequests:
		return true
	}
	return false
}

func (c *conn) swallowed() {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.stats.Swallowed++
}
