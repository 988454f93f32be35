package fence

import (
	"errors"
	"fmt"
)

var (
	// ErrStale is matched by the [*StaleError] of a write whose hold is over
	// and followed by a newer one.
	ErrStale = errors.New("stale fencing token")

	// ErrNoToken says that a write came without a fencing token, or with one
	// that no lock gives: tokens are positive.
	ErrNoToken = errors.New("no fencing token")

	// ErrCommit says that the commit of a transaction returned an error. A
	// database that refused it has written nothing; if the connection broke,
	// only the database knows. Whoever repeats the work must be able to see
	// whether it was done.
	ErrCommit = errors.New("commit failed")
)

// StaleError says which write was refused. It matches [ErrStale].
type StaleError struct {
	Resource string
	Token    int64 // that came with the write
	Newest   int64 // that the resource had seen
}

// Error names the resource and both tokens.
func (e *StaleError) Error() string {
	return fmt.Sprintf("fence: %v %d for %q, which has seen %d", ErrStale, e.Token, e.Resource, e.Newest)
}

// Is reports whether target is [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// maxResource is the longest name of a resource in bytes: what the shortest
// column of the dialects holds. MySQL without strict mode would cut a longer
// one, and two resources would become one.
const maxResource = 255

// valid refuses what no dialect could tell apart and what is no token.
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
