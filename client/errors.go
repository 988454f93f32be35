package client

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

var (
	// ErrClosed is returned by every call on a client after Close, and is the
	// cause of a session that Close ended.
	ErrClosed = errors.New("client: closed")

	// ErrSessionLost says that the session is over although nobody closed it:
	// the server expired it, or no request sent within its timeout was
	// answered. Ephemeral nodes of the session are gone or about to go.
	ErrSessionLost = errors.New("client: session lost")

	// ErrNotConnected says that no server could be reached in time. Nothing
	// was sent.
	ErrNotConnected = errors.New("client: not connected")

	// ErrInvalidPath says that a path breaks ZooKeeper's rules. Nothing was
	// sent.
	ErrInvalidPath = zk.ErrInvalidPath

	// ErrTooLarge says that a request is larger than the frame a server
	// accepts (its jute.maxbuffer, see [WithMaxRequest]). Nothing was sent: a
	// server answers such a frame by dropping the connection.
	ErrTooLarge = wire.ErrFrameTooLarge

	// ErrReplyTooLarge says that the answer was longer than [WithMaxReply]
	// allows, and was thrown away. What was asked for was done; the connection
	// is not affected. It is not tried again.
	ErrReplyTooLarge = errors.New("client: the answer is larger than WithMaxReply allows")

	// ErrAuthFailed says that the servers refused the credentials given with
	// [WithAuth].
	ErrAuthFailed = wire.ErrAuthFailed

	// ErrNoChroot says that the chroot of the connect string does not exist.
	ErrNoChroot = errors.New("client: chroot does not exist")
)

// errMoved stands for zk.ErrBadVersion where an earlier try of the same call may
// have been applied: the refusal does not tell who moved the version.
var errMoved = errors.New("the answer to an earlier try was lost, and the version has moved since: that try was applied, or another client has written")

// Outcome says what is known about the fate of a failed operation.
type Outcome int

// The outcomes of a failed operation.
const (
	// OutcomeUnknown: a request left and its answer did not come. It may have
	// been applied, may never be, or may still be on its way.
	OutcomeUnknown Outcome = iota
	// OutcomeNeverSent: nothing reached a server.
	OutcomeNeverSent
	// OutcomeRefused: a server answered with an error; nothing was changed.
	OutcomeRefused
)

// String returns the outcome in words.
func (o Outcome) String() string {
	switch o {
	case OutcomeNeverSent:
		return "never sent"
	case OutcomeRefused:
		return "refused"
	default:
		return "outcome unknown"
	}
}

// OpError is the error of a failed operation.
type OpError struct {
	Op      string  // the operation: "create", "delete", ...
	Path    string  // the path as the caller gave it
	Outcome Outcome // what is known about its fate
	Err     error   // why
}

// Error names the operation, the path, the reason and, where it matters, that
// the outcome is not known.
func (e *OpError) Error() string {
	s := "client: " + e.Op + " " + shortened(e.Path) + ": " + strings.TrimPrefix(e.Err.Error(), "client: ") + e.remedy()
	if e.Outcome == OutcomeUnknown {
		s += " (outcome unknown)"
	}
	return s
}

// shortened keeps one call with an absurd path from filling or forging a log.
func shortened(path string) string {
	const most = 256
	if path == "" || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		path = strconv.Quote(path)
	}
	if len(path) <= most {
		return path
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(path[:most], ""), len(path))
}

// remedy says what to do about answers of a server that do not say it.
func (e *OpError) remedy() string {
	switch {
	case errors.Is(e.Err, ErrTooLarge):
		return " (raise jute.maxbuffer on the servers and client.WithMaxRequest here, or store less)"
	case errors.Is(e.Err, zk.ErrNoAuth):
		return " (the ACL of the node or of its parent does not allow it: pass credentials with client.WithAuth, or have the ACL changed)"
	case errors.Is(e.Err, zk.ErrInvalidACL):
		return " (an ACL is empty, or says \"auth\" without client.WithAuth, or has a scheme or an id that the server does not know)"
	case e.Op == "create" && errors.Is(e.Err, zk.ErrNoNode):
		return " (the parent: make it first, or pass client.WithParents)"
	default:
		return ""
	}
}

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }

