package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/client/internal/aside"
	"github.com/docent-go/docent/client/internal/duties"
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
	watches *watches
	root    *Client // the client of the connect string, without a namespace

	kept sync.Map // what recipes keep for the client

	ctx    context.Context //nolint:containedctx // the life of the client, not of a call
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // every goroutine of the client but those that
	told   sync.WaitGroup // call hooks and log handlers, which may call Close

	mu      sync.Mutex       // guards the rest; never held across I/O
	current *sessionState    // newest session, up or not
	fatal   error            // credentials refused, until they are accepted
	closing bool             // Close was called
	ownData []byte           // of recipes' nodes, from our address as the servers see it
	server  string           // the server that accepted current last
	made    bool             // that server also made the session, which takes a quorum
	product string           // of the servers that answered last
	lacking map[feature]bool // the features that they lack
	changed chan struct{}    // closed and replaced at every change of the above

	closeOnce *runonce.Once
	idle      chan struct{} // closed after Close when wg is done
	quiet     chan struct{} // closed after Close when no goroutine of the client is left
}

// supervise owns the succession of sessions. It ends after Close.
func (c *core) supervise() {
	backoff := retry.Exponential(100*time.Millisecond, c.cfg.sessionTimeout/6+1).WithRand(c.cfg.rand).BackOff()
	for c.ctx.Err() == nil {
		s, err := c.startSession()
		if errors.Is(err, ErrClosed) {
			return
		}
		if err != nil { // go-zookeeper refuses our own arguments
			c.journal.Say(slog.LevelError, "zookeeper: cannot start a session", "reason", err)
			return
		}
		<-s.ctx.Done()
		<-s.link.Over()    // later than its context if Close was called
		c.wg.Go(s.dispose) // up to a second; the next session need not wait for it
		if s.link.SessionID() != 0 && !errors.Is(s.link.Cause(), ErrAuthFailed) {
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

// refused reports whether the servers have refused the credentials last.
func (c *core) refused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fatal != nil
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
	if c.current != s || s.link.Cause() != nil {
		return false
	}
	c.ownData, c.fatal = c.cfg.dataOf(h.LocalAddr), nil
	c.server, c.made = h.Server, !h.Reattached
	c.states.add(StateChange{State: Connected, Session: h.SessionID, At: time.Now()})
	c.broadcast()
	c.leaveLocked(c.unlisted) // the list may have changed during the handshake
	if !h.Reattached {
		c.wg.Go(s.watchLease) // ends with the session
	}
	if s.knownProduct() == "" {
		c.wg.Go(s.recognise) // ends with the connection
	}
	return true
}

func (c *core) sessionDown(s *sessionState, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if up, _ := c.live(); c.current != s || !up || c.closing {
		return
	}
	c.states.add(StateChange{State: Suspended, Session: s.link.SessionID(), Err: err, At: time.Now()})
	c.broadcast()
}

// sessionOver ends s's context in the same step as the state. A goroutine that the
// broadcast wakes finds both.
func (c *core) sessionOver(s *sessionState, cause error) {
	c.mu.Lock()
	_, lost := c.live() // a session is replaced only after it is over
	lost = lost && !c.closing
	if errors.Is(cause, ErrAuthFailed) {
		if c.fatal = cause; !lost {
			c.server, c.made = s.link.Server(), true
		}
	}
	if lost {
		c.states.add(StateChange{State: Lost, Session: s.link.SessionID(), Err: cause, At: time.Now()})
	}
	s.cancel(cause)
	c.broadcast()
	c.mu.Unlock()
	if errors.Is(cause, ErrAuthFailed) {
		c.graves.Bury() // that server is reachable
	}
	if lost {
		c.journal.Say(slog.LevelWarn, "zookeeper: session lost", "session", sessionID(s.link.SessionID()), "reason", cause)
	}
}

// await waits until bound has a connection, or the current session if bound is nil.
// It waits within ctx, and as long as patience lasts.
func (c *core) await(ctx context.Context, bound *sessionState, patience *patience) (*sessionState, error) {
	ctxerr.Require(ctx)
	defer patience.rest()
	for {
		c.mu.Lock()
		s, closing, fatal, changed := c.current, c.closing, c.fatal, c.changed
		up, _ := c.live()
		c.mu.Unlock()
		if bound != nil {
			if err := bound.over(); err != nil {
				return nil, err
			}
		}
		switch {
		case closing:
			return nil, ErrClosed
		case up && (bound == nil || s == bound):
			return s, nil
		case bound == nil && fatal != nil:
			return nil, fatal
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

// serverOf is the server that accepted s last, or "the server" if another session has
// come since.
func (c *core) serverOf(s *sessionState) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != s || c.server == "" {
		return "the server"
	}
	return c.server
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
