package proxy

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	dialLimit   = 5 * time.Second
	lingerLimit = 5 * time.Second
)

// mode is what happens to new connections.
type mode int

const (
	accepting mode = iota
	refusing
	hanging
)

// Proxy passes connections on to one server. Its methods are safe for concurrent use.
type Proxy struct {
	target string
	seed   uint64
	addr   *address

	tlsClients, tlsServer *tls.Config // nil without TLS

	done      chan struct{}      // closed by Close
	cancel    context.CancelFunc // ends dials in progress
	listeners chan net.Listener  // those to accept from
	dialer    net.Dialer
	group     sync.WaitGroup // every goroutine of the proxy

	toServer, toClient gate // of all connections

	mu       sync.Mutex // guards the rest, the connections' state too; never held across I/O
	listener net.Listener
	mode     mode
	turn     int // grows with every change of mode, so that an old timer does nothing
	rules    []*Rule
	draw     *rand.Rand
	all      []*conn
	live     map[*conn]bool
	hung     map[net.Conn]bool
	trace    trace
	failed   error
	closed   bool
}

// conn is one client's connection and its other half to the server.
type conn struct {
	p      *Proxy
	id     int
	client *net.TCPConn
	plain  half // client, or what TLS makes of it; set before anything is forwarded

	toServer, toClient gate
	gone               chan struct{} // closed when nothing more is for the client
	goneOnce           sync.Once

	// guarded by p.mu
	server  half // nil until dialed
	session int64
	stats   Stats
	pending pending
}

// half is one side of a connection: that of the client or that of the server.
type half interface {
	net.Conn
	CloseWrite() error
}

// Option changes a proxy.
type Option func(*Proxy)

// WithSeed sets the seed of the rules' probabilities; without it it is random. A
// failed test prints it.
func WithSeed(seed uint64) Option { return func(p *Proxy) { p.seed = seed } }

// Addr is where clients connect to; it never changes.
func (p *Proxy) Addr() string { return p.addr.String() }

// Seed is what the rules' probabilities are drawn from. Draws are made in the order
// in which matching requests arrive.
func (p *Proxy) Seed() uint64 { return p.seed }

// On puts a rule in force and returns it. The rules are asked in the order they were
// made; the first that fires has the request. The proxy calls then when the rule
// fires, before the action takes effect, on the connection's goroutine. What then
// does, such as Refuse, is in force before the client can notice the action.
func (p *Proxy) On(m Match, a Action, then ...func(Request)) *Rule {
	r := &Rule{proxy: p, match: m, action: a, then: then, changed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return r
}

func (p *Proxy) removeRule(r *Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = slices.DeleteFunc(p.rules, func(other *Rule) bool { return other == r })
}

// choose returns the rule that acts on the request, nil if none does.
func (p *Proxy) choose(req Request) *Rule {
	p.mu.Lock()
	rules := slices.Clone(p.rules)
	p.mu.Unlock()
	for _, r := range rules {
		if r.match.picks(req) && r.claim(p.random) {
			return r
		}
	}
	return nil
}

func (p *Proxy) random() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draw.Float64()
}

// Stall holds both directions of all connections, later ones too, until Resume.
func (p *Proxy) Stall() {
	p.StallRequests()
	p.StallReplies()
}

// StallRequests holds what clients send, until Resume.
func (p *Proxy) StallRequests() { p.toServer.hold(p) }

// StallReplies holds what the server sends, until Resume.
func (p *Proxy) StallReplies() { p.toClient.hold(p) }

// Resume lets go everything that is stalled, by rules too.
func (p *Proxy) Resume() {
	p.toServer.releaseAll()
	p.toClient.releaseAll()
	for _, c := range p.connections() {
		c.toServer.releaseAll()
		c.toClient.releaseAll()
	}
}

func (p *Proxy) connections() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns := make([]*conn, 0, len(p.live))
	for c := range p.live {
		conns = append(conns, c)
	}
	return conns
}

func (p *Proxy) closeHung() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.hung {
		_ = c.Close()
	}
}

// Trace returns the last events, one a line: seconds since the start, connection,
// direction, type, xid, path or error.
func (p *Proxy) Trace() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trace.text()
}

func (p *Proxy) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trace.add(format, args...)
}
