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
			h := &heir{p: p, m: &seqqueue.Member{}, w: &waiters{}, done: make(chan struct{})}
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

// An heir that one transaction serves already is of no other group, and is not told that it
// is the first.
func TestPromisedHeirIsServedOnce(t *testing.T) {
	t.Parallel()
	w := &waiters{}
	p := permits{InterProcessSemaphoreV2: &InterProcessSemaphoreV2{max: 2}, n: 1}
	first := &heir{p: p, w: w, m: &seqqueue.Member{Node: seqqueue.Node{Name: "first"}}}
	next := &heir{p: p, w: w, m: &seqqueue.Member{}, promised: true, call: func(error) { t.Error("told that it is the first") }}
	w.behind = map[string]*heir{"first": next}
	g := w.gather(first, nil, seqqueue.Own{})
	if len(g.heirs) != 1 {
		t.Errorf("a group of %d", len(g.heirs))
	}
	g.callNext(nil)
	if w.first != nil {
		t.Error("a release may hand over to an heir that is served")
	}
}
