// Package session is one ZooKeeper session of a client: its wire.Link, its zk.Conn, its
// goroutines, what its servers are, and what their answers mean. The client decides which
// session follows, and keeps its watches and its lease.
package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/aside"
	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/lease"
	"github.com/docent-go/docent/client/internal/where"
	"github.com/docent-go/docent/internal/wire"
)

var (
	errLease      = errors.New("no request sent within the session timeout was answered")
	errConnClosed = errors.New("the zk.Conn was closed by its user")
)

// Config is what a session needs. The callbacks of Link are the client's; a session calls its
// own code before OnUp.
type Config struct {
	Link    wire.Config
	Names   []string       // the servers of the connect string, which name the ensemble
	Servers *where.Servers // whom to dial
	Known   *Known         // of the sessions before
	Journal *aside.Journal
	// Expiring is called before the session ends by the client's own clocks: its holds end first.
	Expiring func()
	// NamesSession reports whether the text of an error names the session.
	NamesSession func(err error) bool
	// Exchanged is called with the context and the requests of each exchange. Optional.
	Exchanged func(ctx context.Context, xs []*wire.Exchange)
}

// Session is one session. [New] makes it and [Session.Start] begins it. All methods may be
// called at the same time, and after its end.
type Session struct {
	cfg  Config
	link *wire.Link
	zoo  *goZooKeeper

	ctx    context.Context //nolint:containedctx // the life of the session, not of a call
	cancel context.CancelCauseFunc

	running sync.WaitGroup // goroutines that use the session; not added to once disposed

	mu         sync.Mutex // guards the rest; never held across I/O
	disposed   bool
	product    string        // what the servers are, "" until a server has answered
	settled    bool          // all that follows from the product has been done
	barred     error         // why the server of the present connection says nothing about it
	recognised chan struct{} // closed and replaced at every change of the two above
	kept       time.Time     // until when a server may keep the session that is over
}

// New makes a session whose context ends with ctx at the latest. It does nothing before Start.
func New(ctx context.Context, cfg Config) *Session {
	s := &Session{cfg: cfg, recognised: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	up := cfg.Link.OnUp
	cfg.Link.OnUp = func(h wire.Handshake) {
		<-s.zoo.started
		up(h)
	}
	s.link = wire.NewLink(cfg.Link)
	s.zoo = newGoZooKeeper(s.link, cfg.Servers, cfg.Journal)
	return s
}

// Start starts the connection of the session. run runs the goroutine that ends when
// go-zookeeper's main goroutine does. After an error the session is over.
func (s *Session) Start(run func(f func())) error {
	if err := s.zoo.connect(s.cfg.Names, s.cfg.Link); err != nil { // it refuses our own arguments
		s.link.End(err)
		return err
	}
	run(func() {
		s.zoo.drain()
		s.link.End(errConnClosed)
	})
	return nil
}

// Link is the session's link.
func (s *Session) Link() *wire.Link { return s.link }

// Conn is go-zookeeper's connection. It is there once OnUp was called.
func (s *Session) Conn() *zk.Conn { return s.zoo.conn }

// ID is the session's id, 0 before the first handshake.
func (s *Session) ID() int64 { return s.link.SessionID() }

// Context ends with the session.
func (s *Session) Context() context.Context { return s.ctx }

// Drop ends the context of the session. Its link may live on, to ask a server to end the
// session as well.
func (s *Session) Drop(cause error) { s.cancel(cause) }

// CauseOf is what callers are told when the link is over for err.
func (s *Session) CauseOf(err error) error {
	switch {
	case errors.Is(err, wire.ErrClosed), errors.Is(err, fate.ErrClosed), errors.Is(context.Cause(s.ctx), fate.ErrClosed):
		return fate.ErrClosed
	case s.ID() == 0:
		return err // there never was a session
	case s.cfg.NamesSession(err):
		return fmt.Errorf("%w: %w", fate.ErrSessionLost, fate.Trimmed(err))
	default:
		return fmt.Errorf("%w: session %s: %w", fate.ErrSessionLost, ID(s.ID()), err)
	}
}

// WatchClocks ends the session on this side when the server may have ended it: the
// negotiated timeout after the newest answered request was sent. go-zookeeper learns
// of an expiry only from a server, so in a partition it would never know. The clocks
// are compared more often than a timer would need: timers stand still while the
// machine is suspended, and another server may grant a shorter timeout. It returns when the
// session is over.
func (s *Session) WatchClocks() {
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
func (s *Session) expire() time.Duration {
	left := s.link.Left()
	if left <= 0 && s.link.Cause() == nil {
		s.cfg.Expiring()
		cause := errLease
		if refusal := s.link.Refusal(); refusal != nil {
			cause = fmt.Errorf("%w; the newest login: %w", errLease, refusal)
		}
		s.link.End(cause)
	}
	return left
}

// Err is nil while the session can be relied upon. It looks at the clocks itself, so
// a late timer cannot make a dead session look alive.
func (s *Session) Err() error {
	s.expire()
	return s.Over()
}

// Over is nil until the session is known to be over. The link knows it first; the end of the
// context follows a moment later. Only the client's Close ends the context first.
func (s *Session) Over() error {
	if cause := s.link.Cause(); cause != nil {
		return s.CauseOf(cause)
	}
	return context.Cause(s.ctx)
}

// Enter counts the calling goroutine among those that Dispose waits for, until it calls
// Leave. It reports false once the session is disposed of.
func (s *Session) Enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disposed {
		return false
	}
	s.running.Add(1)
	return true
}

// Leave ends what Enter began.
func (s *Session) Leave() { s.running.Done() }

// Dispose waits for everything that belongs to a session that is over.
func (s *Session) Dispose() {
	s.zoo.dispose()
	s.mu.Lock()
	s.disposed = true
	s.mu.Unlock()
	s.running.Wait()
	s.link.Wait()
}

// ID prints the id of a session like ZooKeeper's own logs.
type ID int64

// String is the id in hexadecimal.
func (id ID) String() string { return fmt.Sprintf("0x%x", uint64(id)) } //nolint:gosec // bits, not a quantity
