package seqqueue_test

import (
	"fmt"
	"testing"

	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// BenchmarkJudge is the order rule: what one contender makes of a list of so many
// children with Curator's names.
func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{1, 64, 4096} {
		children := contenders(n)
		own, _, ok := seqqueue.Parse("lock-", children[n/2])
		if !ok {
			b.Fatal(children[n/2])
		}
		b.Run(fmt.Sprintf("children=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v := seqqueue.Judge(tags, own, children, seqqueue.AllBlock); !v.Listed {
					b.Fatal("not listed")
				}
			}
		})
	}
}

// BenchmarkLine orders a whole line, as a look at a queue does.
func BenchmarkLine(b *testing.B) {
	for _, n := range []int{64, 4096} {
		children := contenders(n)
		b.Run(fmt.Sprintf("children=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := seqqueue.LineOf(tags, children); len(got) != n {
					b.Fatal(len(got))
				}
			}
		})
	}
}

// contenders are children in no order, as servers list them.
func contenders(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("_c_%08x-4d4b-43c1-8f0a-%012x-lock-%010d", int64(i)*2654435761, i, (i*1237)%4096)
	}
	return all
}
