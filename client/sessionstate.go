package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/duties"
	"github.com/docent-go/docent/client/internal/lease"
	"github.com/docent-go/docent/internal/wire"
)

var (
	errLease      = errors.New("no request sent within the session timeout was answered")
	errConnClosed = errors.New("the zk.Conn was closed by its user")
)

const (
	zkBuffer        = 1536 << 10 // that a zk.Conn makes for its requests
	requestOverhead = 4 << 10    // bytes of that buffer beside the largest request
)

// sessionState is one ZooKeeper session: its wire.Link, which says whether it is
// over, its zk.Conn, its watches and its lease. [Session] is the handle that callers
// have.
type sessionState struct {
	core *core
	link *wire.Link
	conn *zk.Conn
	hub  *hub

	ctx    context.Context //nolint:containedctx // the life of the session, not of a call
	cancel context.CancelCauseFunc

	lease   *leaseKeeper
	started chan struct{} // closed when conn is set; go-zookeeper's goroutine runs before that
	parked  chan struct{} // closed when go-zookeeper's loops have ended after the end of the session
	unpark  chan struct{} // closed when go-zookeeper may find out that its Conn is closed
	drained chan struct{} // closed when go-zookeeper's last goroutine has ended
	park    sync.Once

	running sync.WaitGroup // heartbeats and the goroutines of the hub; not added to once disposed

	mu         sync.Mutex // guards the rest; never held across I/O
	disposed   bool
	product    string        // what the servers are, "" until a server has answered
	settled    bool          // all that follows from the product has been done
	barred     error         // why the server of the present connection says nothing about it
	recognised chan struct{} // closed and replaced at every change of the two above
	kept       time.Time     // until when a server may keep the session that is over
}

// startSession makes the next session the current one and starts its connection. Its
// goroutines end after the session is over; dispose waits for them.
func (c *core) startSession() (*sessionState, error) {
	s := &sessionState{
		core:    c,
		started: make(chan struct{}),
		parked:  make(chan struct{}),
		unpark:  make(chan struct{}),
		drained: make(chan struct{}),

		recognised: make(chan struct{}),
	}
	s.hub = newHub(s)
	s.ctx, s.cancel = context.WithCancelCause(c.ctx)
	s.lease = newLeaseKeeper(s)
	context.AfterFunc(s.ctx, s.lease.sessionOver)
	s.link = wire.NewLink(wire.Config{
		SessionTimeout: c.cfg.sessionTimeout,
		Servers:        c.servers.Count,
		MaxRequest:     c.cfg.maxRequest,
		MaxReply:       c.cfg.maxReply,
		Auth:           c.cfg.auth,
		AuthFirst:      c.refused(),
		Relay:          c.cfg.lease.relay(),
		TrustAnswers:   c.cfg.lease.lease().Trusting(),
		Clock:          c.cfg.clock,
		Pace:           c.servers.Pace,
		Dial:           c.servers.Dial,
		OnDial:         c.dialed(),
		OnUp:           s.onUp,
		OnDown:         s.onDown,
		OnEvent:        s.hub.dispatch,
		OnOver:         s.onOver,
	})
	if !c.setCurrent(s) {
		s.cancel(ErrClosed)
		return nil, ErrClosed
	}
	silent := zk.WithLogInfo(false)
	buffer := silent
	// go-zookeeper makes its own buffer in any case. The option would leave that one as
	// garbage, and the next session would dirty its memory: half a MiB a session.
	if size := c.cfg.maxRequest + requestOverhead; size > zkBuffer {
		buffer = zk.WithMaxConnBufferSize(size)
	}
	conn, events, err := zk.Connect(c.cfg.servers, c.cfg.sessionTimeout,
		zk.WithDialer(s.link.Dial),
		zk.WithHostProvider(hosts{s}),
		zk.WithLogger(debugLogger{c.journal}),
		silent, buffer,
		zk.WithMaxBufferSize(c.cfg.maxReply),
	)
	if err != nil {
		s.link.End(err)
		return nil, err
	}
	s.conn = conn
	close(s.started)
	c.wg.Go(func() { // ends when go-zookeeper's main goroutine does
		for range events { // the wire has seen them; only the end matters
		}
		close(s.drained)
		s.link.End(errConnClosed)
	})
	return s, nil
}

// hosts is go-zookeeper's view of the servers. go-zookeeper asks it for a server
// before each dial, and can be made to sleep 1 s between rounds. While the session
// lives hosts never asks for that pause, which pace replaces. Once the session is
// over hosts always asks for it: only there go-zookeeper notices that its Conn was
// closed.
type hosts struct{ s *sessionState }

func (h hosts) Init([]string) error { return nil }
func (h hosts) Len() int            { return h.s.core.servers.Count() }
func (h hosts) Connected()          {}

func (h hosts) Next() (string, bool) {
	select {
	case <-h.s.link.Over():
		// Called by go-zookeeper's loop between connections: its sender and
		// receiver have ended.
		h.s.park.Do(func() { close(h.s.parked) })
		<-h.s.unpark
		return "", true
	default:
		return h.s.core.servers.Pick(), false
	}
}

