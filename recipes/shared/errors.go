package shared

import (
	"errors"
	"fmt"

	"github.com/docent-go/docent/client"
)

// ErrCountData is matched by the [*CountDataError] of a [SharedCount] whose
// node does not hold the four bytes of a count.
var ErrCountData = errors.New("not the 4 bytes of a count")

// CountDataError says that the node at the path of a [SharedCount] holds
// something else than a count. It matches [ErrCountData]. Nothing was written:
// the bytes may be another recipe's value. A node of 8 bytes is a
// DistributedAtomicLong of Curator's. If the bytes are nobody's, delete the
// node: Get then makes it again, with the seed.
type CountDataError struct {
	Path   string // of the node
	Length int    // of its data, in bytes
}

// Error names the node, its length, and the recipe that writes such a node.
func (e *CountDataError) Error() string {
	whose := ""
	if e.Length == lengthOfLong {
		whose = ", as those of a DistributedAtomicLong; give the count a path of its own"
	}
	return fmt.Sprintf("the node %s holds %d bytes, %v%s", e.Path, e.Length, ErrCountData, whose)
}

// Is reports whether target is [ErrCountData].
func (e *CountDataError) Is(target error) bool { return target == ErrCountData }

// The lengths of the data, in bytes.
const (
	lengthOfCount = 4
	lengthOfLong  = 8 // DistributedAtomicLong.valueToBytes
)

// wanted returns a CountDataError unless length is that of a count.
func (s *SharedCount) wanted(length int) error {
	if length == lengthOfCount {
		return nil
	}
	return fmt.Errorf("shared: count: %w", &CountDataError{Path: s.path, Length: length})
}

// refused reports whether a server answered the operation that failed with err,
// and changed nothing.
func refused(err error) bool {
	var op *client.OpError
	return errors.As(err, &op) && op.Outcome == client.OutcomeRefused
}
