package fate

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// Code is client.Code.
type Code int32

// Codes that the client acts on.
const (
	RuntimeInconsistency Code = -2
	ConnectionLoss       Code = -4
	Unimplemented        Code = -6
	OperationTimeout     Code = -7
	NoQuorumOfConfig     Code = -13
	ReconfigInProgress   Code = -14
	RequestTimeout       Code = -122
	AuthRequired         Code = -124
	QuotaExceeded        Code = -125
	Throttled            Code = -127
)

var codeTexts = map[Code]string{ //nolint:gochecknoglobals // a constant table
	-1:   "system error",
	-2:   "not executed, another part of the transaction failed",
	-3:   "data inconsistency",
	-4:   "connection loss reported by the server",
	-5:   "the server could not read the request, or does not have what it asks for",
	-6:   "not implemented or not enabled on this server",
	-7:   "operation timeout",
	-9:   "invalid state",
	-12:  "unknown session",
	-13:  "no quorum of the new configuration is connected and up to date: start its members, and repeat the call",
	-14:  "another reconfiguration is in progress",
	-113: "invalid callback",
	-119: "the server is read-only: it is cut off from its quorum",
	-120: "ephemeral node on a local session",
	-121: "no such watcher",
	-122: "request timeout",
	-124: "the servers want their clients to authenticate: pass client.WithAuth with a scheme that they accept, or client.WithSASL",
	-125: "quota exceeded",
	-127: "the server is throttling requests",
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

// OfCode is the error for a code of the server, nil for 0.
func OfCode(code int32) error {
	if code == 0 {
		return nil
	}
	if err, ok := known[code]; ok {
		return err
	}
	return Code(code)
}

// Passing reports whether the servers may give another answer than err a moment later.
func Passing(err error) bool {
	return errors.Is(err, zk.ErrSessionMoved) || errors.Is(err, Throttled) || errors.Is(err, ReconfigInProgress) || errors.Is(err, ErrVanishing)
}
