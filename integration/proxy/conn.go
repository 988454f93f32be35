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

// CutAll cuts every connection that there is now, hung ones too.
func (p *Proxy) CutAll() {
	for _, c := range p.connections() {
		c.leave(cutCounted)
	}
	p.closeHung()
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
