package client

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/where"
	"github.com/docent-go/docent/internal/wire"
)

// Code is an error code of a server that has no variable of its own. It is one of
// ZooKeeper's KeeperException.Code, or of another server. It is itself an error:
// errors.Is(err, client.Code(-119)).
type Code = fate.Code //nolint:errname // ZooKeeper's own name

// What a server answers. Where go-zookeeper has a variable for it, ours has the same
// value, so either name matches.
var (
	// ErrNoNode says that the node does not exist. From a create it says that the
	// parent does not exist.
	ErrNoNode = zk.ErrNoNode

	// ErrNodeExists says that a node of that path exists already.
	ErrNodeExists = zk.ErrNodeExists

	// ErrNotEmpty says that a node with children cannot be deleted; see
	// [Client.DeleteAll].
	ErrNotEmpty = zk.ErrNotEmpty

	// ErrBadVersion says that the node has another version than the call gave:
	// another client has written.
	ErrBadVersion = zk.ErrBadVersion

	// ErrNoAuth says that the ACL of the node, or of its parent, does not allow the
	// operation.
	ErrNoAuth = zk.ErrNoAuth

	// ErrInvalidACL says that an ACL has no entry, or an entry that the server does
	// not know.
	ErrInvalidACL = zk.ErrInvalidACL

	// ErrNoChildrenForEphemerals says that the parent is ephemeral.
	ErrNoChildrenForEphemerals = zk.ErrNoChildrenForEphemerals

	// ErrThrottled says that the server has too much to do. The client tries again by
	// its retry policy.
	ErrThrottled error = fate.Throttled

	// ErrQuotaExceeded says that a quota on the path is used up.
	ErrQuotaExceeded error = fate.QuotaExceeded
)

// What the client finds out by itself.
var (
	// ErrClosed is returned by every call on a client after Close, and is the
	// cause of a session that Close ended.
	ErrClosed = fate.ErrClosed

	// ErrSessionLost says that the session is over although this client did not close
	// it. The server expired it, or no request sent within its timeout was answered.
	// Its ephemeral nodes are deleted, or about to be.
	ErrSessionLost = fate.ErrSessionLost

	// ErrNotConnected says that no server could be reached in time. Nothing was sent,
	// unless the error matches [UnknownOutcome] as well. Then an earlier try was
	// sent, its connection was lost, and no server was reached since.
	ErrNotConnected = fate.ErrNotConnected

	// ErrInvalidPath says that a path breaks ZooKeeper's rules. Nothing was
	// sent.
	ErrInvalidPath = zk.ErrInvalidPath

	// ErrTooLarge says that a request is larger than the frame a server
	// accepts (its jute.maxbuffer, see [WithMaxRequest]). Nothing was sent: a
	// server answers such a frame by dropping the connection.
	ErrTooLarge = wire.ErrFrameTooLarge

	// ErrReplyTooLarge says that the answer was longer than [WithMaxReply] allows,
	// and was thrown away. The server has carried the request out. The connection is
	// not affected, and the client does not try again.
	ErrReplyTooLarge = fate.ErrReplyTooLarge

	// ErrAuthFailed says that the servers refused the credentials given with
	// [WithAuth] or [WithSASL], or did not prove that they know the user of the latter.
	ErrAuthFailed = wire.ErrAuthFailed

	// ErrUnsupported says that the servers do not have what an operation needs. The text
	// of the error names the feature and the servers that have it. Nothing was changed.
	ErrUnsupported = fate.ErrUnsupported

	// ErrReadOnly says that the client was made with [WithReadOnly] and the call writes.
	// Nothing was sent.
	ErrReadOnly = errors.New("client: this client only reads, as client.WithReadOnly says")

	// ErrNoChroot says that the chroot of the connect string does not exist.
	ErrNoChroot = errors.New("client: chroot does not exist")
)

// errMoved takes the place of ErrBadVersion where an earlier try of the same call may have
// been applied. The refusal does not tell which client changed the version.
var errMoved = errors.New("the answer to an earlier try was lost, and the version has changed since: that try was applied, or another client has written")

// misuse is an argument that no server would take. It matches zk.ErrInvalidFlags.
type misuse string

func (m misuse) Error() string        { return string(m) }
func (m misuse) Is(target error) bool { return target == zk.ErrInvalidFlags }

func misused(format string, args ...any) error {
	return fate.Unsent(misuse(fmt.Sprintf(format, args...)))
}

// hopeless reports whether the same call must fail later too. The client is closed,
// or the request cannot be sent or answered.
func hopeless(err error) bool {
	for _, reason := range []error{
		ErrClosed, ErrInvalidPath, ErrTooLarge, ErrReplyTooLarge,
		ErrUnsupported, ErrInvalidACL, zk.ErrInvalidFlags, zk.ErrBadArguments,
		ErrNoChroot, ErrUnsafeTimeout, ErrReadOnly,
	} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// noChroot says what to do about a chroot that does not exist.
func noChroot(chroot string) error { return fmt.Errorf("%w: %s", ErrNoChroot, where.NoChroot(chroot)) }

// errEmptyACL refuses an ACL that a server would take for no ACL at all.
var errEmptyACL = fmt.Errorf("%w: it has no entry", ErrInvalidACL)
