package shared

import (
	"errors"
	"fmt"

	"github.com/docent-go/docent/client"
)

// ErrCountData is matched by the [*CountDataError] of a number whose node does not
// hold the bytes of one.
var ErrCountData = errors.New("not the bytes of a count")

// CountDataError says that the node at the path of a number holds something else.
// A [SharedCount] and a [DistributedAtomicInteger] have 4 bytes, a
// [DistributedAtomicLong] has 8. It matches [ErrCountData]. Nothing was written:
// the bytes may be another recipe's value. If no recipe needs the bytes, delete
// the node: the next write makes it again, and so does Get of a SharedCount.
type CountDataError struct {
	Path   string // of the node
	Length int    // of its data, in bytes
	Want   int    // the length of the data that was expected, in bytes
}

// Error names the node, its length, and the recipe that writes such a node.
func (e *CountDataError) Error() string {
	whose := "; if it holds nothing of use, delete it"
	switch e.Length {
	case lengthOfLong:
		whose = ", as many as the data of a DistributedAtomicLong; give each number a path of its own"
	case lengthOfCount:
		whose = ", as many as the data of a SharedCount or a DistributedAtomicInteger; give each number a path of its own"
	}
	return fmt.Sprintf("the node %s holds %d bytes, not the %d bytes of this number%s", e.Path, e.Length, e.Want, whose)
}

// Is reports whether target is [ErrCountData].
func (e *CountDataError) Is(target error) bool { return target == ErrCountData }

// ErrContended is matched by the error of an operation on an atomic value whose tries
// were used up. Other clients wrote in between at each try. Nothing was applied. Give
// it more tries with [WithTries], or a lock with [PromotedToLock].
var ErrContended = errors.New("other clients wrote in between at every try")

// ErrOverflow is matched by the error of an addition whose sum does not fit into the
// number. Nothing was added. [WithWrapping] lets the sum wrap, as in Curator.
var ErrOverflow = errors.New("the sum does not fit into the number")

// refused reports whether a server answered the operation that failed with err,
// and changed nothing.
func refused(err error) bool {
	var op *client.OpError
	return errors.As(err, &op) && op.Outcome == client.OutcomeRefused
}
