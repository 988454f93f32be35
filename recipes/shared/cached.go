package shared

import (
	"context"
	"errors"
)

// CachedAtomicLong hands out the numbers of a [DistributedAtomicLong] in blocks. One
// addition reserves a block. [CachedAtomicLong.Next] then takes no request until the
// block is used up. It is Curator's CachedAtomicLong, and may share the path with
// Java processes. What a process has reserved and not handed out is lost with it.
//
// It is safe for concurrent use, where Curator's is not. For ids that must never come
// twice see [Sequence], which has the same numbers.
type CachedAtomicLong struct{ blocks blocks }

// NewCachedAtomicLong returns a cache of number that reserves cacheFactor numbers at a
// time.
func NewCachedAtomicLong(number *DistributedAtomicLong, cacheFactor int) (*CachedAtomicLong, error) {
	if number == nil {
		return nil, errors.New("shared: the number of a CachedAtomicLong is nil; make one with NewDistributedAtomicLong")
	}
	b, err := newBlocks(cacheFactor, func(ctx context.Context, n int64, aside func()) (AtomicValue[int64], error) {
		return add(ctx, number.atom, n, aside)
	})
	if err != nil {
		return nil, err
	}
	return &CachedAtomicLong{b}, nil
}

// Next returns the next number of this process, as an increment would: PostValue is
// one more than PreValue. Numbers of all processes differ, as long as all use either
// PreValue or PostValue. The Stats describe the addition, if Next made one.
//
// An error comes from the addition. After one that matches client.UnknownOutcome a
// block may have been skipped.
func (n *CachedAtomicLong) Next(ctx context.Context) (AtomicValue[int64], error) {
	return n.blocks.next(ctx)
}
