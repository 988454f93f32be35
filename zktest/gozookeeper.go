package zktest

import (
	"net"
	"slices"
	"sync"
	"time"
)

// Link is the network of one client as go-zookeeper uses it: a [ClientLink] or an
// [EnsembleLink].
type Link interface {
	Servers() []string
	Dial(network, address string, timeout time.Duration) (net.Conn, error)
	Hosts() *Hosts
	Logger() Logger
}

var (
	_ Link = (*ClientLink)(nil)
	_ Link = (*EnsembleLink)(nil)
)

// Options returns the options that go-zookeeper needs to connect through link.
// They are a dialer, a host provider that does not resolve and does not shuffle,
// and a logger that discards. The other arguments are always the same:
//
//	conn, events, err := zk.Connect(link.Servers(), 10*time.Second,
//		zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
//
// They are needed because this package does not import go-zookeeper, whose type of
// options has no name. More options can be appended to the result. A provider belongs
// to one connection: call Options again for the next one.
//
// Options panics when [Hosts] or [Logger] lack a method that the client wants.
func Options[
	O any,
	D ~func(network, address string, timeout time.Duration) (net.Conn, error),
	H, L any,
](link Link, withDialer func(D) O, withHosts func(H) O, withLogger func(L) O) []O {
	hosts, logger := any(link.Hosts()), any(link.Logger())
	return []O{withDialer(link.Dial), withHosts(hosts.(H)), withLogger(logger.(L))} //nolint:forcetypeassert,errcheck // documented
}

// Servers returns the server list for a client that dials through the link. It is
// an address in form only.
func (cl *ClientLink) Servers() []string { return []string{"127.0.0.1:2181"} }

// Hosts is the HostProvider of go-zookeeper without a resolver and without
// shuffling. It is safe for concurrent use.
type Hosts struct {
	mu      sync.Mutex // guards the rest
	servers []string
	next    int
	tried   int // since the last success
}

// Hosts returns a provider for one client of go-zookeeper.
func (cl *ClientLink) Hosts() *Hosts { return &Hosts{servers: cl.Servers()} }

// Init takes the server list of the client, which go-zookeeper has shuffled, and
// puts the servers that it knows back into their own order. The error is always
// nil.
func (h *Hosts) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(servers) == 0 {
		return nil
	}
	rank := func(server string) int {
		if i := slices.Index(h.servers, server); i >= 0 {
			return i
		}
		return len(h.servers)
	}
	given := slices.Clone(servers)
	slices.SortStableFunc(given, func(a, b string) int { return rank(a) - rank(b) })
	h.servers = given
	return nil
}

// Len returns the number of servers.
func (h *Hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next returns the server to try. retryStart reports whether all servers have been
// tried since the last success; the client pauses then.
func (h *Hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	retryStart = h.tried >= len(h.servers)
	if retryStart {
		h.tried = 0
	}
	server = h.servers[h.next%len(h.servers)]
	h.next++
	h.tried++
	return server, retryStart
}

// Connected tells the provider that the last server works.
func (h *Hosts) Connected() {
	h.mu.Lock()
	h.tried = 0
	h.mu.Unlock()
}

// Logger discards what a client logs. It has go-zookeeper's Printf method.
type Logger struct{}

// Logger returns a logger that discards everything.
func (cl *ClientLink) Logger() Logger { return Logger{} }

// Hosts returns a provider of [EnsembleLink.Servers] for one client of
// go-zookeeper. If the client is given only some of them it tries these, in the
// same order.
func (l *EnsembleLink) Hosts() *Hosts { return &Hosts{servers: l.Servers()} }

// Logger returns a logger that discards everything.
func (l *EnsembleLink) Logger() Logger { return Logger{} }

// Printf discards its arguments.
func (Logger) Printf(string, ...any) {}
