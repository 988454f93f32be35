package shared

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/docent-go/docent/internal/ctxerr"
)

// blocks hands out numbers, one by one, of blocks that are reserved in one go.
type blocks struct {
	// reserve calls aside when it begins to wait for a lock: the caller behind may hold it.
	reserve func(ctx context.Context, n int64, aside func()) (AtomicValue[int64], error)
	size    int64
	turn    chan struct{} // of the caller that reserves, unless it waits for a lock

	mu   *sync.Mutex // guards what follows
	free []block     // in order
	top  int64       // the number that was handed out last
	out  int         // reservations under way
}

// block is the numbers after now, up to last.
type block struct{ now, last int64 }

func newBlocks(size int, reserve func(context.Context, int64, func()) (AtomicValue[int64], error)) (blocks, error) {
	if size < 1 {
		return blocks{}, fmt.Errorf("shared: a block of %d numbers; give 1 or more", size)
	}
	return blocks{reserve: reserve, size: int64(size), turn: make(chan struct{}, 1), mu: new(sync.Mutex)}, nil
}

// next returns one number, as an increment would.
func (b *blocks) next(ctx context.Context) (AtomicValue[int64], error) {
	if v, ok := b.pop(); ok {
		return v, nil
	}
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return AtomicValue[int64]{}, ctxerr.Ended(ctx)
	}
	pass := sync.OnceFunc(func() { <-b.turn })
	defer pass()
	if v, ok := b.pop(); ok { // of a block that another caller has reserved
		return v, nil
	}
	alone := b.begin()
	v, err := b.reserve(ctx, b.size, func() { alone = false; pass() })
	return b.end(v, err, alone)
}

// begin reports whether no other reservation is under way.
func (b *blocks) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out++
	return b.out == 1
}

// end takes a number after a reservation. Unless that was alone, higher numbers may have
// been handed out. Then the rest of the block is skipped, because numbers grow.
func (b *blocks) end(v AtomicValue[int64], err error, alone bool) (AtomicValue[int64], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out--
	if err != nil {
		return AtomicValue[int64]{Stats: v.Stats}, err
	}
	if !alone && v.PreValue < b.top {
		v.PostValue = v.PreValue + 1
		return v, nil
	}
	b.free = append(b.free, block{v.PreValue, v.PostValue})
	slices.SortFunc(b.free, func(x, y block) int { return cmp.Compare(x.now, y.now) })
	lowest, _ := b.popLocked()
	lowest.Stats = v.Stats
	return lowest, nil
}

// pop takes the lowest number.
func (b *blocks) pop() (AtomicValue[int64], bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.popLocked()
}

func (b *blocks) popLocked() (AtomicValue[int64], bool) {
	if len(b.free) == 0 {
		return AtomicValue[int64]{}, false
	}
	first := &b.free[0]
	first.now++
	b.top = first.now
	if first.now == first.last {
		b.free = slices.Delete(b.free, 0, 1)
	}
	return AtomicValue[int64]{Succeeded: true, PreValue: b.top - 1, PostValue: b.top}, true
}
