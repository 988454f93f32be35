package wire

import (
	"bufio"
	"crypto/tls"
	"net"
	"time"
)

func newConn(l *Link, nc net.Conn, server string) *conn {
	c := &conn{
		l:      l,
		nc:     nc,
		server: server,
		dead:   make(chan struct{}),
		upped:  make(chan struct{}),
		br:     bufio.NewReaderSize(nc, readBuffer),
		turn:   make(chan struct{}, 1),
		inline: buffers(nc),
		sent:   make(map[int32]sentRequest),
	}
	c.flusher = c.flush
	c.number = l.dials.Add(1)
	return c
}

// buffers reports whether a kernel takes the bytes that are written to nc and sends
// them later. Other connections may hold their writer until the peer has read. So may
// a Unix socket, which counts a small write as many more bytes.
func buffers(nc net.Conn) bool {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	_, ok := nc.(*net.TCPConn)
	return ok
}

const readBuffer = 16 << 10

// Read delivers the server's bytes, without the frames that answer the Link's own
// requests. Any error is final: the connection is closed.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := c.readable(); err != nil {
		return 0, err
	}
	if !c.greeted {
		if err := c.greet(); err != nil {
			return 0, err
		}
	}
	if c.remain == 0 {
		if err := c.nextReply(); err != nil {
			return 0, err
		}
	}
	if len(c.held) > 0 {
		n := copy(p, c.held)
		c.held = c.held[n:]
		c.delivered(n)
		return n, nil
	}
	n, err := c.br.Read(p[:min(len(p), c.remain)])
	c.delivered(n)
	if err != nil {
		return n, c.fail("read", err)
	}
	return n, nil
}

// delivered counts bytes of the current frame.
func (c *conn) delivered(n int) {
	c.remain -= n
	if c.remain == 0 {
		c.hello = false
	}
}

// readable says whether Read may deliver. An accepted ConnectResponse is delivered to
// its end even if the connection has failed meanwhile. Otherwise go-zookeeper would
// ask for a new session although the Link has one.
func (c *conn) readable() error {
	select {
	case <-c.dead:
	default:
		return nil
	}
	if err := c.l.ended(); err != nil {
		return err
	}
	if c.hello {
		return nil
	}
	return c.failure()
}

// Write sends frames. p must hold whole frames: go-zookeeper writes each of its
// requests with one call. Any error is final: the connection is closed. A frame that
// is too large is refused before any byte of it is sent.
func (c *conn) Write(p []byte) (int, error) {
	select {
	case c.turn <- struct{}{}:
		defer c.yield()
	case <-c.dead:
		return 0, c.failure()
	}
	done := 0
	for done < len(p) {
		size, err := c.frameSize(p[done:])
		if err != nil {
			return done, c.fail("write", err)
		}
		if err := c.forward(p[done : done+size]); err != nil {
			return done, err
		}
		done += size
	}
	return done, nil
}

// Close closes the connection; the session lives on.
func (c *conn) Close() error {
	c.l.failConn(c, net.ErrClosed)
	return nil
}

// LocalAddr returns the local address of the dialed connection.
func (c *conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// RemoteAddr returns the remote address of the dialed connection.
func (c *conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// SetDeadline is ignored until the handshake is accepted, like the other two:
// until then the Link's own limit holds.
func (c *conn) SetDeadline(t time.Time) error { return c.once(c.nc.SetDeadline, t) }

// SetReadDeadline is called by the reading goroutine.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.readSet, c.readSpan = time.Now(), max(0, time.Until(t))
	return c.once(c.nc.SetReadDeadline, t)
}

// SetWriteDeadline is ignored until the handshake is accepted.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.once(c.nc.SetWriteDeadline, t) }
