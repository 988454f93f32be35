package wire

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/internal/clock"
)

// Handshake describes an accepted handshake.
type Handshake struct {
	SessionID  int64
	Timeout    time.Duration // negotiated in this handshake
	Server     string        // address given to Dial
	LocalAddr  net.Addr      // of the dialed connection
	Reattached bool          // false for the first handshake of the Link
	ReadOnly   bool          // the server is cut off from its quorum
}

// Config says how a Link dials and which callbacks it has. The callbacks of one Link
// run one at a time, in the order of the events, without locks held. They run on the
// goroutine that noticed the event, or on one that is already delivering. They may
// call the Link but must not block. OnOver is the last of them.
type Config struct {
	// SessionTimeout is the timeout that go-zookeeper asks for.
	SessionTimeout time.Duration
	// Servers returns how many servers there are to dial, which may change; nil
	// means one. It must not block or call the Link. Dial, TLS and handshake
	// together may take min(T/3, T/(Servers+1)), but at least min(T/3, 1 s); T is
	// [Link.Timeout].
	//
	// While there is no session, that time doubles, up to 2T, of which dial and TLS
	// may take T/3. It doubles each time that as many attempts as there are Servers
	// got no answer. In as many tries as there are Servers, if there are several, the
	// handshake alone may take 1.5 s at most. Each handshake asks for a session that the leader makes later,
	// even if the client has gone.
	Servers func() int
	// MaxRequest is the length of the largest request that may pass, without the 4
	// length bytes; 0 means 0xfffff, ZooKeeper's jute.maxbuffer.
	MaxRequest int
	// MaxReply is the length of the largest reply; 0 means 4 MiB. If the reply
	// to an exchange is larger, the exchange gets [CodeReplyTooLarge]. If the reply
	// to a request of go-zookeeper is larger, the connection is closed.
	MaxReply int
	// Auth returns what is sent after every accepted handshake, before anything else. It must
	// not block, and may return something else for every connection. nil: nothing is sent.
	Auth func() []Auth
	// Login begins a login with a server, which follows after every accepted handshake,
	// before Auth and anything else. It is called before the dial. It may take as long as
	// the dial and the handshake, whose time does not run meanwhile. If its context ends it
	// must return. After an error there is no dial. If the error matches [ErrAuthFailed]
	// it ends the Link, unless there is a session already. A nil Login: there is no login.
	Login func(ctx context.Context, server string) (Login, error)
	// AuthFirst lets a handshake be accepted once the servers have accepted Auth too. It
	// costs a round trip. If they refuse it, OnUp is not called. It is for a Link after one
	// that was refused, so that a single login which is turned away is a refusal again.
	AuthFirst bool
	// ReadOnly asks servers for a session even if they are cut off from their quorum. Such a
	// session is no proof of anything. Without it the Link takes none of them.
	ReadOnly bool
	// Relay is the longest time that a server which is not the leader keeps a sign of
	// life to itself, depending on the session timeout. nil means a server
	// without an ensemble.
	Relay func(timeout time.Duration) time.Duration
	// TrustAnswers makes every answer a [Proof], not only committed writes.
	TrustAnswers bool
	// Clock gives requests their times; nil is the machine's.
	Clock *clock.Clock
	// Pace is called before each dial and may make a pause, whose time does not
	// count towards the limit. Its context ends with the Link, and Pace must return
	// then. After an error there is no dial. Optional.
	Pace func(ctx context.Context, server string) error
	// Dial connects and does TLS. Its context carries the limit and ends with the
	// Link, and Dial must return then. Required.
	Dial func(ctx context.Context, server string) (net.Conn, error)
	// OnDial is called once per dial: before OnUp if the handshake was accepted, and
	// before OnDown otherwise. Optional.
	OnDial func(Dialed)
	// OnUp is called when a handshake was accepted, the login has succeeded and the
	// authentication is written, before go-zookeeper learns of either. Optional.
	OnUp func(Handshake)
	// OnDown is called when an attempt or a connection failed or was closed,
	// at most once per dial. The session may live on. It is not called for an
	// attempt that ends because the Link is over. Optional.
	OnDown func(server string, err error)
	// OnEvent is called with every notification of a watch, also of watches that
	// go-zookeeper has left. It runs on the reading goroutine, beside the other
	// callbacks, before anything is read that the server sent later. It must not
	// block. Optional.
	OnEvent func(Event)
	// OnOver is called once, when the session is over on this Link. Optional.
	OnOver func(err error)
}

