package zktest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Name returns the client's name.
func (l *EnsembleLink) Name() string { return l.name }

// To returns the client's link to member i. It panics like [Ensemble.Server] if there
// is no such member.
func (l *EnsembleLink) To(i int) *ClientLink { return l.ensemble.Server(i).Client(l.name) }

// Servers returns addresses of all members, "127.0.0.1:2181" being that of the first.
// Their order is drawn from the seed and the client's name, as clients shuffle their
// servers. They are addresses in form only. A client that does not resolve names can
// use "zk1:2181" and so on instead.
func (l *EnsembleLink) Servers() []string { return slices.Clone(l.servers) }

// member finds the link to the member that an address names. It goes by the host
// name, or by the last number of a loopback address; 127.0.0.1 is the first member.
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
	if !ok || err != nil || i < 1 || i > l.ensemble.Size() {
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

// Dial is DialContext with a time limit instead of a context, and has the signature
// of go-zookeeper's Dialer. A limit of zero means none.
func (l *EnsembleLink) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	to, err := l.member(address)
	if err != nil {
		return nil, err
	}
	return to.Dial(network, address, timeout)
}

func (l *EnsembleLink) each(f func(*ClientLink)) {
	for i := range l.ensemble.Size() {
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

// Gate returns at once if the client is not paused. Otherwise it waits until the
// client is resumed, or until ctx ends; its error wraps the cause of ctx then.
func (l *EnsembleLink) Gate(ctx context.Context) error {
	for i := range l.ensemble.Size() {
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

// Sessions returns the live sessions that the client has made, as the leader knows
// them; see [ClientLink.Sessions]. Without a leader it returns none.
func (l *EnsembleLink) Sessions() []Session {
	m := l.ensemble.Leader()
	if m == nil {
		return nil
	}
	return m.Client(l.name).Sessions()
}

// ExpireSession makes the leader end the client's live sessions, and returns how
// many there were; see [Server.ExpireSession]. Without a leader it ends none.
func (l *EnsembleLink) ExpireSession() int {
	m := l.ensemble.Leader()
	if m == nil {
		return 0
	}
	return m.Client(l.name).ExpireSession()
}
