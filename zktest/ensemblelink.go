package zktest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"
)

// EnsembleLink is the network between one client and an [Ensemble]: a
// [ClientLink] to each member. Its dial methods pick the member by the host
// part of the address, and its other methods disturb the way to all members;
// [EnsembleLink.To] gives the way to one. It is safe for concurrent use.
type EnsembleLink struct {
	e       *Ensemble
	name    string
	servers []string
}

// Client returns the link of the named client, making it at its first use. See
// [ClientLink] for what depends on the name.
func (e *Ensemble) Client(name string) *EnsembleLink {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.links[name]; l != nil {
		return l
	}
	l := &EnsembleLink{e: e, name: name}
	for _, m := range e.members {
		m.client(name)
		l.servers = append(l.servers, fmt.Sprintf("127.0.0.%d:2181", m.id))
	}
	rng := rand.New(rand.NewPCG(e.cfg.seed, e.members[0].generator(name, 0, streamDial).Uint64()))
	rng.Shuffle(len(l.servers), func(i, j int) {
		l.servers[i], l.servers[j] = l.servers[j], l.servers[i]
	})
	e.links[name] = l
	return l
}

// Name returns the client's name.
func (l *EnsembleLink) Name() string { return l.name }

// To returns the way to member i, counted from 1.
func (l *EnsembleLink) To(i int) *ClientLink { return l.e.Server(i).Client(l.name) }

// Servers returns addresses of all members, "127.0.0.1:2181" being the first
// member's, in an order drawn from the seed and the client's name, as clients
// shuffle them. They are addresses in form only; for clients that do not resolve
// names "zk1:2181" and so on do as well.
func (l *EnsembleLink) Servers() []string { return append([]string(nil), l.servers...) }

// Hosts returns a provider of [EnsembleLink.Servers] for one client of
// go-zookeeper. A client that is given only some of them tries those, in the
// same order.
func (l *EnsembleLink) Hosts() *Hosts { return &Hosts{servers: l.Servers()} }

// Logger returns a logger that keeps a client quiet.
func (l *EnsembleLink) Logger() Logger { return Logger{} }

// member finds the member that an address names: by its host name, or by the
// last number of a loopback address, 127.0.0.1 being the first.
func (l *EnsembleLink) member(address string) (*ClientLink, error) {
	host := address
	if h, _, err := net.SplitHostPort(address); err == nil {
		host = h
	}
	number, ok := strings.CutPrefix(host, "zk")
	if !ok {
		number, ok = strings.CutPrefix(host, "127.0.0.")
	}
	i, err := strconv.Atoi(number)
	if !ok || err != nil || i < 1 || i > l.e.Size() {
		return nil, &net.OpError{
			Op: "dial", Net: "zktest",
			Err: &net.DNSError{Err: "no such member of the ensemble", Name: host, IsNotFound: true},
		}
	}
	return l.To(i), nil
}

// DialContext connects in memory to the member that the host part of address
// names: "zk1" or 127.0.0.1 for the first, and so on. For any other host the
// error is a [net.DNSError]. Otherwise see [ClientLink.DialContext].
func (l *EnsembleLink) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := l.member(address)
	if err != nil {
		return nil, err
	}
	return to.DialContext(ctx, network, address)
}

// Dial is DialContext with a time limit instead of a context: the Dialer of
// go-zookeeper. A limit of zero means none.
func (l *EnsembleLink) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	to, err := l.member(address)
	if err != nil {
		return nil, err
	}
	return to.Dial(network, address, timeout)
}

func (l *EnsembleLink) each(f func(*ClientLink)) {
	for i := range l.e.members {
		f(l.To(i + 1))
	}
}

// Partition cuts the client off from all members; see [ClientLink.Partition].
func (l *EnsembleLink) Partition() { l.each((*ClientLink).Partition) }

// PartitionReplies holds only what members send; see
// [ClientLink.PartitionReplies].
func (l *EnsembleLink) PartitionReplies() { l.each((*ClientLink).PartitionReplies) }

// PartitionRequests holds only what the client sends; see
// [ClientLink.PartitionRequests].
func (l *EnsembleLink) PartitionRequests() { l.each((*ClientLink).PartitionRequests) }

// Heal undoes the partitions of the client and every StallReply.
func (l *EnsembleLink) Heal() { l.each((*ClientLink).Heal) }

// Freeze holds both directions of all connections of the client; see
// [ClientLink.Freeze].
func (l *EnsembleLink) Freeze() { l.each((*ClientLink).Freeze) }

// Thaw undoes Freeze.
func (l *EnsembleLink) Thaw() { l.each((*ClientLink).Thaw) }

// Refuse makes the client's dials fail. Connections that exist go on.
func (l *EnsembleLink) Refuse() { l.each((*ClientLink).Refuse) }

// Accept undoes Refuse.
func (l *EnsembleLink) Accept() { l.each((*ClientLink).Accept) }

// Cut closes the client's connections and returns how many there were.
func (l *EnsembleLink) Cut() int {
	n := 0
	l.each(func(cl *ClientLink) { n += cl.Cut() })
	return n
}

// Pause models a client that stands still; see [ClientLink.Pause].
func (l *EnsembleLink) Pause() { l.each((*ClientLink).Pause) }

// Resume undoes Pause.
func (l *EnsembleLink) Resume() { l.each((*ClientLink).Resume) }

// Gate returns at once, or, while the client is paused, when it is resumed or
// ctx ends; then with ctx's error.
func (l *EnsembleLink) Gate(ctx context.Context) error {
	for i := range l.e.members {
		if err := l.To(i + 1).Gate(ctx); err != nil {
			return fmt.Errorf("zktest: client %q: %w", l.name, err)
		}
	}
	return nil
}

// SetLatency changes the latency of the client's connections to all members;
// see [ClientLink.SetLatency].
func (l *EnsembleLink) SetLatency(lo, hi time.Duration) {
	l.each(func(cl *ClientLink) { cl.SetLatency(lo, hi) })
}