// Link carries one ZooKeeper session over a succession of connections.
type Link struct {
	cfg Config

	// life is the root context of everything that a Link does. It ends when
	// cause is set, and over is its Done.
	life context.Context //nolint:containedctx // the life of the Link, not of a call
	end  context.CancelCauseFunc
	over <-chan struct{}

	flushers sync.WaitGroup // goroutines that write for exchanges, or close connections
	dials    atomic.Uint64  // connections so far

	mu         sync.Mutex // guards what follows; never held across I/O or callbacks
	cause      error
	frail      error // why the session ends with its connection, nil if it need not
	live       *conn // dialed and not failed
	id         int64
	password   []byte
	server     string // that granted the session last
	timeout    time.Duration
	evidence   clock.Stamp
	unanswered int // dials and handshakes that were given up
	turned     turned
	refusal    error  // of the newest login
	unbegun    bool   // the refusal is of a mechanism that could not begin
	unused     Unused // session of a refused login
	tries      int    // dials
	proof      Proof
	slept      time.Duration // how long the machine had slept at the last reading
	seenZxid   int64         // newest transaction that an answer showed
	events     []func()
	delivering bool
}

// Unused is a session that a server has made for a client whose login it has refused
// then. It lives on the servers until its timeout has passed.
type Unused struct {
	ID       int64 // 0 if there is none
	Password []byte
	Timeout  time.Duration
}

// NewLink returns a Link that has not dialed yet. It panics if cfg.Dial is nil.
func NewLink(cfg Config) *Link {
	if cfg.Dial == nil {
		panic("wire: NewLink needs Config.Dial")
	}
	if cfg.Servers == nil {
		cfg.Servers = func() int { return 1 }
	}
	if cfg.MaxRequest <= 0 {
		cfg.MaxRequest = defaultMaxRequest
	}
	if cfg.MaxReply <= 0 {
		cfg.MaxReply = defaultMaxReply
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Auth == nil {
		cfg.Auth = func() []Auth { return nil }
	}
	life, end := context.WithCancelCause(context.Background()) //nolint:forbidigo // a Link lives until End
	l := &Link{
		cfg:     cfg,
		life:    life,
		end:     end,
		over:    life.Done(),
		timeout: cfg.SessionTimeout,
	}
	if cfg.AuthFirst {
		l.turned = mostTurned - 1
	}
	return l
}

// Over returns a channel that is closed when the session is over.
func (l *Link) Over() <-chan struct{} { return l.over }

// Cause returns why the session is over, nil while it is not.
func (l *Link) Cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// SessionID returns the session's id, 0 before the first accepted handshake.
func (l *Link) SessionID() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// Password returns a copy of the session's password, nil before the first
// accepted handshake.
func (l *Link) Password() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.password)
}

// Server returns the address of the server that granted the session last, "" before
// the first accepted handshake.
func (l *Link) Server() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server
}

// Timeout returns the least timeout negotiated so far, before the first
// accepted handshake the requested one.
func (l *Link) Timeout() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeout
}

// Left returns how much is left of [Link.Timeout]. The timeout runs from the
// evidence, the time at which the newest answered request was sent. The clock that
// shows most counts, and so does time for which the machine was suspended. Once it is
// used up the server may end the session. Before the first accepted handshake all of
// it is left.
func (l *Link) Left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.evidence.IsZero() {
		return l.timeout
	}
	return l.timeout - l.stamp(true).Since(l.evidence)
}

// stamp reads the clocks. Only if fresh is set does it read how long the machine has
// slept. Writes need that; other requests save the system call, and an older reading
// only makes them look older. The caller holds l.mu.
func (l *Link) stamp(fresh bool) clock.Stamp {
	if !fresh {
		return l.cfg.Clock.At(time.Now(), l.slept)
	}
	now := l.cfg.Clock.Now()
	l.slept = now.Slept()
	return now
}

// Wait waits for the Link's goroutines, which end with its connections. It must
// not be called before the Link is over.
func (l *Link) Wait() { l.flushers.Wait() }

// deliver runs the queued callbacks. If another call is already delivering, that call
// runs these too. This keeps callbacks in order, and a callback can cause the next
// one without recursion.
func (l *Link) deliver() {
	l.mu.Lock()
	if l.delivering {
		l.mu.Unlock()
		return
	}
	l.delivering = true
	for len(l.events) > 0 {
		f := l.events[0]
		l.events = l.events[1:]
		l.mu.Unlock()
		f()
		l.mu.Lock()
	}
	l.events = nil
	l.delivering = false
	l.mu.Unlock()
}

// ended returns the error for callers of a Link that is over, nil if it is not.
func (l *Link) ended() error {
	if cause := l.Cause(); cause != nil {
		return overError(cause)
	}
	return nil
}
