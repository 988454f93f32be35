package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"time"
)

const bufferSize = 64 << 10

// conn is one client's connection and its other half to the server.
type conn struct {
	p      *Proxy
	id     int
	client *net.TCPConn
	plain  half // client, or what TLS makes of it; set before anything is forwarded

	toServer, toClient gate
	gone               chan struct{} // closed when nothing more is for the client
	goneOnce           sync.Once

	// guarded by p.mu
	server  half // nil until dialed
	session int64
	stats   Stats
	pending pending
}

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

// admit makes the connection known; nil when the proxy is closed.
func (p *Proxy) admit(client *net.TCPConn) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	c := &conn{p: p, id: len(p.all) + 1, client: client, gone: make(chan struct{}), stats: newStats(), pending: newPending()}
	p.all = append(p.all, c)
	p.live[c] = true
	p.trace.add("#%d accepted", c.id)
	return c
}

func (p *Proxy) discard(c *conn) {
	c.kill()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.live, c)
	p.trace.add("#%d closed", c.id)
}

// open dials the server and waits for the client's first bytes.
func (c *conn) open(ctx context.Context) (*bufio.Reader, error) {
	plain, err := c.p.acceptHalf(ctx, c.client)
	if err != nil {
		return nil, err
	}
	c.plain = plain
	server, err := c.p.dialHalf(ctx)
	if err != nil {
		return nil, err
	}
	c.p.mu.Lock()
	c.server = server
	closed := c.p.closed
	c.p.mu.Unlock()
	if closed || c.isGone() {
		return nil, net.ErrClosed
	}
	reader := bufio.NewReaderSize(c.plain, bufferSize)
	_, err = reader.Peek(prefix)
	return reader, err
}

// isWord reports whether the connection begins with a four-letter word.
func isWord(r *bufio.Reader) bool {
	head, err := r.Peek(prefix)
	if err != nil {
		return false
	}
	for _, b := range head {
		if b < 'a' || b > 'z' {
			return false
		}
	}
	return true
}

func (c *conn) passWords(r *bufio.Reader) {
	var words sync.WaitGroup
	words.Go(func() {
		_, _ = io.Copy(c.server, r)
		_ = c.server.CloseWrite()
	})
	_, _ = io.Copy(c.plain, c.server)
	_ = c.client.Close()
	words.Wait()
}

// leaving says why and how a client's half is closed.
type leaving int

const (
	clientLeft leaving = iota // by itself
	cutCounted                // by us; what is not yet forwarded is lost
	cutLinger                 // by us; the server learns when it has answered
)

// leave closes the client's half, once, and the way to the server behind what was
// forwarded. What the server still sends is read and dropped, for a limited time.
func (c *conn) leave(how leaving) {
	if !c.closeGone() {
		return
	}
	_ = c.client.Close()
	c.p.mu.Lock()
	server := c.server
	if how != clientLeft {
		c.stats.Cuts++
		c.p.trace.add("#%d cut", c.id)
	}
	c.p.mu.Unlock()
	if server == nil {
		return
	}
	_ = server.SetReadDeadline(time.Now().Add(lingerLimit))
	if how != cutLinger {
		_ = server.CloseWrite()
	}
}

// closeGone closes gone, and reports whether this was the first call.
func (c *conn) closeGone() bool {
	first := false
	c.goneOnce.Do(func() {
		close(c.gone)
		first = true
	})
	return first
}

func (c *conn) isGone() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// kill closes both halves at once.
func (c *conn) kill() {
	c.closeGone()
	_ = c.client.Close()
	c.p.mu.Lock()
	server := c.server
	c.p.mu.Unlock()
	if server != nil {
		shut(server)
	}
}

// passGates waits at the gates of a direction; false when the client is gone.
func (c *conn) passGates(all, own *gate) bool {
	for {
		if !all.pass(c.gone) || !own.pass(c.gone) {
			return false
		}
		if all.open() {
			return true
		}
	}
}

func (c *conn) note(format string, args ...any) {
	c.p.note("#%d "+format, append([]any{c.id}, args...)...)
}
