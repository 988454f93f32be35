package shared

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/docent-go/docent/client"
)

// ErrSequenceReplaced is matched by the error of a [Sequence] whose node was deleted
// and made again. The numbers of the new node may have been handed out before. Set the
// node to a number above all ids handed out, and make a new Sequence.
var ErrSequenceReplaced = errors.New("the node of the sequence was deleted and made again: set it to a number above all ids handed out, and make a new Sequence")

// Sequence hands out ids: positive numbers that never come twice, in this process or
// another, whatever answers are lost and whichever processes crash. The ids that Next
// returns grow; ids of Reserve may come before smaller ids of Next. Its node is that of
// a [DistributedAtomicLong], and holds the highest id that any process has reserved.
// Processes with a CachedAtomicLong or an increment, of Curator's too, may share the
// node if they take PostValue.
//
// Ids are reserved in blocks, by one write each. Some are skipped and never come. These
// are the ids that a process has reserved and not handed out when it ends. So is a block
// whose write was sent and not answered. So ids have gaps, and ids of two processes do
// not tell which was handed out first. A block of 1 keeps gaps rare and costs a write for
// each id.
//
// Two things can bring an id twice: an operator that deletes the node or sets a lower
// number, and an ensemble that is restored from a backup. If the node is deleted, a
// Sequence finds that out when it reserves the next block. From then on it fails with
// [ErrSequenceReplaced]. A process that begins later cannot know.
//
// Of the options [WithWrapping] and [WithoutMark] change nothing.
//
// A Sequence has no mark below its node, and needs the rights to read and write it
// only. It is safe for concurrent use and needs no Close.
type Sequence struct {
	atom   *atom[int64]
	blocks blocks
	czxid  atomic.Int64 // of the node; 0 before the first block
}

// NewSequence returns the sequence at path, which reserves block ids at a time. It does
// no I/O. Use one Sequence for all goroutines of a process.
func NewSequence(c *client.Client, path string, block int, opts ...AtomicOption) (*Sequence, error) {
	a, err := newAtom(c, path, "Sequence", longKind(), opts)
	if err != nil {
		return nil, err
	}
	a.plain = true
	s := &Sequence{atom: a}
	s.blocks, err = newBlocks(block, s.reserve)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Path is the path of the node.
func (s *Sequence) Path() string { return s.atom.path }

// Next returns an id. It takes a request when a block is used up, once for all
// goroutines that wait. While that waits for a lock of PromotedToLock, the others reserve
// blocks of their own. After an error no id was handed out. The error matches
// [ErrOverflow] when there are no more ids, [ErrCountData] if the node holds something
// else, [ErrSequenceReplaced], or an error of package client.
func (s *Sequence) Next(ctx context.Context) (int64, error) {
	v, err := s.blocks.next(ctx)
	return v.PostValue, err
}

// Reserve returns n ids that follow each other, the first and the last. They do not
// come from the block of Next. Its errors are the same as Next's.
func (s *Sequence) Reserve(ctx context.Context, n int) (first, last int64, err error) {
	if n < 1 {
		return 0, 0, fmt.Errorf("shared: Reserve of %d ids; give 1 or more", n)
	}
	v, err := s.reserve(ctx, int64(n), nil)
	if err != nil {
		return 0, 0, err
	}
	return v.PreValue + 1, v.PostValue, nil
}

// reserve adds n to the number. If it is not known whether that was done, it does it
// again: what may have been reserved is skipped.
func (s *Sequence) reserve(ctx context.Context, n int64, aside func()) (AtomicValue[int64], error) {
	for {
		v, err := s.atom.doAside(ctx, "reserve", func(prev int64, _ bool) (int64, bool, error) {
			switch {
			case prev < 0:
				return 0, false, s.atom.failed("reserve", client.OutcomeNeverSent, fmt.Errorf("the number is negative: %d; ids are positive: set it to the highest id handed out, or give the ids a path of their own", prev))
			case prev > math.MaxInt64-n:
				return 0, false, s.atom.failed("reserve", client.OutcomeNeverSent, fmt.Errorf("%w: %d of %d ids are reserved, and there is no room for %d more", ErrOverflow, prev, int64(math.MaxInt64), n))
			}
			return prev + n, true, nil
		}, aside)
		switch {
		case err == nil && !s.same(v.czxid):
			return AtomicValue[int64]{}, s.atom.failed("reserve", client.OutcomeUnknown, ErrSequenceReplaced)
		case err == nil || !client.UnknownOutcome(err) || ctx.Err() != nil:
			return v, err
		}
	}
}

// same reports whether the node is the one that the first block came from.
func (s *Sequence) same(czxid int64) bool {
	return s.czxid.CompareAndSwap(0, czxid) || s.czxid.Load() == czxid
}
