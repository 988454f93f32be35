package zkserver

import (
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// linkAddr is the address of an end of a link.
type linkAddr string

// Network returns "zktest".
func (linkAddr) Network() string { return "zktest" }

// String returns the address.
func (a linkAddr) String() string { return string(a) }

// linkEnd is one end of an in-memory connection. It is a net.Conn whose
// methods are safe for concurrent use and whose writes never block.
type linkEnd struct {
	in, out       *half
	local, remote net.Addr
	onClose       func()

	mu            sync.Mutex // guards the rest
	writeDeadline time.Time
	closed        bool
}

// Read returns bytes that have arrived. It does not return bytes that are held or
// still on their way.
func (l *linkEnd) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return l.in.read(p)
}

// Write hands p to the link and returns at once.
func (l *linkEnd) Write(p []byte) (int, error) {
	l.mu.Lock()
	closed, deadline := l.closed, l.writeDeadline
	l.mu.Unlock()
	switch {
	case closed:
		return 0, net.ErrClosed
	case !deadline.IsZero() && !time.Now().Before(deadline) && !l.in.standsStill():
		return 0, os.ErrDeadlineExceeded
	}
	l.out.write(slices.Clone(p), 0)
	return len(p), nil
}

// Close ends both directions: the peer reads everything that was written before,
// and then the end of the stream.
func (l *linkEnd) Close() error {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	l.mu.Unlock()
	if was {
		return net.ErrClosed
	}
	l.in.closeRead()
	l.out.closeWrite()
	if l.onClose != nil {
		l.onClose()
	}
	return nil
}

// LocalAddr returns the address of this end.
func (l *linkEnd) LocalAddr() net.Addr { return l.local }

// RemoteAddr returns the address of the other end.
func (l *linkEnd) RemoteAddr() net.Addr { return l.remote }

// SetDeadline sets the deadlines for reading and writing.
func (l *linkEnd) SetDeadline(t time.Time) error {
	l.in.setDeadline(t)
	return l.SetWriteDeadline(t)
}

// SetReadDeadline sets the deadline for reading.
func (l *linkEnd) SetReadDeadline(t time.Time) error {
	l.in.setDeadline(t)
	return nil
}

// SetWriteDeadline sets the deadline for writing. A write never waits, so it fails
// only if the deadline has passed before.
func (l *linkEnd) SetWriteDeadline(t time.Time) error {
	l.mu.Lock()
	l.writeDeadline = t
	l.mu.Unlock()
	return nil
}

// standsStill reports whether deadlines stand still.
func (h *half) standsStill() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.paused.IsZero()
}

// link is a connection between a client and the server.
type link struct {
	up, down *half // client to server, server to client
	owner    *ClientLink
	tcp      net.Conn // set when the client's end is bridged to a socket

	clientGone, serverGone bool // guarded by the server's mutex
}

func (k *link) hold(c holdCause) {
	k.up.hold(c)
	k.down.hold(c)
}

func (k *link) release(c holdCause) {
	k.up.release(c)
	k.down.release(c)
}

// abort ends the connection at once for both sides.
func (k *link) abort() {
	k.up.abort()
	k.down.abort()
	if k.tcp != nil {
		_ = k.tcp.Close() // its reader hears of it
	}
}
