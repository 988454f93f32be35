package wire

import (
	"context"
	"time"
)

// Dialed describes a dial and the handshake that followed. A phase that was not
// reached took no time.
type Dialed struct {
	Server     string
	Begun      time.Time
	Took       time.Duration // all of it
	Transport  time.Duration // until the server's port answered
	TLS        time.Duration // after that
	Handshake  time.Duration // after that; 0 unless the server accepted the session
	SessionID  int64         // that the server accepted, or 0
	Reattached bool          // the session was there before
	Err        error         // nil if the server accepted the session
}

type dialedKey struct{}

// TransportUp is for a Config.Dial that does TLS. ctx is the context of the Dial. The
// call notes that the connection below TLS stands.
func TransportUp(ctx context.Context) {
	if d, ok := ctx.Value(dialedKey{}).(*Dialed); ok {
		d.Transport = time.Since(d.Begun)
	}
}

// connected notes that Config.Dial has returned a connection.
func (d *Dialed) connected() {
	took := time.Since(d.Begun)
	if d.Transport == 0 {
		d.Transport = took
		return
	}
	d.TLS = took - d.Transport
}

// accepted notes that the server has accepted the session.
func (d *Dialed) accepted(h Handshake) {
	d.SessionID, d.Reattached = h.SessionID, h.Reattached
}

// enqueueDialed reports d, unless that is nil. The caller holds l.mu.
func (l *Link) enqueueDialed(d *Dialed, err error) {
	f := l.cfg.OnDial
	if f == nil || d == nil {
		return
	}
	if d.Took, d.Err = time.Since(d.Begun), err; err == nil {
		d.Handshake = d.Took - d.Transport - d.TLS
	}
	l.events = append(l.events, func() { f(*d) })
}