func (s *sessionState) onUp(h wire.Handshake) {
	<-s.started
	less := s.core.servers.Up(h.Server, h.Timeout)
	// This comes before any reader hears of the connection. Otherwise the watch of a
	// quick reader on it would be taken for an old one.
	s.hub.up(h.Reattached)
	if !s.core.sessionUp(s, h) {
		return
	}
	s.core.graves.Bury()
	s.lease.up()
	said := []any{"server", h.Server, "session", sessionID(h.SessionID), "timeout", h.Timeout}
	if asked := s.core.cfg.sessionTimeout; asked != h.Timeout { // the servers' minSessionTimeout or maxSessionTimeout
		said = append(said, "asked", asked)
	}
	s.core.journal.Say(slog.LevelInfo, "zookeeper: connected", said...)
	if less {
		s.core.journal.Say(slog.LevelWarn, "zookeeper: a server has granted a shorter session timeout than was asked for; leases and holds end that much sooner",
			"server", h.Server, "timeout", h.Timeout, "asked", s.core.cfg.sessionTimeout, "remedy", "raise maxSessionTimeout on the servers, or ask for less with client.WithSessionTimeout")
	}
}

func (s *sessionState) onDown(server string, err error) {
	if s.link.Cause() != nil {
		return // the end of the session, which onOver tells
	}
	s.core.servers.Down(server, err)
	s.core.sessionDown(s, err)
	s.lease.inDoubt(err)
}

func (s *sessionState) onOver(err error) {
	cause := s.causeOf(err)
	unburied := s.unburied(err)
	if !unburied && !isGone(err) {
		s.core.graves.Remember(duties.Dead{ID: s.link.SessionID(), Password: s.link.Password(), Timeout: s.link.Timeout(), Safe: s.lease.promised()})
	}
	s.core.sessionOver(s, cause)
	s.hub.end(cause)
	if unburied {
		s.linger()
	}
}

func (s *sessionState) causeOf(err error) error {
	var expired *LeaseExpiredError // its text names the session itself
	switch {
	case errors.Is(err, wire.ErrClosed), errors.Is(err, ErrClosed), errors.Is(context.Cause(s.ctx), ErrClosed):
		return ErrClosed
	case s.link.SessionID() == 0:
		return err // there never was a session
	case errors.As(err, &expired):
		return fmt.Errorf("%w: %w", ErrSessionLost, trimmed{err})
	default:
		return fmt.Errorf("%w: session %s: %w", ErrSessionLost, sessionID(s.link.SessionID()), err)
	}
}

// watchLease ends the session on this side when the server may have ended it: the
// negotiated timeout after the newest answered request was sent. go-zookeeper learns
// of an expiry only from a server, so in a partition it would never know. The clocks
// are compared more often than a timer would need: timers stand still while the
// machine is suspended, and another server may grant a shorter timeout.
func (s *sessionState) watchLease() {
	for {
		t := time.NewTimer(min(s.expire(), lease.ClockCheck))
		select {
		case <-t.C:
		case <-s.link.Over():
			t.Stop()
			return
		}
	}
}

// expire ends the session if its time is over, and returns how much time is left. The
// holds have ended before; they are told first, with their own reason.
func (s *sessionState) expire() time.Duration {
	left := s.link.Left()
	if left <= 0 && s.link.Cause() == nil {
		s.lease.expire()
		s.link.End(errLease)
	}
	return left
}

// err is nil while the session can be relied upon. It looks at the clocks itself, so
// a late timer cannot make a dead session look alive.
func (s *sessionState) err() error {
	s.expire()
	return s.over()
}

// over is nil until the session is known to be over. The link knows it first; its
// callback ends the context a moment later. Only Close ends the context first. The
// link lives on then, to ask the server to end the session as well.
func (s *sessionState) over() error {
	if cause := s.link.Cause(); cause != nil {
		return s.causeOf(cause)
	}
	return context.Cause(s.ctx)
}

// retire ends the session for its users. Holders and watchers are told before their
// nodes are deleted.
func (s *sessionState) retire() {
	s.cancel(ErrClosed)
	s.hub.end(ErrClosed)
}

// dispose waits for everything that belongs to a session that is over. go-zookeeper's
// Close comes last, when its receiver has ended. Close fails the requests of users of
// Conn; CreateContainer and CreateTTL then read a reply that the receiver may still
// be decoding.
func (s *sessionState) dispose() {
	select {
	case <-s.parked:
	case <-s.drained:
	}
	closed := make(chan struct{})
	go func() { // ends within a second, as Close does
		s.conn.Close()
		close(closed)
	}()
	// Close does two things. It notes that the Conn is closed, and it sends a request
	// and waits up to a second for the answer. The loop is held in Next, so no answer
	// comes. Sync returns when the Conn counts as closed. A millisecond later the
	// request is queued. Then the loop goes on, drops the request, and ends.
	_, _ = s.conn.Sync("/")
	t := time.NewTimer(time.Millisecond)
	<-t.C
	close(s.unpark)
	<-s.drained
	<-closed
	s.awaitGoroutines()
}

// begin counts the calling goroutine among the goroutines that dispose waits for,
// until it calls running.Done. It reports false once the session is disposed of.
func (s *sessionState) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disposed {
		return false
	}
	s.running.Add(1)
	return true
}

// awaitGoroutines waits for all goroutines of the session, which must be ending.
func (s *sessionState) awaitGoroutines() {
	s.mu.Lock()
	s.disposed = true
	s.mu.Unlock()
	s.running.Wait()
	s.link.Wait()
}

// sessionID prints like ZooKeeper's own logs.
type sessionID int64

func (id sessionID) String() string { return fmt.Sprintf("0x%x", uint64(id)) } //nolint:gosec // bits, not a quantity
