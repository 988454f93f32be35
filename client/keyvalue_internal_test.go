package client

import "testing"

// Whatever sizes the nodes have, batches make progress, have no more nodes than they may, and
// are as large as the newest answer allows.
func TestBatchSizes(t *testing.T) {
	t.Parallel()
	sizes := []int{0, statBytes, 1 << 10, 100 << 10, 1 << 20, 3 << 20, -1} // of a node; -1: the answer is too large
	var walk func(b batchSize, depth int)
	walk = func(b batchSize, depth int) {
		if b.n < 1 || b.n > mostBatch {
			t.Fatalf("a batch of %d nodes", b.n)
		}
		if depth == 0 {
			return
		}
		for _, size := range sizes {
			for _, n := range []int{1, (b.n + 1) / 2, b.n} { // the request may have room for fewer
				next := b
				if size < 0 {
					if next.tooLarge(n); n > 1 && next.n >= n {
						t.Fatalf("after an answer that is too large for %d nodes: %d", n, next.n)
					}
				} else {
					next.answered(n, n*size)
					if next.n > 1 && next.n*size > next.target {
						t.Fatalf("%d nodes of %d bytes exceed %d", next.n, size, next.target)
					}
					if next.n < min(2*n, mostBatch) && size == 0 {
						t.Fatalf("%d empty nodes were no reason for more than %d", n, next.n)
					}
				}
				walk(next, depth-1)
			}
		}
	}
	walk(batchSize{n: firstBatch, target: mostAnswer}, 5)
	walk(batchSize{n: firstBatch, target: 512}, 4) // by a small WithMaxReply
}
