package shared

import (
	"context"
	"testing"
)

// Two callers reserve at once, because the first waits for a lock. The block of the second
// is higher, and numbers of it are handed out first. The first has a number of its own
// block, whose rest is skipped.
func TestBlocksOutOfOrder(t *testing.T) {
	t.Parallel()
	waits, goesOn := make(chan struct{}), make(chan struct{})
	blocksOf := []int64{0, 10, 20}
	n := 0
	b, err := newBlocks(10, func(_ context.Context, size int64, aside func()) (AtomicValue[int64], error) {
		from := blocksOf[n]
		n++
		if from == 0 {
			aside()
			close(waits)
			<-goesOn
		}
		return AtomicValue[int64]{Succeeded: true, PreValue: from, PostValue: from + size}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	next := func(want int64) {
		t.Helper()
		if v, err := b.next(t.Context()); err != nil || v.PreValue != want-1 || v.PostValue != want {
			t.Errorf("%+v, %v, want %d", v, err, want)
		}
	}
	first := make(chan struct{})
	go func() {
		defer close(first)
		next(1)
	}()
	<-waits
	next(11)
	next(12)
	close(goesOn)
	<-first
	for want := int64(13); want <= 30; want++ {
		next(want)
	}
}
