package zkconn

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// answers are what servers say, and go-zookeeper about arguments.
var answers = []error{ //nolint:gochecknoglobals // a constant table
	zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty, zk.ErrNoAuth, zk.ErrInvalidACL,
	zk.ErrNoChildrenForEphemerals, zk.ErrInvalidPath, zk.ErrInvalidFlags, zk.ErrSessionMoved,
	zk.ErrReconfigDisabled, zk.ErrBadArguments, zk.ErrAPIError, zk.ErrNothing,
}

// native is the value of go-zookeeper for err, or err if it has none:
//
//	client or Conn closed        | zk.ErrConnectionClosed, as after Close
//	session over                 | zk.ErrSessionExpired
//	outcome unknown              | zk.ErrConnectionClosed, as without an answer
//	a server's answer            | its value
//	credentials refused          | zk.ErrAuthFailed
//	no server within the policy  | zk.ErrNoServer
func native(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, client.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return zk.ErrConnectionClosed
	case errors.Is(err, client.ErrSessionLost):
		return zk.ErrSessionExpired
	case client.UnknownOutcome(err):
		return zk.ErrConnectionClosed
	}
	for _, known := range answers {
		if errors.Is(err, known) {
			return known
		}
	}
	switch {
	case errors.Is(err, client.ErrAuthFailed):
		return zk.ErrAuthFailed
	case errors.Is(err, client.ErrNotConnected):
		return zk.ErrNoServer
	default:
		return err
	}
}

// answered is native with the stat that go-zookeeper returns beside it: none if no answer came,
// and never nil beside one.
func answered(stat *zk.Stat, err error) (*zk.Stat, error) {
	err = native(err)
	switch {
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, zk.ErrInvalidPath):
		return nil, err
	case stat == nil:
		return new(zk.Stat), err
	default:
		return stat, err
	}
}
