package where

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/client/internal/aside"
	"github.com/docent-go/docent/internal/ctxerr"
)

// leastPause bounds the pause before the second dial. Full jitter of up to a second, or
// of a twelfth of the session timeout, spreads the clients that have lost one server
// together. With every further round through the servers the bound doubles, up to a sixth
// of the session timeout.
const leastPause = time.Second

// Config is what the servers are made of.
type Config struct {
	Servers []string                                                             // each "host:port"
	Timeout time.Duration                                                        // of a session, as it is asked for
	TLS     *tls.Config                                                          // nil without TLS
	Dial    func(ctx context.Context, network, address string) (net.Conn, error) // nil: Lookup and Connect
	Lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Connect func(ctx context.Context, network, address string) (net.Conn, error)
	Rand    func() float64
}

// Servers picks, paces, resolves and dials. It outlives sessions, so a client that
// lost its session in an outage does not begin the next one with dials without a
// pause.
//
// A name stands for a server at each of its addresses. Names are resolved at every
// dial, so a changed DNS entry is followed. Each dial of a name begins with the
// address whose last dial is longest ago: a server that takes connections may refuse
// every handshake. go-zookeeper's own host provider resolves once and stalls for a
// second before each round.
type Servers struct {
	cfg     Config
	journal *aside.Journal

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
	reached  string                  // the server that accepted a session last, "" if none has
	makes    bool                    // that one made the session, which takes a quorum
	at       netip.Addr              // where it was reached, if its name was resolved
	lines    map[string][]netip.Addr // of each name: its addresses, in the order in which they are tried
}

// New returns the servers of cfg. What is wrong with them is said to the journal.
func New(cfg Config, j *aside.Journal) *Servers {
	s := &Servers{cfg: cfg, journal: j, given: cfg.Servers, granted: cfg.Timeout, failures: map[string]string{}, dialed: map[string]bool{}, lines: map[string][]netip.Addr{}}
	s.arrange()
	return s
}

// Pick returns the server to try next. Unless the list was replaced, it is not the one that was picked last if
// there is another.
func (s *Servers) Pick() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr := s.addrs[s.next%len(s.addrs)]
	s.next++
	return addr
}

// Pace makes a pause before every dial except the first after the loss of a
// connection. One dial at once is enough to get over the loss of one server.
func (s *Servers) Pace(ctx context.Context, _ string) error {
	s.mu.Lock()
	s.noteStood()
	tried := s.tried
	s.tried++
	s.mu.Unlock()
	if tried == 0 {
		return nil
	}
	return ctxerr.Sleep(ctx, s.Jitter(tried))
}

// Jitter draws the pause before a dial; tried others came before it.
func (s *Servers) Jitter(tried int) time.Duration {
	s.mu.Lock()
	round := (tried - 1) / s.countLocked()
	limit := min(min(s.granted/12, leastPause)<<min(round, 16), s.granted/6)
	s.mu.Unlock()
	return time.Duration(s.cfg.Rand() * float64(limit))
}

// Timeout is the shortest session timeout to expect.
func (s *Servers) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted
}

// Up notes an accepted session; made says that the server has made it. Up reports whether the
// timeout is shorter than any that a server granted before, and than the requested one.
func (s *Servers) Up(addr string, timeout time.Duration, made bool) (less bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	less = timeout < s.granted
	s.granted = min(s.granted, timeout)
	s.upSince, s.reached, s.makes, s.at = time.Now(), addr, made, netip.Addr{}
	if line := s.lines[addr]; len(line) > 0 {
		s.at = line[len(line)-1] // it was dialed last
	}
	delete(s.failures, addr)
	s.preferTracked(addr)
	return less
}

// Refused notes that a server has made a session and then refused its credentials.
func (s *Servers) Refused(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached, s.makes = addr, true
}

// Reached is the server that accepted a session last, "" if none has, and whether it made
// that session. It is for duties.Graves.
func (s *Servers) Reached() (addr string, made bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached, s.makes
}

