package zktest

import (
	"context"
	"net"
	"time"

	"github.com/docent-go/docent/internal/zkserver"
)

// TCPClient is the name of the [ClientLink] to which all connections over TCP
// belong.
const TCPClient = "tcp"

// ClientLink is the network between one client and the server. Its dial methods
// make connections in memory, and its other methods disturb the network or the
// sessions of that client alone.
//
// Latency, the order of children and faults with a probability are drawn at random.
// The draws depend on the server's seed, the link's name and the number of the
// connection, and on nothing else. So give every client a name of its own, and a run
// can be repeated.
//
// A ClientLink is safe for concurrent use.
type ClientLink struct {
	engine *zkserver.ClientLink
	server *Server
}

// Name returns the client's name.
func (cl *ClientLink) Name() string { return cl.engine.Name() }

// DialContext connects to the server in memory. It ignores network and address, and
// has the signature of [net.Dialer.DialContext]. While the server or the link
// refuses, the error is ECONNREFUSED. While the link is partitioned, DialContext
// waits until it heals or ctx ends, and returns ctx's error then. After an error no
// connection remains.
func (cl *ClientLink) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	c, err := cl.engine.Dial(ctx.Done())
	if err == nil {
		return c, nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return nil, dialError(err)
}

// Dial is DialContext with a time limit instead of a context, and has the signature
// of go-zookeeper's Dialer. A limit of zero means none.
func (cl *ClientLink) Dial(_, _ string, timeout time.Duration) (net.Conn, error) {
	var done chan struct{}
	if timeout > 0 {
		done = make(chan struct{})
		defer time.AfterFunc(timeout, func() { close(done) }).Stop()
	}
	c, err := cl.engine.Dial(done)
	if err != nil {
		return nil, dialError(err)
	}
	return c, nil
}

// dialError says as the net package does which dial failed.
func dialError(err error) error {
	return &net.OpError{Op: "dial", Net: "zktest", Addr: serverAddr{}, Err: err}
}

// serverAddr is the address of a server that is dialed in memory.
type serverAddr struct{}

// Network returns "zktest".
func (serverAddr) Network() string { return "zktest" }

// String returns "zktest".
func (serverAddr) String() string { return "zktest" }

// Partition holds both directions of the client's connections and keeps its dials
// waiting. Its sessions expire after their timeouts. Heal undoes it.
func (cl *ClientLink) Partition() { cl.engine.Partition() }

// PartitionReplies holds only what the server sends. The client's requests, pings
// too, arrive and keep its session alive, while the client hears nothing. New dials
// wait. Heal undoes it.
func (cl *ClientLink) PartitionReplies() { cl.engine.PartitionReplies() }

// PartitionRequests holds only what the client sends. The client still hears of
// events, but its session expires. New dials wait. Heal undoes it.
func (cl *ClientLink) PartitionRequests() { cl.engine.PartitionRequests() }

// Heal undoes Partition, PartitionReplies, PartitionRequests and every StallReply.
// Held frames flow, and waiting dials go on.
func (cl *ClientLink) Heal() { cl.engine.Heal() }

// Freeze holds both directions of the client's connections, including later ones;
// dials succeed. Thaw undoes it.
func (cl *ClientLink) Freeze() { cl.engine.Freeze() }

// Thaw undoes Freeze.
func (cl *ClientLink) Thaw() { cl.engine.Thaw() }

// Refuse makes the client's dials fail. Connections that exist go on.
func (cl *ClientLink) Refuse() { cl.engine.Refuse() }

// Accept undoes Refuse.
func (cl *ClientLink) Accept() { cl.engine.Accept() }

// Cut closes the client's connections and returns how many there were. The client
// may come back at once.
func (cl *ClientLink) Cut() int { return cl.engine.Cut() }

// Pause models a client that stands still, in a garbage collection or in a stopped
// virtual machine. Both directions are held, and the deadlines of its connections do
// not run. Pause cannot stop the client's own goroutines; a goroutine that should
// stand still too calls [ClientLink.Gate].
func (cl *ClientLink) Pause() { cl.engine.Pause() }

// Resume undoes Pause. What is held flows, and deadlines have as much time left as
// they had.
func (cl *ClientLink) Resume() { cl.engine.Resume() }

// Gate returns at once if the client is not paused. Otherwise it waits until the
// client is resumed, or until ctx ends; it returns the cause of ctx then.
func (cl *ClientLink) Gate(ctx context.Context) error { return cl.engine.Gate(ctx) }

// SetLatency changes the latency of the client's connections, including later ones.
// The range must not be negative or empty; see [WithLatency].
func (cl *ClientLink) SetLatency(lo, hi time.Duration) { cl.engine.SetLatency(lo, hi) }

// Sessions returns the live sessions that the client has made, the oldest first. A
// client has more than one while a lost session that it has replaced has not yet
// expired. On a member of an ensemble these are the sessions that the client made
// on any member and that this member knows.
func (cl *ClientLink) Sessions() []Session {
	var own []Session
	for _, s := range cl.server.Sessions() {
		if s.Client == cl.Name() {
			own = append(own, s)
		}
	}
	return own
}

// ExpireSession ends the client's live sessions now, as their timeouts would, and
// returns how many there were. See [Server.ExpireSession].
func (cl *ClientLink) ExpireSession() int { return cl.eachSession(cl.server.ExpireSession) }

// MoveSession moves the client's sessions away from their connections here, and
// returns how many had one. See [Server.MoveSession].
func (cl *ClientLink) MoveSession() int { return cl.eachSession(cl.server.MoveSession) }

// eachSession calls f with the id of each of the client's sessions, and counts how
// often f reports true.
func (cl *ClientLink) eachSession(f func(id int64) bool) int {
	n := 0
	for _, s := range cl.Sessions() {
		if f(s.ID) {
			n++
		}
	}
	return n
}
