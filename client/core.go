package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/client/internal/aside"
	"github.com/docent-go/docent/client/internal/duties"
	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/client/internal/watches"
	"github.com/docent-go/docent/client/internal/where"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/runonce"
	"github.com/docent-go/docent/internal/wire"
	"github.com/docent-go/docent/retry"
)

// core is what all namespaces of a client share. Its supervisor goroutine
// starts a session, waits for its end and starts the next.
type core struct {
	cfg     *config
	checked atomic.Bool // Connect, or the first call of a lazy client, has found nothing wrong
	log     *slog.Logger
	servers *where.Servers
	states  *stateLog
	journal *aside.Journal
	remover *duties.Remover
	parents *duties.Parents
	graves  *duties.Graves
	teller  *aside.Teller
	watches *watches.Watches
	known   session.Known
	root    *Client // the client of the connect string, without a namespace

	kept    sync.Map                 // what recipes keep for the client
	ownData atomic.Pointer[[]byte]   // of recipes' nodes, from our address as the servers see it
	local   atomic.Pointer[net.Addr] // the newest, nil before the first

	ctx    context.Context //nolint:containedctx // the life of the client, not of a call
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // every goroutine of the client but those that
	told   sync.WaitGroup // call hooks and log handlers, which may call Close

	mu      sync.Mutex    // guards the rest; never held across I/O
	current *sessionState // newest session, up or not
	closing bool          // Close was called
	changed chan struct{} // closed and replaced at every change of the two, and of the newest state but Closed

	closeOnce *runonce.Once
	idle      chan struct{} // closed after Close when wg is done
	quiet     chan struct{} // closed after Close when no goroutine of the client is left
}

// supervise owns the succession of sessions. It ends after Close.
func (c *core) supervise() {
	first, most := 100*time.Millisecond, c.cfg.sessionTimeout/6+1
	if c.cfg.sasl != nil { // a server keeps the session of each login that it refuses
		first, most = most, c.cfg.sessionTimeout
	}
	backoff := retry.Exponential(first, most).WithRand(c.cfg.rand).BackOff()
	for c.ctx.Err() == nil {
		s, err := c.startSession()
		if errors.Is(err, ErrClosed) {
			return
		}
		if err != nil { // go-zookeeper refuses our own arguments
			c.journal.Say(slog.LevelError, "zookeeper: cannot start a session", "reason", err)
			return
		}
		<-s.Context().Done()
		<-s.Link().Over()  // later than its context if Close was called
		c.wg.Go(s.Dispose) // up to a second; the next session need not wait for it
		if s.ID() != 0 && !errors.Is(s.Link().Cause(), ErrAuthFailed) {
			backoff.Reset()
			continue
		}
		// The session was refused before it began: do not hammer the servers.
		_ = ctxerr.Sleep(c.ctx, backoff.NextBackOff()) // or until Close
	}
}

func (c *core) broadcast() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// refusal is why the servers refuse the credentials, nil if they accept them, as far as is
// known.
func (c *core) refusal() error {
	c.mu.Lock()
	s := c.current
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.refusal()
}

// setCurrent makes s the current session. It returns false when the client is being
// closed: the session that Close ends is the last.
func (c *core) setCurrent(s *sessionState) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.current = s
	c.states.add(StateChange{State: Connecting, At: time.Now()})
	c.broadcast()
	return true
}

// live says whether current has a connection that a server accepted, and whether a
// server accepted it at least once and it is not over. Both follow from the newest
// state. States change with c.mu held, except for Closed. The caller holds c.mu.
func (c *core) live() (up, accepted bool) {
	state := c.states.newest().change.State
	return state == Connected, state == Connected || state == Suspended
}

// sessionUp notes that a server has accepted s. It returns false if s is over or
// another session has come since.
func (c *core) sessionUp(s *sessionState, h wire.Handshake) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != s || s.Link().Cause() != nil {
		return false
	}
	own := c.cfg.dataOf(h.LocalAddr)
	c.ownData.Store(&own)
	c.local.Store(&h.LocalAddr)
	c.states.add(StateChange{
		State: Connected, Session: h.SessionID, At: time.Now(),
		ReadOnly: h.ReadOnly, SessionTimeout: s.Link().Timeout(),
	})
	c.broadcast()
	c.leaveLocked(c.unlisted) // the list may have changed during the handshake
	if !h.Reattached {
		c.wg.Go(s.WatchClocks) // ends with the session
	}
	if s.Product() == "" {
		c.wg.Go(s.Recognise) // ends with the connection
	}
	return true
}

