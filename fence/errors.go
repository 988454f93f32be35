package fence

import (
	"errors"
	"fmt"
)

var (
	// ErrStale is matched by the [*StaleError] of a write whose hold is over,
	// because a newer hold has followed.
	ErrStale = errors.New("stale fencing token")

	// ErrNoToken says that a write came without a fencing token for its
	// resource, or with a token that was not raised there. It also refuses a
	// number that no lock gives: tokens are positive.
	ErrNoToken = errors.New("no fencing token")

	// ErrOtherResource says that a request came with the token for another
	// resource than the one it would write.
	ErrOtherResource = errors.New("fencing token for another resource")

	// ErrShared says that a hold is not exclusive. The tokens of readers and of
	// a semaphore's permits fence nothing.
	ErrShared = errors.New("shared hold")

	// ErrTxOpen refuses a transaction inside another one that keeps the row, or with
	// SQLite the file, which the inner one would wait for. Nothing ran. Use the
	// *sql.Tx of the outer one.
	ErrTxOpen = errors.New("a transaction is open in this context")

	// ErrCommit says that the commit of a transaction returned an error. If the
	// database refused the commit, nothing was written. If the connection broke,
	// only the database knows. A caller that repeats the work must be able to
	// see whether it was done.
	ErrCommit = errors.New("commit failed")
)

// StaleError says which write was refused. It matches [ErrStale].
type StaleError struct {
	Resource string
	Token    int64 // the token of the write
	Newest   int64 // the newest token that the resource had seen
}

// Error names the resource and both tokens.
func (e *StaleError) Error() string {
	return fmt.Sprintf("fence: %v %d for %q, which has seen %d", ErrStale, e.Token, e.Resource, e.Newest)
}

// Is reports whether target is [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// maxResource is the longest name of a resource in bytes, which is the length
// of the shortest column of the dialects. MySQL without strict mode would cut a
// longer name, and two resources would become one.
const maxResource = 255

// valid refuses names that a dialect could take for one another, and numbers
// that are no token.
func valid(resource string, token int64) error {
	switch {
	case resource == "":
		return errors.New("fence: the resource has no name")
	case len(resource) > maxResource:
		return fmt.Errorf("fence: the resource's name has %d bytes, %d are allowed; it begins with %.40q", len(resource), maxResource, resource)
	case token <= 0:
		return fmt.Errorf("fence: %w: %d for %q", ErrNoToken, token, resource)
	}
	return nil
}
