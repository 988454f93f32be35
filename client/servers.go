package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Backoff between rounds through all servers: full jitter from the first
// failed round on, never more than a sixth of the session timeout.
const firstRoundPause = 100 * time.Millisecond

// servers picks, paces, resolves and dials. It outlives sessions, so that a
// client whose session was lost in an outage does not start the next one with
// a hammering round.
//
// Names are resolved at every dial, so a changed DNS entry is followed, and
// all addresses of a name are tried. go-zookeeper's own host provider
// resolves once and stalls for a second before each round.
type servers struct {
	addrs   []string
	cfg     *config
	journal *journal
	resolve func(ctx context.Context, host string) ([]string, error)

	mu       sync.Mutex // guards the rest; never held across I/O
	next     int
	granted  time.Duration // least session timeout that a server granted, or the one asked for
	tried    int           // dials since a connection last proved stable
	upSince  time.Time
	failures map[string]string // newest failure of each server since it was last up
}

func newServers(cfg *config, j *journal) *servers {
	addrs := make([]string, len(cfg.servers))
	copy(addrs, cfg.servers)
	// Spread clients over the ensemble.
	for i := len(addrs) - 1; i > 0; i-- {
		j := int(cfg.rand() * float64(i+1))
		addrs[i], addrs[j] = addrs[j], addrs[i]
	}
	return &servers{addrs: addrs, cfg: cfg, journal: j, resolve: net.DefaultResolver.LookupHost, granted: cfg.sessionTimeout, failures: map[string]string{}}
}

// Servers returns the servers of the connect string, each as "host:port", in
// the order of their names.
func (c *Client) Servers() []string { return slices.Sorted(slices.Values(c.core.cfg.servers)) }

// pick returns the server to try next.
func (s *servers) pick() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr := s.addrs[s.next%len(s.addrs)]
	s.next++
	return addr
}

// pace sleeps before the first dial of every round but the first.
func (s *servers) pace(ctx context.Context, _ string) error {
	s.mu.Lock()
	s.settle()
	round := s.tried / len(s.addrs)
	first := s.tried%len(s.addrs) == 0
	s.tried++
	limit := min(firstRoundPause<<min(max(round-1, 0), 16), s.granted/6)
	s.mu.Unlock()
	if round == 0 || !first {
		return nil
	}
	t := time.NewTimer(time.Duration(s.cfg.rand() * float64(limit)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// timeout is the session timeout to reckon with.
func (s *servers) timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted
}

// up notes an accepted session.
func (s *servers) up(addr string, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted = min(s.granted, timeout)
	s.upSince = time.Now()
	delete(s.failures, addr)
}

// settle looks at how long the connection stood that is gone now. Only one that
// outlived its first ping ends the backoff: a server that accepts and drops
// would otherwise be hammered. The next dial may come before somebody is told of
// the loss, so whoever is first does it. The caller holds s.mu.
func (s *servers) settle() {
	if !s.upSince.IsZero() && time.Since(s.upSince) > s.granted/3 {
		s.tried = 0
	}
	s.upSince = time.Time{}
}

// down notes a failed dial or a lost connection.
func (s *servers) down(addr string, err error) {
	s.mu.Lock()
	s.settle()
	text := strings.TrimPrefix(explain(err), "wire: dial "+addr+": ")
	repeated := s.failures[addr] == text
	s.failures[addr] = text
	s.mu.Unlock()
	level := slog.LevelWarn
	if repeated { // said once per outage
		level = slog.LevelDebug
	}
	s.journal.say(level, "zookeeper: no connection", "server", addr, "reason", text)
}

// report names every server and why it is not reached.
func (s *servers) report() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for i, addr := range s.cfg.servers {
		if i > 0 {
			b.WriteString("; ")
		}
		why, ok := s.failures[addr]
		if !ok {
			why = "no answer yet (is that the client port of a ZooKeeper?)"
		}
		fmt.Fprintf(&b, "%s: %s", addr, why)
	}
	return b.String()
}

// explain adds the likely remedy to errors that newcomers meet.
func explain(err error) string {
	text := err.Error()
	var record tls.RecordHeaderError
	var dns *net.DNSError
	switch {
	case errors.As(err, &record):
		return text + " (the port does not speak TLS: use the server's secureClientPort, or drop WithTLS)"
	case errors.As(err, &dns) && dns.IsNotFound:
		return text + " (no such name: check the connect string)"
	case strings.Contains(text, "connection refused"):
		return text + " (nothing listens there: is ZooKeeper running, is the port right?)"
	default:
		return text
	}
}

// dial connects to addr: every address of its name until one answers, within
// ctx, which carries the limit of dial, TLS and handshake together.
func (s *servers) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := s.dialTCP(ctx, addr)
	if err != nil || s.cfg.tls == nil {
		return conn, err
	}
	cfg := s.cfg.tls
	if cfg.ServerName == "" {
		cfg = cfg.Clone()
		cfg.ServerName, _, _ = net.SplitHostPort(addr)
	}
	tc := tls.Client(conn, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w (closed in the handshake: does the port speak TLS?)", err)
		}
		return nil, fmt.Errorf("tls: %w", err)
	}
	return tc, nil
}

func (s *servers) dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	if s.cfg.dial != nil {
		return s.cfg.dial(ctx, "tcp", addr)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	ips := []string{host}
	if net.ParseIP(host) == nil {
		if ips, err = s.resolve(ctx, host); err != nil {
			return nil, err
		}
	}
	var d net.Dialer
	var errs []error
	for i, ip := range ips {
		dctx, cancel := share(ctx, len(ips)-i)
		conn, err := d.DialContext(dctx, "tcp", net.JoinHostPort(ip, port))
		cancel()
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// share gives one of n remaining attempts its part of ctx's time.
func share(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || n <= 1 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/time.Duration(n))
}