func (c *core) sessionDown(s *sessionState, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if up, _ := c.live(); c.current != s || !up || c.closing {
		return
	}
	c.states.add(StateChange{State: Suspended, Session: s.ID(), Err: err, At: time.Now(), SessionTimeout: s.Link().Timeout()})
	c.broadcast()
}

// sessionOver ends s's context in the same step as the state. A goroutine that the
// broadcast wakes finds both. The context's end calls leaseKeeper.sessionOver, which tells
// the holders, unless the lease has told them before.
func (c *core) sessionOver(s *sessionState, cause error) {
	c.mu.Lock()
	_, lost := c.live() // a session is replaced only after it is over
	lost = lost && !c.closing
	refusing := "" // the server, if it was reached
	if errors.Is(cause, ErrAuthFailed) {
		if refusing = s.Link().Server(); refusing != "" && !lost {
			c.servers.Refused(refusing)
		}
	}
	if lost {
		c.states.add(StateChange{State: Lost, Session: s.ID(), Err: cause, At: time.Now()})
	}
	s.Drop(cause)
	c.broadcast()
	c.mu.Unlock()
	if refusing != "" { // it made the session and then refused the credentials: it can end it
		c.graves.Bury()
		if !lost {
			c.servers.Down(refusing, cause) // which says it once
		}
	}
	if lost {
		c.journal.Say(slog.LevelWarn, "zookeeper: session lost", "session", session.ID(s.ID()), "reason", cause)
	}
}

// await waits until bound has a connection, or the current session if bound is nil.
// It waits within ctx, and as long as patience lasts.
func (c *core) await(ctx context.Context, bound *sessionState, patience *patience) (*sessionState, error) {
	ctxerr.Require(ctx)
	defer patience.rest()
	for {
		c.mu.Lock()
		s, closing, changed := c.current, c.closing, c.changed
		up, _ := c.live()
		c.mu.Unlock()
		if bound != nil {
			if err := bound.Over(); err != nil {
				return nil, err
			}
		}
		switch {
		case closing:
			return nil, ErrClosed
		case up && (bound == nil || s == bound):
			return s, nil
		case bound == nil && s != nil:
			if err := s.refusal(); err != nil {
				return nil, err
			}
		}
		pause, left := patience.pause()
		if !left {
			return nil, fmt.Errorf("%w for longer than the retry policy %v allows: %s", ErrNotConnected, patience.policy, c.servers.Report())
		}
		select {
		case <-changed:
		case <-pause:
			patience.rest()
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w: %s", ErrNotConnected, ctxerr.Ended(ctx), c.servers.Report())
		}
	}
}

// patience is how long one call waits for a connection, from its beginning to its
// end. It has no end if the retry policy of the call has none. Otherwise it lasts for
// the pauses of the policy. A pause that ends without a connection counts as a try
// that failed.
type patience struct {
	policy retry.Policy
	pauses backoff.BackOff // nil before the first pause
	timer  *time.Timer     // of the present pause
	begun  bool
}

// pause returns a channel for the end of the present pause, and begins a pause if
// there is none. It reports false if the policy has no pause left. For a policy
// without end, and for a nil patience, the pause never ends.
func (p *patience) pause() (end <-chan time.Time, left bool) {
	switch {
	case p == nil || !p.policy.Bounded():
		return nil, true
	case p.begun:
		return p.timer.C, true
	case p.pauses == nil:
		p.pauses = p.policy.BackOff()
	}
	d := p.pauses.NextBackOff()
	if d == backoff.Stop {
		return nil, false
	}
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	p.begun = true
	return p.timer.C, true
}

// rest ends the present pause: there is a connection, or the call has ended.
func (p *patience) rest() {
	if p != nil && p.begun {
		p.timer.Stop()
		p.begun = false
	}
}

// awaitSession waits, within ctx, until s has a connection.
func (c *core) awaitSession(ctx context.Context, s *session.Session) error {
	c.mu.Lock()
	current := c.current
	c.mu.Unlock()
	if current.Session != s { // which is over, as the next one has begun
		return s.Over()
	}
	_, err := c.await(ctx, current, nil)
	return err
}

func (c *core) state() State {
	c.mu.Lock()
	s, closing := c.current, c.closing
	c.mu.Unlock()
	over := s != nil && !closing && s.Err() != nil
	newest := c.states.newest().change
	if over && newest.Session == s.ID() && (newest.State == Connected || newest.State == Suspended) {
		return Lost // the change to Lost is about to come
	}
	return newest.State
}

