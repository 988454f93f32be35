package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// leastPause bounds the pause before the second dial. Full jitter of up to a second, or
// of a twelfth of the session timeout, spreads the clients that have lost one server
// together. With every further round through the servers the bound doubles, up to a sixth
// of the session timeout.
const leastPause = time.Second

// servers picks, paces, resolves and dials. It outlives sessions, so a client that
// lost its session in an outage does not begin the next one with dials without a
// pause.
//
// A name stands for a server at each of its addresses. Names are resolved at every
// dial, so a changed DNS entry is followed. Each dial of a name begins with the
// address whose last dial is longest ago: a server that takes connections may refuse
// every handshake. go-zookeeper's own host provider resolves once and stalls for a
// second before each round.
type servers struct {
	cfg     *config
	journal *journal

	mu       sync.Mutex // guards the rest; never held across I/O
	given    []string   // by the connect string or SetServers
	tracked  []string   // by the configuration of the ensemble; nil if it is not known
	addrs    []string   // all of them, in the order in which they are tried
	next     int
	granted  time.Duration           // least session timeout that a server granted, or the requested one
	tried    int                     // dials since the last one without a pause
	upSince  time.Time               // zero while there is no connection, or noteStood has seen its loss
	brief    bool                    // the connection before was lost early
	failures map[string]string       // newest failure of each server since it was last up
	dialed   map[string]bool         // servers that were tried at all
	met      bool                    // a server has accepted a session
	lines    map[string][]netip.Addr // of each name: its addresses, in the order in which they are tried
}

func newServers(cfg *config, j *journal) *servers {
	s := &servers{cfg: cfg, journal: j, given: cfg.servers, granted: cfg.sessionTimeout, failures: map[string]string{}, dialed: map[string]bool{}, lines: map[string][]netip.Addr{}}
	s.arrange()
	return s
}

// Servers returns the servers of the connect string, each as "host:port", ordered by
// name. They name the ensemble. [Client.SetServers] and [WithEnsembleTracker] say
// where the ensemble is now, and do not change them.
func (c *Client) Servers() []string { return slices.Sorted(slices.Values(c.core.cfg.servers)) }

// pick returns the server to try next. It is not the one that was picked last if
// there is another.
func (s *servers) pick() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr := s.addrs[s.next%len(s.addrs)]
	s.next++
	return addr
}

// pace makes a pause before every dial except the first after the loss of a
// connection. One dial at once is enough to get over the loss of one server.
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

// jitter draws the pause before a dial; tried others came before it.
func (s *servers) jitter(tried int) time.Duration {
	s.mu.Lock()
	round := (tried - 1) / s.countLocked()
	limit := min(min(s.granted/12, leastPause)<<min(round, 16), s.granted/6)
	s.mu.Unlock()
	return time.Duration(s.cfg.rand() * float64(limit))
}

// timeout is the shortest session timeout to expect.
func (s *servers) timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted
}

// up notes an accepted session. It reports whether the timeout is shorter than any
// that a server granted before, and than the requested one.
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

// noteStood looks at how long the lost connection stood. A connection that outlived
// its first ping ends the backoff. So does one that was made at the first dial, but
// not twice in a row: otherwise a server that accepts and drops would get dial after
// dial. The next dial may come before the news of the loss, so the first of both
// calls noteStood. The caller holds s.mu.
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
	if repeated { // logged once per outage
		level = slog.LevelDebug
	}
	s.journal.say(level, "zookeeper: no connection", "server", addr, "reason", text)
}

// report names every server and says why it is not reached.
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

// dial connects to addr. It tries every address of the name until one answers. ctx
// limits dial, TLS and handshake together.
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

// dialTCP connects to a server of addr. It tries the addresses of the name one after
// the other. Each gets an equal part of ctx's time that is left.
func (s *servers) dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	if s.cfg.dial != nil {
		conn, err := s.cfg.dial(ctx, "tcp", addr)
		if conn == nil && err == nil {
			err = errors.New("the function of WithDialer returned neither a connection nor an error")
		}
		return conn, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	found, err := s.cfg.lookup(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	line := s.line(addr, found)
	for i, a := range line {
		s.turn(addr, a)
		part, cancel := partOf(ctx, len(line)-i)
		var conn net.Conn
		conn, err = s.cfg.connect(part, "tcp", net.JoinHostPort(a.String(), port))
		cancel()
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
	}
	return nil, err
}

// partOf ends after the n-th part of ctx's time that is left.
func partOf(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	end, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(n))
}

// line returns the addresses of a name, in the order in which to try them. found are
// its present ones. New ones come first, in a random order, which spreads clients over
// them. Then come those that were tried, longest ago first.
func (s *servers) line(addr string, found []netip.Addr) []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range found {
		found[i] = a.Unmap()
	}
	var line []netip.Addr
	for _, a := range found {
		if !slices.Contains(s.lines[addr], a) && !slices.Contains(line, a) {
			line = append(line, a)
		}
	}
	shuffle(s.cfg.rand, line)
	for _, a := range s.lines[addr] {
		if slices.Contains(found, a) {
			line = append(line, a)
		}
	}
	if slices.Contains(s.addrs, addr) {
		s.lines[addr] = line
	}
	return slices.Clone(line)
}

// turn notes that an address of a name is tried now.
func (s *servers) turn(addr string, a netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[addr]
	if i := slices.Index(line, a); i >= 0 {
		s.lines[addr] = append(slices.Delete(line, i, i+1), a)
	}
}
