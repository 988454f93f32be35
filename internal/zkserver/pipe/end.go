package pipe

import (
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// Addr is the address of an end of a link.
type Addr string

// Network returns "zktest".
func (Addr) Network() string { return "zktest" }

// String returns the address.
func (a Addr) String() string { return string(a) }

// End is one end of an in-memory connection. It is a net.Conn whose
// methods are safe for concurrent use and whose writes never block.
type End struct {
	In, Out       *Half
	Local, Remote net.Addr
	OnClose       func()

	mu            sync.Mutex // guards the rest
	writeDeadline time.Time
	closed        bool
}

// Read returns bytes that have arrived. It does not return bytes that are held or
// still on their way.
func (l *End) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return l.In.read(p)
}

// Write hands p to the link and returns at once.
func (l *End) Write(p []byte) (int, error) {
	l.mu.Lock()
	closed, deadline := l.closed, l.writeDeadline
	l.mu.Unlock()
	switch {
	case closed:
		return 0, net.ErrClosed
	case !deadline.IsZero() && !time.Now().Before(deadline) && !l.In.standsStill():
		return 0, os.ErrDeadlineExceeded
	}
	l.Out.Write(slices.Clone(p), 0)
	return len(p), nil
}

// Close ends both directions: the peer reads everything that was written before,
// and then the end of the stream.
func (l *End) Close() error {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	l.mu.Unlock()
	if was {
		return net.ErrClosed
	}
	l.In.closeRead()
	l.Out.CloseWrite()
	if l.OnClose != nil {
		l.OnClose()
	}
	return nil
}

// LocalAddr returns the address of this end.
func (l *End) LocalAddr() net.Addr { return l.Local }

// RemoteAddr returns the address of the other end.
func (l *End) RemoteAddr() net.Addr { return l.Remote }

// SetDeadline sets the deadlines for reading and writing.
func (l *End) SetDeadline(t time.Time) error {
	l.In.setDeadline(t)
	return l.SetWriteDeadline(t)
}

// SetReadDeadline sets the deadline for reading.
func (l *End) SetReadDeadline(t time.Time) error {
	l.In.setDeadline(t)
	return nil
}

// SetWriteDeadline sets the deadline for writing. A write never waits, so it fails
// only if the deadline has passed before.
func (l *End) SetWriteDeadline(t time.Time) error {
	l.mu.Lock()
	l.writeDeadline = t
	l.mu.Unlock()
	return nil
}

// standsStill reports whether deadlines stand still.
func (h *Half) standsStill() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.paused.IsZero()
}