// noteStood looks at how long the lost connection stood. A connection that outlived
// its first ping, which go-zookeeper sends after a third of the timeout, ends the backoff. So does one that was made at the first dial, but
// not twice in a row: otherwise a server that accepts and drops would get dial after
// dial. The next dial may come before the news of the loss, so the first of both
// calls noteStood. The caller holds s.mu.
func (s *Servers) noteStood() {
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

// Down notes a failed dial or a lost connection.
func (s *Servers) Down(addr string, err error) {
	s.mu.Lock()
	s.noteStood()
	if errors.Is(err, ErrLeaving) {
		s.mu.Unlock()
		s.journal.Say(slog.LevelInfo, "zookeeper: leaving a server", "server", addr, "reason", err)
		return
	}
	text := strings.TrimPrefix(explain(err, s.cfg.TLS != nil), "dial "+addr+": ")
	repeated := s.failures[addr] == text
	s.failures[addr] = text
	s.mu.Unlock()
	level := slog.LevelWarn
	if repeated { // logged once per outage
		level = slog.LevelDebug
	}
	s.journal.Say(level, "zookeeper: no connection", "server", addr, "reason", text)
}

// Report names every server and says why it is not reached.
func (s *Servers) Report() string {
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

// ErrLeaving is why the client gives up a connection to a server that is in no list
// any more.
var ErrLeaving = errors.New("it is not among the servers any more")

// Stagger draws the pause before the client gives up a connection. Many clients may
// have to do that at the same time.
func (s *Servers) Stagger() time.Duration {
	return time.Duration(s.cfg.Rand() * float64(s.Timeout()/3))
}

// Give replaces the servers of the connect string.
func (s *Servers) Give(list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = list
	s.arrange()
	s.journal.Say(slog.LevelInfo, "zookeeper: servers set", "servers", slices.Clone(s.addrs))
}

// Track replaces the servers of the ensemble's configuration, and returns the former
// ones.
func (s *Servers) Track(list []string) (before []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.tracked = s.tracked, list
	s.arrange()
	s.journal.Say(slog.LevelInfo, "zookeeper: the ensemble's configuration has changed the servers", "servers", slices.Clone(s.addrs))
	return before
}

// arrange puts the servers into the order in which they are tried. The servers of the
// ensemble's configuration come first; among themselves they are shuffled, to spread
// clients over them. The caller holds s.mu, or no other goroutine knows s yet.
func (s *Servers) arrange() {
	s.next = 0
	s.addrs = s.named()
	shuffle(s.cfg.Rand, s.addrs[:len(s.tracked)])
	shuffle(s.cfg.Rand, s.addrs[len(s.tracked):])
	gone := func(addr string) bool { return !slices.Contains(s.addrs, addr) }
	maps.DeleteFunc(s.failures, func(addr, _ string) bool { return gone(addr) })
	maps.DeleteFunc(s.dialed, func(addr string, _ bool) bool { return gone(addr) })
	maps.DeleteFunc(s.lines, func(addr string, _ []netip.Addr) bool { return gone(addr) })
}

func shuffle[T any](rand func() float64, all []T) {
	for i := len(all) - 1; i > 0; i-- {
		j := int(rand() * float64(i+1))
		all[i], all[j] = all[j], all[i]
	}
}

// named are the servers in the order in which they were named, the servers of the
// configuration first. The caller holds s.mu.
func (s *Servers) named() []string {
	all := slices.Clone(s.tracked)
	for _, addr := range s.given {
		if !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	return all
}

// preferTracked makes the next round begin with the servers of the configuration, if
// it is known, and not with addr, which is up. The other servers come after them,
// because the configuration may have addresses that this client cannot reach. The
// caller holds s.mu.
func (s *Servers) preferTracked(addr string) {
	n := len(s.tracked)
	if n == 0 {
		return
	}
	s.next = 0
	if i := slices.Index(s.addrs[:n], addr); i >= 0 {
		s.next = (i + 1) % n
		if n == 1 {
			s.next = 1 % len(s.addrs)
		}
	}
}

// Knows reports whether a server is in the list.
func (s *Servers) Knows(addr string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.addrs, addr)
}

// Count is the number of servers, as far as it is known: those that a name stands for
// are known once it was resolved.
func (s *Servers) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.countLocked()
}

func (s *Servers) countLocked() (n int) {
	for _, addr := range s.addrs {
		n += max(1, len(s.lines[addr]))
	}
	return n
}
