package wire

import (
	"bufio"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/internal/clock"
)

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
	auth    []Auth // sent after the handshake
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

// Exchange is one request of the Link's own and its reply. It serves one [Link.Do].
// After that its caller may read Reply and call its methods.
type Exchange struct {
	Request Request
	Reply   Reply // of use once Answered
	// Urgent lets the request pass requests that wait to be written.
	Urgent bool
	// Keep lets [Exchange.AwaitAnswer] wait for the answer after Do has given up.
	Keep bool
	// OnAnswer is called with the answer, unless the exchange was given up. It runs on
	// the reading goroutine, behind [Config.OnEvent] of what the server has sent before,
	// and in the order of the answers. It may read Reply. It must not block. Optional.
	OnAnswer func()
	// OnQueued is called by Do, of the first of its exchanges, when their place among the
	// requests of the connection is fixed. Requests of a later Do, unless they are Urgent,
	// come behind them or go over another connection. Optional.
	OnQueued func()

	size int           // of the request, as it is written
	got  int           // of the answer; set before answered
	conn *conn         // that it was sent on
	lead *Exchange     // the first exchange of its Do
	left atomic.Int32  // of a lead: how many exchanges of its Do have no answer
	done chan struct{} // of a lead: closed with the last answer

	answered atomic.Bool // Reply and err are set
	err      error       // the answer could not be read
	sent     atomic.Bool // handed to the connection; set under l.mu

	// Guarded by l.mu until Do returns.
	xid   int32
	frame []byte // as it is written
}

// sentRequest is a request that waits for its reply.
type sentRequest struct {
	at     clock.Stamp
	quorum bool      // if it succeeds a quorum has logged it
	end    int64     // bytes handed to the connection, this request included
	x      *Exchange // of the Link's own, nil for go-zookeeper's
	op     Op        // of x
}

// tryTurn takes the turn to write unless another goroutine has it.
func (c *conn) tryTurn() bool {
	select {
	case c.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

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
