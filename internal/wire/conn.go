package wire

import (
	"bufio"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/internal/clock"
)

const readBuffer = 16 << 10

// conn is one dialed connection of a Link, as go-zookeeper sees it.
type conn struct {
	l      *Link
	nc     net.Conn
	server string
	login  Login         // nil without one
	number uint64        // among the connections of l, from 1
	dead   chan struct{} // closed when err is set
	up     atomic.Bool   // handshake accepted; set under l.mu
	upped  chan struct{} // closed when up is set

	// Owned by the reading goroutine.
	br      *bufio.Reader
	remain  int    // bytes of the current frame not delivered yet
	held    []byte // the bytes of those that have been read already
	greeted bool   // ConnectResponse accepted
	hello   bool   // the current frame is the ConnectResponse
	// How much time go-zookeeper gives the server for its next frame, and since when.
	readSpan time.Duration
	readSet  time.Time

	// turn holds a token while a goroutine writes. It is a channel, not a mutex,
	// because it is held across I/O and waited for with a context.
	turn   chan struct{}
	inline bool // callers may write by themselves

	// Guarded by l.mu.
	err       error
	late      *time.Timer // calls tooLate
	loggingIn bool        // since the handshake
	dialed    *Dialed     // until the handshake has ended
	asked     bool        // ConnectRequest handed to the network
	askedID   int64
	askedAt   clock.Stamp
	authed    int // answers to setAuth seen
	sent      map[int32]sentRequest
	pings     []clock.Stamp // sent and not answered; they have one xid and are answered in order
	signs     signs
	queue     []*Exchange // not written yet
	flusher   func()      // flush, made once
	flushing  bool        // it runs
	closing   bool        // a closeSession is on its way
	xids      uint32      // counts the exchanges; starts again at a multiple of ownXids
	handed    int64       // bytes of requests, up to the newest that was sent
	acked     int64       // and up to the newest that was answered
}

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

func (c *conn) yield() { <-c.turn }

// tryTurn takes the turn to write unless another goroutine has it.
func (c *conn) tryTurn() bool {
	select {
	case c.turn <- struct{}{}:
		return true
	default:
		return false
	}
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

// once sets a deadline if the handshake is accepted.
func (c *conn) once(set func(time.Time) error, t time.Time) error {
	if !c.up.Load() {
		return nil
	}
	return set(t)
}

// fail makes the connection fail. It returns the error for the caller: err, or the
// earlier reason if the connection has failed already.
func (c *conn) fail(op string, err error) error {
	if c.l.failConn(c, fmt.Errorf("%s: %w", op, err)) {
		return err
	}
	return c.failure()
}

// failure returns why the connection failed.
func (c *conn) failure() error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.l.cause != nil {
		return overError(c.l.cause)
	}
	return c.err
}

// close is shut for a connection that has failed. It runs on a goroutine of its own, as
// the Close of a dialer's connection may wait.
func (c *conn) close() {
	defer c.l.flushers.Done()
	c.shut()
}

// shut closes the socket at once. Closing a TLS connection may wait seconds to send
// an alert that the server does not need, so the connection beneath is closed first.
func (c *conn) shut() {
	if t, ok := c.nc.(interface{ NetConn() net.Conn }); ok {
		_ = t.NetConn().Close()
	}
	_ = c.nc.Close()
}
