package observe

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// errorTypes are the words for errors; the first that matches counts. A code of a
// server has the name that KeeperException.Code gives it.
var errorTypes = []struct { //nolint:gochecknoglobals // a constant table
	err  error
	word string
}{
	{context.Canceled, "canceled"},
	{client.ErrClosed, "closed"},
	{client.ErrSessionLost, "session_lost"},
	{client.ErrLeaseExpired, "lease_expired"},
	{client.ErrNotConnected, "not_connected"},
	{client.ErrInvalidPath, "invalid_path"},
	{client.ErrTooLarge, "too_large"},
	{client.ErrReplyTooLarge, "reply_too_large"},
	{client.ErrNoChroot, "no_chroot"},
	{client.Code(-1), "SYSTEMERROR"},
	{client.Code(-2), "RUNTIMEINCONSISTENCY"},
	{client.Code(-3), "DATAINCONSISTENCY"},
	{client.Code(-4), "CONNECTIONLOSS"},
	{client.Code(-5), "MARSHALLINGERROR"},
	{client.Code(-6), "UNIMPLEMENTED"},
	{client.Code(-7), "OPERATIONTIMEOUT"},
	{zk.ErrBadArguments, "BADARGUMENTS"},
	{client.Code(-12), "UNKNOWNSESSION"},
	{client.Code(-13), "NEWCONFIGNOQUORUM"},
	{client.Code(-14), "RECONFIGINPROGRESS"},
	{zk.ErrAPIError, "APIERROR"},
	{client.ErrNoNode, "NONODE"},
	{client.ErrNoAuth, "NOAUTH"},
	{client.ErrBadVersion, "BADVERSION"},
	{client.ErrNoChildrenForEphemerals, "NOCHILDRENFOREPHEMERALS"},
	{client.ErrNodeExists, "NODEEXISTS"},
	{client.ErrNotEmpty, "NOTEMPTY"},
	{zk.ErrSessionExpired, "SESSIONEXPIRED"},
	{client.Code(-113), "INVALIDCALLBACK"},
	{client.ErrInvalidACL, "INVALIDACL"},
	{client.ErrAuthFailed, "AUTHFAILED"},
	{zk.ErrSessionMoved, "SESSIONMOVED"},
	{client.Code(-119), "NOTREADONLY"},
	{client.Code(-120), "EPHEMERALONLOCALSESSION"},
	{client.Code(-121), "NOWATCHER"},
	{client.Code(-122), "REQUESTTIMEOUT"},
	{zk.ErrReconfigDisabled, "RECONFIGDISABLED"},
	{client.Code(-124), "SESSIONCLOSEDREQUIRESASLAUTH"},
	{client.ErrQuotaExceeded, "QUOTAEXCEEDED"},
	{client.ErrThrottled, "THROTTLEDOP"},
	{syscall.ECONNREFUSED, "connection_refused"},
	{context.DeadlineExceeded, "timeout"},
}

// ErrorType is the value of the label "error.type" for an error of an operation, of a
// heartbeat or of a dial. The value is one of some forty words, or "" for nil. The answer
// of a server has the name that ZooKeeper's KeeperException.Code gives it. Any other error
// is "_OTHER", as OpenTelemetry's conventions say.
func ErrorType(err error) string {
	if err == nil {
		return ""
	}
	for _, t := range errorTypes {
		if errors.Is(err, t.err) {
			return t.word
		}
	}
	var timed net.Error
	if errors.As(err, &timed) && timed.Timeout() {
		return "timeout"
	}
	return "_OTHER"
}