// owe makes what the client owes the servers.
func (c *core) owe() {
	life := duties.Life{
		Context: c.ctx, Go: c.begin, Timeout: c.servers.Timeout, Journal: c.journal,
		Await: func(ctx context.Context) (duties.Session, error) {
			s, err := c.await(ctx, nil, nil)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
	}
	c.parents = duties.NewParents(life)
	c.graves = duties.NewGraves(duties.GravesConfig{Life: life, Server: c.servers.Reached, Dial: c.servers.DialReached, Login: c.cfg.login(), Pause: c.servers.Jitter})
	c.remover = duties.NewRemover(duties.RemoverConfig{
		Life: life, Tell: func(m *duties.Removal, state duties.State, err error) {
			c.cfg.observer.tellRemoval(c.teller, m, state, err)
		},
		Policy:  func() retry.Policy { return retry.Default().WithRand(c.cfg.rand).WithCap(c.servers.Timeout() / 3) },
		Lasting: func(err error) bool { return fate.Of(err) == fate.Refused && !fate.Passing(err) },
		Closed:  func(err error) bool { return errors.Is(err, ErrClosed) },
	})
}

// begin starts a goroutine that Close waits for, unless the client is being closed.
func (c *core) begin(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.wg.Go(f)
	return true
}

// unlisted reports whether a server is in no list.
func (c *core) unlisted(server string) bool { return !c.servers.Knows(server) }

// leaveLocked closes the connection after a pause, if gone says before and after the
// pause that its server is gone. The caller holds c.mu.
func (c *core) leaveLocked(gone func(server string) bool) {
	server, _ := c.servers.Reached()
	if up, _ := c.live(); !up || !gone(server) {
		return // a dial that begins later follows the new list
	}
	pause := c.servers.Stagger()
	c.wg.Go(func() {
		if ctxerr.Sleep(c.ctx, pause) != nil {
			return
		}
		before := time.Now() // a connection made later is to another server
		c.mu.Lock()
		s := c.current
		c.mu.Unlock()
		server, _ := c.servers.Reached()
		if gone(server) && (s.Restores() || s.lease.promised().IsZero()) {
			s.Link().DropLive(before, where.ErrLeaving)
		}
	})
}

// sessionState is one ZooKeeper session with its watches and its lease. [Session] is the
// handle that callers have.
type sessionState struct {
	*session.Session

	core   *core
	hub    *watches.Hub
	lease  *leaseKeeper
	cutOff atomic.Bool // the server of the newest connection is read-only
	before error       // why the servers refused the credentials before it
	untold func() bool // takes back that the end of the context tells holders, false if it is too late
}

// startSession makes the next session the current one and starts its connection. Its
// goroutines end after the session is over.
func (c *core) startSession() (*sessionState, error) {
	s := &sessionState{core: c, before: c.refusal()}
	cfg := session.Config{
		Link: wire.Config{
			SessionTimeout: c.cfg.sessionTimeout,
			ReadOnly:       c.cfg.readOnly,
			Servers:        c.servers.Count,
			MaxRequest:     c.cfg.maxRequest,
			MaxReply:       c.cfg.maxReply,
			Auth:           c.cfg.auth.all,
			Login:          c.cfg.login(),
			AuthFirst:      s.before != nil,
			Relay:          c.cfg.lease.relay(),
			TrustAnswers:   c.cfg.lease.lease().Trusting(),
			Clock:          c.cfg.clock,
			Pace:           c.servers.Pace,
			Dial:           c.servers.Dial,
			OnDial:         c.cfg.observer.dialed(c.teller),
			OnUp:           s.onUp,
			OnDown:         s.onDown,
			OnEvent:        func(ev wire.Event) { s.hub.Dispatch(ev) },
			OnOver:         s.onOver,
		},
		Names: c.cfg.servers, Servers: c.servers, Known: &c.known, Journal: c.journal,
		Expiring: func() { s.lease.expire() },
		NamesSession: func(err error) bool {
			var expired *LeaseExpiredError
			return errors.As(err, &expired)
		},
	}
	if c.cfg.observer.Operation != nil {
		cfg.Exchanged = count
	}
	s.Session = session.New(c.ctx, cfg)
	s.hub = c.watches.Join(s.Session)
	s.lease = newLeaseKeeper(leaseConfig{
		cfg: c.cfg, s: s.Session, servers: c.servers, journal: c.journal, teller: c.teller,
		remove: func(path string) { c.remover.Remove(s, path) },
	})
	s.untold = context.AfterFunc(s.Context(), s.lease.sessionOver)
	if !c.setCurrent(s) {
		s.Drop(ErrClosed)
		return nil, ErrClosed
	}
	return s, s.Start(c.wg.Go)
}

// onUp is called when a server has accepted s, before any answer of the connection is read.
// The servers, the watches, the state with its observers, the graves and the lease learn of
// it in this order. Hub.Up
// fires what was lost with the last connection, and has the persistent watches set again.
func (s *sessionState) onUp(h wire.Handshake) {
	less := s.core.servers.Up(h.Server, h.Timeout, !h.Reattached)
	// This comes before any reader hears of the connection. Otherwise the watch of a
	// quick reader on it would be taken for an old one.
	s.hub.Up(h.Reattached)
	s.cutOff.Store(h.ReadOnly)
	if !s.core.sessionUp(s, h) {
		return
	}
	s.core.graves.Bury()
	s.lease.up()
	said := []any{"server", h.Server, "session", session.ID(h.SessionID), "timeout", h.Timeout}
	if asked := s.core.cfg.sessionTimeout; asked != h.Timeout { // the servers' minSessionTimeout or maxSessionTimeout
		said = append(said, "asked", asked)
	}
	if h.ReadOnly {
		said = append(said, "read-only", true)
	}
	s.core.journal.Say(slog.LevelInfo, "zookeeper: connected", said...)
	if less {
		s.core.journal.Say(slog.LevelWarn, "zookeeper: a server has granted a shorter session timeout than was asked for; leases and holds end that much sooner",
			"server", h.Server, "timeout", h.Timeout, "asked", s.core.cfg.sessionTimeout, "remedy", "raise maxSessionTimeout on the servers, or ask for less with client.WithSessionTimeout")
	}
}

// onDown is called when a connection that a server had accepted has ended. The session goes
// on; the lease is in doubt until a server accepts it again.
func (s *sessionState) onDown(server string, err error) {
	if s.Link().Cause() != nil {
		return // the end of the session, which onOver tells
	}
	s.core.servers.Down(server, err)
	s.core.sessionDown(s, err)
	s.lease.inDoubt(err)
}

// onOver is called once, when the link is over for err. A server may still keep the session:
// the graves get what ends it there, and linger deletes the nodes of its holds. The end of the
// context in core.sessionOver tells the holders, and Hub.End whoever watches.
func (s *sessionState) onOver(err error) {
	cause := s.CauseOf(err)
	unburiable := s.Unburiable(err)
	link := s.Link()
	if !unburiable && !session.Gone(err) {
		s.core.graves.Remember(duties.Dead{
			ID: s.ID(), Password: link.Password(), Timeout: link.Timeout(), Safe: s.lease.promised(),
		})
	}
	if u := link.Unused(); u.ID != 0 {
		s.core.graves.Remember(duties.Dead{ID: u.ID, Password: u.Password, Timeout: u.Timeout, Unused: true})
	}
	s.core.sessionOver(s, cause)
	s.hub.End(cause)
	if unburiable {
		s.linger()
	}
}

// refusal is why the servers refuse the credentials, nil if they accept them. It is that of
// the sessions before while a server has not decided.
func (s *sessionState) refusal() error {
	if over := s.Over(); errors.Is(over, ErrAuthFailed) {
		return &refusedError{over}
	}
	if s.ID() != 0 {
		return nil
	}
	return s.before
}

// reasonMoment is how long a call whose answer was lost waits for the reason.
const reasonMoment = 100 * time.Millisecond

// withReason adds to the error of a request without an answer that the server wants its clients
// to authenticate. It then closes the connection, and its refusal of another request says why.
func (s *sessionState) withReason(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, reasonMoment)
	defer cancel()
	if _, why := s.AwaitProduct(ctx); fate.Is(why, fate.Refused) {
		return fate.Unanswered(fmt.Errorf("%w: %w", err, why))
	}
	return err
}

// refusedError is the end of a session whose credentials were refused, as calls see it that want
// any session. It does not match [ErrSessionLost]: a caller that repeats after a lost session
// would get it again at once.
type refusedError struct{ over error }

func (e *refusedError) Error() string { return e.over.Error() }
func (e *refusedError) Is(target error) bool {
	return target != ErrSessionLost && errors.Is(e.over, target)
}
func (e *refusedError) As(target any) bool { return errors.As(e.over, target) }

// linger has the nodes deleted that were held in s, which is over. They are deleted
// at the deadline that was promised to their holders.
func (s *sessionState) linger() {
	s.Linger()
	due := s.lease.promised()
	for _, path := range s.lease.nodes() {
		s.core.remover.Add(&duties.Removal{Owner: s, What: path, Full: []string{path}, Due: due})
	}
}

// retire ends the session for its users. Holders and watchers have been told when it returns,
// and no server has heard of the end: their nodes still stand.
func (s *sessionState) retire() {
	untold := s.untold()
	s.Drop(ErrClosed)
	if untold {
		s.lease.sessionOver()
	}
	s.hub.End(ErrClosed)
}
