package wire

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Users see these texts within errors of package client, so they name no package.
var (
	// ErrOver means that the Link's session is over and the Link is of no more use.
	// Errors that wrap it wrap the cause as well.
	ErrOver = errors.New("the session is over")
	// ErrRefused means that the server answered a handshake with session id 0
	// or without a timeout: the session has expired or the password is wrong.
	ErrRefused = errors.New("the server refused the session, which has expired there")
	// ErrChanged means that a server offered, or go-zookeeper asked for, another
	// session than the Link's.
	ErrChanged = errors.New("this is another session")
	// ErrNoLeader means that a server turned a handshake away because its
	// ensemble has no leader. It says nothing about the session.
	ErrNoLeader = errors.New("the server has no leader")
	// ErrReadOnly means that a server has no session for the client because it is cut off
	// from its quorum.
	ErrReadOnly = errors.New("the server is read-only: it is cut off from its quorum")
	// ErrClosed means that the session was closed on request and the server
	// confirmed it.
	ErrClosed = errors.New("the session was closed")
	// ErrNotConnected means that there is no connection with an accepted
	// handshake; nothing was sent.
	ErrNotConnected = errors.New("not connected")
	// ErrAuthFailed means that the server rejected credentials. It is public in
	// package client, as is [ErrFrameTooLarge].
	ErrAuthFailed = errors.New("authentication failed")
	// ErrLoginWanted is the answer of servers that take no request, not even the end of
	// the session, from clients that have not logged in.
	ErrLoginWanted = ServerError(zoodefs.CodeSessionClosedSASL)
	// ErrFrameTooLarge means that a frame exceeds the limit of its direction.
	ErrFrameTooLarge = errors.New("frame too large")
	// ErrProtocol means that bytes arrived which are not ZooKeeper's protocol.
	ErrProtocol = errors.New("this is not ZooKeeper's protocol")
)

// CodeReplyTooLarge is the code of a [Reply] that was thrown away because it was
// larger than Config.MaxReply. No server uses it.
const CodeReplyTooLarge = -1 << 30

// errLoneCheck keeps a check from leaving outside a transaction: it stops every server of an
// ensemble that applies it (ZOOKEEPER-2623, before 3.8.5 and 3.9.3).
var errLoneCheck = errors.New("a check is sent within a transaction only, because alone it stops servers")

var errSuperseded = errors.New("the connection was given up for the next one")

// ServerError is a code other than 0 in the header of the reply to a request of the
// Link's own.
type ServerError int32

// Error returns the code; go-zookeeper's sentinels are not used because most
// codes have none.
func (e ServerError) Error() string { return fmt.Sprintf("server answered code %d", int32(e)) }

// overError is the error that callers get from a Link that is over.
func overError(cause error) error {
	if errors.Is(cause, ErrOver) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrOver, cause)
}

func closedByPeer(err error) bool {
	for _, closed := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, closed) {
			return true
		}
	}
	return false
}
