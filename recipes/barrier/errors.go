package barrier

import (
	"errors"
	"fmt"
)

var (
	// ErrNodeDeleted says that another client has deleted the node of a member, such
	// as an operator. The other members do not count that member any more.
	ErrNodeDeleted = errors.New("the member's node was deleted by another client")

	// ErrLeft is the cause of a member's context after Leave or Close, and the error of
	// a second Leave.
	ErrLeft = errors.New("the member has left the barrier")

	// ErrMemberCount is matched by a [*MemberCountError].
	ErrMemberCount = errors.New("members of one barrier wait for different numbers of members")
)

// MemberCountError says that another member of the same double barrier was made for
// another number of members. It matches [ErrMemberCount]. The member that found out
// has not entered, and its node is removed. Give all members the same number.
//
// A member compares its number with that of one other, and with that of the ready node.
// Curator's members do not write their number, so only members of this library are
// compared.
type MemberCountError struct {
	Path   string // of the barrier
	Node   string // of the other member, or "ready"
	Member string // what the other member wrote into its node
	Theirs int
	Ours   int
}

// Error names the other member and both numbers.
func (e *MemberCountError) Error() string {
	where := e.Node
	if e.Member != "" {
		where += " (" + e.Member + ")"
	}
	members := "members"
	if e.Ours == 1 {
		members = "member"
	}
	return fmt.Sprintf("barrier: %s is for %d %s here and for %d in %s; give all members the same number",
		e.Path, e.Ours, members, e.Theirs, where)
}

// Is reports whether target is [ErrMemberCount].
func (e *MemberCountError) Is(target error) bool { return target == ErrMemberCount }

// WaitError says how many members stood at the last look of an Enter or a Leave that gave
// up. It matches what ended the wait.
//
// An Enter looks when its own node is made, and is not woken by members that come
// later. So of members that wait together the last one has the right number, and
// the first may have 1. [DistributedDoubleBarrier.View] tells which members stand
// now. Members with one deadline leave together: call View a little before it.
type WaitError struct {
	Path    string // of the barrier
	Leaving bool   // whether it was a Leave
	Stood   int    // members at the last look, with the one that waited if its node stood; -1 before the first look
	Members int    // that an Enter waits for
	Err     error  // why the wait has ended
}

// Error says how many members the wait was for.
func (e *WaitError) Error() string {
	if e.Stood < 0 {
		return fmt.Sprintf("barrier: the wait at %s ended before the members were listed; View names them: %v", e.Path, e.Err)
	}
	if e.Leaving {
		return fmt.Sprintf("barrier: waiting for others to leave %s, %d at the last look; View names them: %v", e.Path, e.Stood, e.Err)
	}
	return fmt.Sprintf("barrier: %d of %d members stood at %s when this one came; View names the members that stand now: %v",
		e.Stood, e.Members, e.Path, e.Err)
}

// Unwrap returns why the wait has ended.
func (e *WaitError) Unwrap() error { return e.Err }
