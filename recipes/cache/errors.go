package cache

import (
	"errors"
	"fmt"

	"github.com/docent-go/docent/client"
)

// ErrClosed says that the cache has ended: by Close, or with its client. It matches
// [client.ErrClosed].
var ErrClosed error = closedError{}

type closedError struct{}

func (closedError) Error() string {
	return "cache: it has ended: by Close, or with its client"
}

func (closedError) Is(target error) bool { return target == client.ErrClosed }

// ErrLimit is matched by every [*LimitError].
var ErrLimit = errors.New("cache: the tree exceeds a limit of the cache")

// LimitError says that the tree is larger than [WithLimits] allows. The cache keeps its
// last snapshot, which is stale, and looks again after ten seconds, then after pauses that
// double, up to ten minutes.
type LimitError struct {
	What  string // "nodes", "bytes" or "depth"
	Limit int64
	Path  string // the node that was one too many
}

// Error names the limit and the node.
func (e *LimitError) Error() string {
	what := e.What
	if what == "depth" {
		what = "levels"
	}
	return fmt.Sprintf("%v: more than %d %s, at %s; raise it by WithLimits, or leave nodes out by WithDepth or WithFilter", ErrLimit, e.Limit, what, e.Path)
}

// Is reports whether target is ErrLimit.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// UndecodableError says that the codec has refused the data of a node.
type UndecodableError struct {
	Path  string
	Mzxid int64 // of the data
	Err   error // of the codec
}

// Error names the node.
func (e *UndecodableError) Error() string {
	return fmt.Sprintf("cache: the data of %s (mzxid %#x) cannot be decoded: %v", e.Path, e.Mzxid, e.Err)
}

// Unwrap returns the error of the codec.
func (e *UndecodableError) Unwrap() error { return e.Err }

// UnreadableError says that the client may not read a node, or that its data is larger
// than [client.WithMaxReply] allows. The cache tries again every half minute, and after
// each reconnection. Until then the node may be another one, or gone.
type UnreadableError struct {
	Path string
	Err  error // matches zk.ErrNoAuth or client.ErrReplyTooLarge
}

// Error names the node.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("cache: the client cannot read %s: %v", e.Path, e.Err)
}

// Unwrap returns the answer of the server.
func (e *UnreadableError) Unwrap() error { return e.Err }

// errLongList says that a list is larger than the client takes.
var errLongList = errors.New("the list of its children is larger than client.WithMaxReply allows; raise that, or follow less")

// limited reports whether the nodes exceed a limit.
func limited(err error) bool { return errors.Is(err, ErrLimit) || errors.Is(err, errLongList) }
