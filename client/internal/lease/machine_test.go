package lease_test

import (
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client/internal/lease"
	"github.com/docent-go/docent/internal/wire"
)

// Two holds have one node. The first is lost, and then the second, which was promised more. The node
// stays until the later promise has passed.
func TestNodeStaysForTheLaterPromise(t *testing.T) {
	t.Parallel()
	begun := time.Unix(1000, 0)
	at := func(now, left, promised int) lease.State {
		return lease.State{
			Proof: wire.Proof{Kind: wire.QuorumWrite}, Now: begun.Add(time.Duration(now) * time.Second),
			Left: time.Duration(left) * time.Second, Promised: begun.Add(time.Duration(promised) * time.Second),
		}
	}
	m := lease.New(lease.Policy{Pings: true}, func(full []string) int { return len(full) })
	for _, now := range []int{0, 3} {
		m.Add(&lease.Holding{Full: []string{"/n"}}, at(now, 1, now+2))
		if ended := m.Expire(at(now+1, 0, now+2)); len(ended) != 1 {
			t.Fatalf("%d holds have ended", len(ended))
		}
	}
	if s := m.Look(at(4, 5, 10)); len(s.Remove) != 0 || s.End {
		t.Errorf("when the first promise has passed: %+v", s)
	}
	if s := m.Look(at(5, 5, 11)); !slices.Equal(s.Remove, []string{"/n"}) || !m.Idle() {
		t.Errorf("when both have passed: %+v", s)
	}
}
