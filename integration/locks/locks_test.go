// Package locks_test runs the suite of all kinds of locks on a real ensemble,
// each client behind a proxy of its own.
package locks_test

import (
	"context"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/recipes/locktest"
)

func TestLocks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	servers := harness.StartEnsemble(ctx, t, 3, harness.WithTickTime(tick))
	_, err := servers.AwaitServing(ctx)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := harness.Dial(ctx, t, 20*time.Second, servers.Addrs()...)
	// Not by t.Parallel, of which there are no more at once than processors: most
	// of what the kinds do is to wait.
	var kinds sync.WaitGroup
	for _, kind := range locktest.Kinds() {
		kinds.Go(func() {
			t.Run(kind.Name, func(t *testing.T) {
				for _, test := range locktest.Tests() {
					t.Run(test.Name, func(t *testing.T) {
						test.Run(t, newWorld(t, servers, raw), kind)
					})
				}
			})
		})
	}
	kinds.Wait()
	if left := busy(); len(left) > 0 {
		t.Errorf("%d goroutines are left, one of them:\n%s", len(left), left[0])
	}
}

var ourFrames = regexp.MustCompile(`docent/(recipes|recipes/internal/seqqueue|client)\.`)

// busy returns the stacks of goroutines in the library.
func busy() (stacks []string) {
	buf := make([]byte, 16<<20)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if ourFrames.MatchString(stack) {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}
