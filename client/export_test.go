package client

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/docent-go/docent/client/internal/aside"
	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/where"
	"github.com/docent-go/docent/internal/clock"
	"github.com/docent-go/docent/internal/wire"
)

// ParseConnectString lets tests judge connect strings without connecting.
func ParseConnectString(s string) (servers []string, chroot string, err error) {
	return where.Parse(s, ValidatePath)
}

// ParseEnsemble lets tests judge configurations without an ensemble.
var ParseEnsemble = where.ParseEnsemble

// HubSize is the number of watches that the present session of c keeps. It counts the
// watches of feeds on a path as one.
func HubSize(c *Client) int { return c.core.watches.Len() }

// DeadSessions is how many sessions c still means to end on a server.
func DeadSessions(c *Client) int { return c.core.graves.Len() }

// Redials says how long the pause before a dial to the one server at addr is.
// Before it, so many dials failed, and connections stood for so long each. No
// caller has been told of their loss.
func Redials(ctx context.Context, addr string, failed int, stood ...time.Duration) (time.Duration, error) {
	cfg, err := newConfig(addr, nil)
	if err != nil {
		return 0, err
	}
	s := where.New(cfg.where(), aside.NewJournal(cfg.logger))
	for range failed {
		if err := s.Pace(ctx, addr); err != nil {
			return 0, err
		}
	}
	var paused time.Duration
	for _, d := range stood {
		s.Up(addr, cfg.sessionTimeout, true)
		time.Sleep(d)
		begun := time.Now()
		if err := s.Pace(ctx, addr); err != nil {
			return 0, err
		}
		paused = time.Since(begun)
	}
	return paused, nil
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
	t := p.lease().Terms(timeout)
	return t.Life, t.Margin, t.Relay, t.Beat, p.lease().Spare(timeout)
}

// ReadWhoseSessionEnds is a read that fails because its connection is closed,
// and whose session is found to be over before the next try.
func ReadWhoseSessionEnds(ctx context.Context, s *Session, why error) error {
	return s.do(ctx, "get", "/", reads, func(_ context.Context, t try) error {
		closed := fate.Unsent(wire.ErrNotConnected)
		t.s.Link().End(why)
		return closed
	})
}

// Nothing is an operation that asks no server anything.
func Nothing(ctx context.Context, s *Session) error {
	return s.do(ctx, "get", "/", reads, func(context.Context, try) error { return nil })
}

// WithNet replaces the resolver and the network.
func WithNet(
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error),
	connect func(ctx context.Context, network, address string) (net.Conn, error),
) Option {
	return optionFunc(func(c *config) error {
		c.lookup, c.connect = lookup, connect
		return nil
	})
}
