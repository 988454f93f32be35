package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// leastPause bounds the pause before the second dial: full jitter of up to a
// second, or of a twelfth of the session timeout, spreads the clients of a server
// that many of them have lost at once. With every further round through the
// servers it doubles, up to a sixth of the session timeout.
const leastPause = time.Second

// servers picks, paces, resolves and dials. It outlives sessions, so that a
// client whose session was lost in an outage does not start the next one with
// a hammering round.
//
// Names are resolved at every dial, so a changed DNS entry is followed, and
// all addresses of a name are tried. go-zookeeper's own host provider
// resolves once and stalls for a second before each round.
type servers struct {
	cfg     *config
	journal *journal

	mu       sync.Mutex // guards the rest; never held across I/O
	given    []string   // by the connect string or SetServers
	tracked  []string   // by the configuration of the ensemble; nil if it is not known
	addrs    []string   // all of them, in the order in which they are tried
	next     int
	granted  time.Duration     // least session timeout that a server granted, or the one asked for
	tried    int               // dials since the last that was made at once
	upSince  time.Time         // zero while there is no connection, or noteStood has seen its loss
	brief    bool              // the connection before did not stand
	failures map[string]string // newest failure of each server since it was last up
	dialed   map[string]bool   // servers that were tried at all
	met      bool              // a server has accepted a session
}

func newServers(cfg *config, j *journal) *servers {
	s := &servers{cfg: cfg, journal: j, given: cfg.servers, granted: cfg.sessionTimeout, failures: map[string]string{}, dialed: map[string]bool{}}
	s.arrange()
	return s
}

// Servers returns the servers of the connect string, each as "host:port", in
// the order of their names. They name the ensemble: [Client.SetServers] and
// [WithEnsembleTracker], which say where it is now, do not change them.
func (c *Client) Servers() []string { return slices.Sorted(slices.Values(c.core.cfg.servers)) }

// pick returns the server to try next, which is not the one that was picked last
// if there is another.
func (s *servers) pick() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr := s.addrs[s.next%len(s.addrs)]
	s.next++
	return addr
}

// pace sleeps before every dial but the first after the loss of a connection: one
// dial at once is what it takes to get over the loss of one server.
func (s *servers) pace(ctx context.Context, _ string) error {
	s.mu.Lock()
	s.noteStood()
	tried := s.tried
	s.tried++
	s.mu.Unlock()
	if tried == 0 {
		return nil
	}
	return sleep(ctx, s.jitter(tried))
}

// jitter draws the pause before a dial that comes after tried others.
func (s *servers) jitter(tried int) time.Duration {
	s.mu.Lock()
	round := (tried - 1) / len(s.addrs)
	limit := min(min(s.granted/12, leastPause)<<min(round, 16), s.granted/6)
	s.mu.Unlock()
	return time.Duration(s.cfg.rand() * float64(limit))
}

// timeout is the session timeout to reckon with.
func (s *servers) timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted
}

// up notes an accepted session. It reports whether no server has granted so
// little before, nor was so little asked for.
func (s *servers) up(addr string, timeout time.Duration) (less bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	less = timeout < s.granted
	s.granted = min(s.granted, timeout)
	s.upSince, s.met = time.Now(), true
	delete(s.failures, addr)
	s.preferTracked(addr)
	return less
}

// noteStood looks at how long the connection stood that is gone now. One that
// outlived its first ping ends the backoff, and so does one that was made at the
// first dial, but not twice in a row: a server that accepts and drops would
// otherwise be hammered. The next dial may come before somebody is told of the
// loss, so whoever is first does it. The caller holds s.mu.
func (s *servers) noteStood() {
	if s.upSince.IsZero() {
		return
	}
	stood := time.Since(s.upSince) > s.granted/3
	if stood || s.tried <= 1 && !s.brief {
		s.tried = 0
	}
	s.brief = !stood
	s.upSince = time.Time{}
}

// down notes a failed dial or a lost connection.
func (s *servers) down(addr string, err error) {
	s.mu.Lock()
	s.noteStood()
	if errors.Is(err, errLeaving) {
		s.mu.Unlock()
		s.journal.say(slog.LevelInfo, "zookeeper: leaving a server", "server", addr, "reason", err)
		return
	}
	text := strings.TrimPrefix(s.explain(err), "dial "+addr+": ")
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
	for i, addr := range s.named() {
		if i > 0 {
			b.WriteString("; ")
		}
		why, ok := s.failures[addr]
		switch {
		case !ok && s.dialed[addr]:
			why = "no answer yet (is that the client port of a ZooKeeper?)"
		case !ok:
			why = "not tried yet"
		}
		fmt.Fprintf(&b, "%s: %s", addr, why)
	}
	return b.String()
}

// dial connects to addr: every address of its name until one answers, within
// ctx, which carries the limit of dial, TLS and handshake together.
func (s *servers) dial(ctx context.Context, addr string) (net.Conn, error) {
	s.mu.Lock()
	s.dialed[addr] = true
	s.mu.Unlock()
	conn, err := s.dialTCP(ctx, addr)
	if err != nil || s.cfg.tls == nil {
		return conn, err
	}
	wire.TransportUp(ctx)
	cfg := s.cfg.tls
	if cfg.ServerName == "" {
		cfg = cfg.Clone()
		cfg.ServerName, _, _ = net.SplitHostPort(addr)
	}
	tc := tls.Client(conn, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, handshakeError{err}
	}
	return tc, nil
}

// dialTCP resolves the name of addr, tries all addresses that it has now, and
// gives each its part of ctx's time, as a [net.Dialer] does.
func (s *servers) dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	if s.cfg.dial != nil {
		return s.cfg.dial(ctx, "tcp", addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}