// NeverSent reports whether err is of an operation of which nothing reached a
// server, so that repeating it cannot do it twice. A read that got no answer
// counts as such: there is nothing to be in doubt about.
func NeverSent(err error) bool { return hasOutcome(err, OutcomeNeverSent) }

// UnknownOutcome reports whether err is of an operation that may or may not
// have been applied.
func UnknownOutcome(err error) bool { return hasOutcome(err, OutcomeUnknown) }

// Refused reports whether err is of an operation that a server answered with
// an error, having changed nothing.
func Refused(err error) bool { return hasOutcome(err, OutcomeRefused) }

func hasOutcome(err error, want Outcome) bool {
	var op *OpError
	return errors.As(err, &op) && op.Outcome == want
}

// Code is an error code of the server for which go-zookeeper has no variable.
// It is itself an error: errors.Is(err, client.CodeThrottled).
type Code int32

// Codes of ZooKeeper's KeeperException.Code without a variable in go-zookeeper.
const (
	CodeSystemError          Code = -1
	CodeRuntimeInconsistency Code = -2
	CodeDataInconsistency    Code = -3
	CodeConnectionLoss       Code = -4
	CodeMarshallingError     Code = -5
	CodeUnimplemented        Code = -6
	CodeOperationTimeout     Code = -7
	CodeInvalidState         Code = -9
	CodeNewConfigNoQuorum    Code = -13
	CodeReconfigInProgress   Code = -14
	CodeEphemeralOnLocal     Code = -120
	CodeNotReadOnly          Code = -119
	CodeNoWatcher            Code = -121
	CodeRequestTimeout       Code = -122
	CodeSessionClosedSASL    Code = -124
	CodeQuotaExceeded        Code = -125
	CodeThrottled            Code = -127
)

var codeTexts = map[Code]string{ //nolint:gochecknoglobals // a constant table
	CodeSystemError:          "system error",
	CodeRuntimeInconsistency: "not executed, another part of the transaction failed",
	CodeDataInconsistency:    "data inconsistency",
	CodeConnectionLoss:       "connection loss reported by the server",
	CodeMarshallingError:     "the server could not read the request",
	CodeUnimplemented:        "not implemented or not enabled on this server (TTL nodes need extendedTypesEnabled=true)",
	CodeOperationTimeout:     "operation timeout",
	CodeInvalidState:         "invalid state",
	CodeNewConfigNoQuorum:    "no quorum of the new configuration is connected",
	CodeReconfigInProgress:   "another reconfiguration is in progress",
	CodeNotReadOnly:          "the server is read-only: it is cut off from its quorum",
	CodeEphemeralOnLocal:     "ephemeral node on a local session",
	CodeNoWatcher:            "no such watcher",
	CodeRequestTimeout:       "request timeout",
	CodeSessionClosedSASL:    "the server requires SASL authentication, which this client does not offer",
	CodeQuotaExceeded:        "quota exceeded",
	CodeThrottled:            "the server is throttling requests",
}

// Error returns the meaning of the code and its number.
func (c Code) Error() string {
	if text, ok := codeTexts[c]; ok {
		return fmt.Sprintf("zk: %s (code %d)", text, int32(c))
	}
	return fmt.Sprintf("zk: server error (code %d)", int32(c))
}

// known are the codes for which go-zookeeper has a variable.
var known = map[int32]error{ //nolint:gochecknoglobals // a constant table
	-8: zk.ErrBadArguments, -100: zk.ErrAPIError, -101: zk.ErrNoNode, -102: zk.ErrNoAuth, -103: zk.ErrBadVersion,
	-108: zk.ErrNoChildrenForEphemerals, -110: zk.ErrNodeExists, -111: zk.ErrNotEmpty, -112: zk.ErrSessionExpired,
	-114: zk.ErrInvalidACL, -115: zk.ErrAuthFailed, -117: zk.ErrNothing, -118: zk.ErrSessionMoved, -123: zk.ErrReconfigDisabled,
	wire.CodeReplyTooLarge: ErrReplyTooLarge,
}

// codeError is the error for a code of the server, nil for 0.
func codeError(code int32) error {
	if code == 0 {
		return nil
	}
	if err, ok := known[code]; ok {
		return err
	}
	return Code(code)
}

// retryable reports whether doing the same again later can succeed where err
// was an answer of the server.
func retryable(err error) bool {
	return errors.Is(err, zk.ErrSessionMoved) || errors.Is(err, CodeThrottled)
}
