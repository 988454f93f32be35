package shared

import (
	"context"
	"fmt"
	"sync"

	"github.com/docent-go/docent/internal/ctxerr"
)

// blocks hands out numbers, one by one, of blocks that are reserved in one go.
type blocks struct {
	reserve func(ctx context.Context, n int64) (AtomicValue[int64], error)
	size    int64
	turn    chan struct{} // of the caller that reserves

	mu        *sync.Mutex // guards what follows
	now, last int64       // the numbers after now, up to last, are free
}

func newBlocks(size int, reserve func(context.Context, int64) (AtomicValue[int64], error)) (blocks, error) {
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
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return AtomicValue[int64]{}, ctxerr.Ended(ctx)
	}
	if v, ok := b.pop(); ok { // of a block that another caller has reserved
		return v, nil
	}
	block, err := b.reserve(ctx, b.size)
	if err != nil {
		return AtomicValue[int64]{Stats: block.Stats}, err
	}
	b.mu.Lock()
	b.now, b.last = block.PreValue+1, block.PostValue
	b.mu.Unlock()
	return AtomicValue[int64]{Succeeded: true, PreValue: block.PreValue, PostValue: block.PreValue + 1, Stats: block.Stats}, nil
}

// pop takes a number of the block.
func (b *blocks) pop() (AtomicValue[int64], bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == b.last {
		return AtomicValue[int64]{}, false
	}
	b.now++
	return AtomicValue[int64]{Succeeded: true, PreValue: b.now - 1, PostValue: b.now}, true
}
