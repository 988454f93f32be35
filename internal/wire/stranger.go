package wire

import (
	"errors"
	"fmt"
)

// ErrHungUp means that the peer accepted the connection and closed it without an
// answer to the handshake.
var ErrHungUp = errors.New("the server closed the connection in the handshake")

// hungUp marks the error of a handshake whose connection the peer has closed.
func hungUp(err error) error {
	if closedByPeer(err) {
		return fmt.Errorf("%w: %w", ErrHungUp, err)
	}
	return err
}

// suspectSize is less than any limit that servers have for the length of a request.
const suspectSize = 4 << 10

// suspect names the largest request that was under way when the peer closed the
// connection. A server whose jute.maxbuffer is less does that without an answer, and so
// does a server that is restarted. The caller holds l.mu.
func (c *conn) suspect(err error) error {
	size := 0
	for _, r := range c.sent {
		if r.x != nil {
			size = max(size, r.x.size-lengthSize)
		}
	}
	if size < suspectSize || !closedByPeer(err) {
		return err
	}
	return &SuspectError{size, err}
}

// SuspectError is the end of a connection that the peer closed while a large request was
// under way, perhaps because of it.
type SuspectError struct {
	Size int // of the request
	Err  error
}

// Error names the size.
func (e *SuspectError) Error() string {
	return fmt.Sprintf("%v (a request of %d bytes was under way: the servers' jute.maxbuffer may be less)", e.Err, e.Size)
}

// Unwrap returns the end of the connection.
func (e *SuspectError) Unwrap() error { return e.Err }

// Suspect reports whether the connection that ended with err may have ended because of x.
func (x *Exchange) Suspect(err error) bool {
	var s *SuspectError
	return errors.As(err, &s) && x.size-lengthSize == s.Size
}

// StrangerError is the error of a handshake whose answer no ZooKeeper sends. It
// matches [ErrProtocol].
type StrangerError struct {
	Banner string // the printable text that the answer begins with, or ""
	TLS    bool   // the answer is a record of TLS
	Length uint32 // of the answer, if it were one of ZooKeeper
}

// Error quotes the answer.
func (e *StrangerError) Error() string {
	switch {
	case e.TLS:
		return ErrProtocol.Error() + ": the answer to the handshake is a TLS record"
	case e.Banner != "":
		return fmt.Sprintf("%v: the answer to the handshake begins with %q", ErrProtocol, e.Banner)
	default:
		return fmt.Sprintf("%v: handshake of %d bytes", ErrProtocol, e.Length)
	}
}

// Unwrap returns ErrProtocol.
func (e *StrangerError) Unwrap() error { return ErrProtocol }

// Limits of the quotation from a stranger's answer.
const (
	leastBanner = 4 // a shorter text may be a length
	mostBanner  = 40
)

// stranger describes an answer to the handshake whose length cannot be right. It
// looks at the bytes that have arrived and waits for no more.
func (c *conn) stranger(length uint32) error {
	came, _ := c.br.Peek(min(c.br.Buffered(), mostBanner)) // that much is there
	e := &StrangerError{Length: length}
	const alert, handshake, major = 0x15, 0x16, 3
	e.TLS = len(came) > 1 && (came[0] == alert || came[0] == handshake) && came[1] == major
	n := 0
	for n < len(came) && came[n] >= ' ' && came[n] <= '~' {
		n++
	}
	if n >= leastBanner {
		e.Banner = string(came[:n])
	}
	return e
}
