package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
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

// Option changes a proxy.
type Option func(*Proxy)

// WithSeed sets the seed of the rules' probabilities; without it it is random. A
// failed test prints it.
func WithSeed(seed uint64) Option { return func(p *Proxy) { p.seed = seed } }

// New starts a proxy for the server at target. It listens on a port of 127.0.0.1,
// see [Proxy.Addr], until Close. ctx bounds the start only.
func New(ctx context.Context, target string, opts ...Option) (*Proxy, error) {
	addr, err := reserve()
	if err != nil {
		return nil, fmt.Errorf("proxy: reserve a port: %w", err)
	}
	listener, err := addr.listen()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("proxy: listen: %w", err), addr.release())
	}
	p := &Proxy{
		target: target, seed: rand.Uint64(), addr: addr,
		done: make(chan struct{}), listeners: make(chan net.Listener), dialer: net.Dialer{Timeout: dialLimit},
		listener: listener, live: map[*conn]bool{}, hung: map[net.Conn]bool{}, trace: newTrace(),
	}
	for _, o := range opts {
		o(p)
	}
	p.draw = rand.New(rand.NewPCG(p.seed, p.seed))
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	p.group.Go(func() { p.acceptAll(life) })
	p.listeners <- listener
	return p, nil
}

// Start is New for a test. It ends the test on an error, and closes the proxy when
// the test ends. If the test failed, it prints the seed and what passed last.
func Start(t testing.TB, target string, opts ...Option) *Proxy {
	t.Helper()
	p, err := New(t.Context(), target, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close proxy of %s: %v", target, err)
		}
		if t.Failed() {
			t.Logf("proxy %s of %s, seed %d:\n%s", p.Addr(), target, p.Seed(), p.Trace())
		}
	})
	return p
}

// Addr is where clients connect to; it never changes.
func (p *Proxy) Addr() string { return p.addr.String() }

// Seed is what the rules' probabilities are drawn from. Draws are made in the order
// in which matching requests arrive.
func (p *Proxy) Seed() uint64 { return p.seed }

// Close cuts all connections and returns when no goroutine of the proxy is left. It
// returns the first error that kept the proxy from listening again. Rules may be
// read afterwards. Further calls do nothing.
func (p *Proxy) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	close(p.done)
	listener := p.listener
	p.listener = nil
	p.mu.Unlock()

	p.cancel()
	if listener != nil {
		_ = listener.Close()
	}
	for _, c := range p.connections() {
		c.kill()
	}
	p.closeHung()
	p.group.Wait()
	return errors.Join(p.failed, p.addr.release())
}

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

// CutAll cuts every connection that there is now, hung ones too.
func (p *Proxy) CutAll() {
	for _, c := range p.connections() {
		c.leave(cutCounted)
	}
	p.closeHung()
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
