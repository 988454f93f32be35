package client

import (
	"time"

	"github.com/docent-go/docent/client/internal/lease"
	"github.com/docent-go/docent/internal/wire"
)

// HeartbeatInfo describes a heartbeat: a transaction that checks held nodes and
// proves the session for all holds in it.
type HeartbeatInfo struct {
	Session  int64
	Nodes    int // that were checked
	Begun    time.Time
	Duration time.Duration
	// Left is how much time is left then until holds end: until the deadline less the
	// safety margin. It is negative once they are lost.
	Left time.Duration
	// Full is the most that Left can be, by the session timeout and the [LeasePolicy].
	Full time.Duration
	Err  error // why there was no useful answer; nil if there was one
}

// told tells the observer of a heartbeat.
func (l *leaseKeeper) told(b *lease.Beat, err error) {
	hook := l.s.core.cfg.observer.Heartbeat
	if hook == nil {
		return
	}
	t := l.state()
	info := HeartbeatInfo{
		Session: l.s.link.SessionID(), Nodes: len(b.Nodes),
		Begun: b.At, Duration: time.Since(b.At), Left: t.Left, Full: t.Life - t.Margin, Err: err,
	}
	l.s.core.teller.Tell(func() { hook(info) })
}

// DialInfo describes a dial and the handshake that followed. A phase that was not
// reached took no time.
type DialInfo struct {
	Server    string // of the connect string, "host:port"
	Begun     time.Time
	Duration  time.Duration // all of it
	Transport time.Duration // until the server's port answered
	TLS       time.Duration // after that, with [WithTLS]
	Handshake time.Duration // after that; 0 unless the server accepted the session
	Session   int64         // that the server accepted, or 0
	Restored  bool          // the session was there before
	Err       error         // nil if the server accepted the session
}

// dialed returns the function that tells the observer of dials, nil without a hook.
func (c *core) dialed() func(wire.Dialed) {
	hook := c.cfg.observer.Dial
	if hook == nil {
		return nil
	}
	return func(d wire.Dialed) {
		info := DialInfo{
			Server: d.Server, Begun: d.Begun, Duration: d.Took,
			Transport: d.Transport, TLS: d.TLS, Handshake: d.Handshake,
			Session: d.SessionID, Restored: d.Reattached, Err: d.Err,
		}
		c.teller.Tell(func() { hook(info) })
	}
}
