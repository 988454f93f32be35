package client

import (
	"context"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/clock"
)

// ParseConnectString lets tests judge connect strings without connecting.
var ParseConnectString = parseConnectString

// Share lets tests see how the time of a dial is shared.
var Share = share

// HubSize is the number of watches that the present session of c keeps.
func HubSize(c *Client) int {
	c.core.mu.Lock()
	h := c.core.current.hub
	c.core.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watches)
}

// DeadSessions is how many sessions c still means to end on a server.
func DeadSessions(c *Client) int {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return len(c.core.dead)
}

// Resolved is dial with another resolver: the addresses that names have now.
func Resolved(ctx context.Context, addr string, resolve func(ctx context.Context, host string) ([]string, error)) (net.Conn, error) {
	cfg, err := newConfig(addr, nil)
	if err != nil {
		return nil, err
	}
	s := newServers(cfg, newJournal(cfg.logger))
	s.resolve = resolve
	return s.dial(ctx, addr)
}

// Redials says how long the pauses before dials are to the one server at addr,
// after so many that failed and a connection that stood for stood and whose
// loss nobody has been told of.
func Redials(ctx context.Context, addr string, failed int, stood time.Duration) (time.Duration, error) {
	cfg, err := newConfig(addr, nil)
	if err != nil {
		return 0, err
	}
	s := newServers(cfg, newJournal(cfg.logger))
	s.tried = failed
	s.up(addr, cfg.sessionTimeout)
	time.Sleep(stood)
	begun := time.Now()
	err = s.pace(ctx, addr)
	return time.Since(begun), err
}

// WithClock replaces the clocks that Go does not fake.
func WithClock(wall func() time.Time, slept func() time.Duration) Option {
	return optionFunc(func(c *config) error {
		c.clock = &clock.Clock{Wall: wall, Slept: slept}
		return nil
	})
}

// Terms are what follows from p for a session timeout.
func Terms(p LeasePolicy, timeout time.Duration) (life, margin, relay, beat, spare time.Duration) {
	t := p.terms(timeout)
	return t.life, t.margin, t.relay, t.beat, p.spare(timeout)
}

// ReadWhoseSessionEnds is a read that fails because its connection is closed,
// and whose session is found to be over before the next try.
func ReadWhoseSessionEnds(ctx context.Context, s *Session, why error) error {
	return s.do(ctx, "get", "/", reads, func(_ context.Context, t try) error {
		closed := t.s.fault(zk.ErrConnectionClosed)
		t.s.link.End(why)
		return closed
	})
}

// TransactionAnswer is what is made of the answer to a transaction of n parts:
// how many results it has, and the error of the request as a whole.
func TransactionAnswer(n int, res []zk.MultiResponse, err error) (int, error) {
	a, err := answered(n, res, err)
	return len(a.parts), err
}
