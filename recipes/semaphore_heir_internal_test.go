package recipes

import (
	"testing"

	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// An heir may look at the leases while a release hands its permits over. What it sees then
// are leases of its own, and no change of them is to come. So it must not wait.
func TestHeirThatLookedWhileServed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refused bool
		ended   bool // the wait
	}{
		"served":  {false, true},
		"refused": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := permits{InterProcessSemaphoreV2: &InterProcessSemaphoreV2{}, n: 1}
			h := &heir{p: p, m: &seqqueue.Member{}, l: &line{}, done: make(chan struct{})}
			h.offer([]lease{{name: "lease-0000000009"}})
			h.promised, h.refused = true, c.refused
			close(h.done)
			select {
			case <-h.offer([]lease{{name: "lease-0000000010"}}):
				if !c.ended {
					t.Error("the heir does not wait, though it was handed nothing")
				}
			default:
				if c.ended {
					t.Error("the heir waits for the lease that it was handed")
				}
			}
		})
	}
}
