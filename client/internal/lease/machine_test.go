package lease_test

import (
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client/internal/lease"
	"github.com/docent-go/docent/internal/clock"
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
	if s := m.Look(at(4, 5, 10)); len(s.Remove) != 0 || s.End || s.Beat != nil {
		t.Errorf("when the first promise has passed: %+v", s)
	}
	if s := m.Look(at(5, 5, 11)); !slices.Equal(s.Remove, []string{"/n"}) || !m.Idle() {
		t.Errorf("when both have passed: %+v", s)
	}
}

// Where any answer is proof, there are no heartbeats.
func TestNoHeartbeats(t *testing.T) {
	t.Parallel()
	for pings, want := range map[bool]bool{false: true, true: false} {
		m := lease.New(lease.Policy{Pings: pings}, func(full []string) int { return len(full) })
		now := time.Unix(1000, 0)
		state := lease.State{Proof: wire.Proof{Kind: wire.Answer}, Now: now, Left: time.Second, Promised: now.Add(2 * time.Second)}
		m.Add(&lease.Holding{Full: []string{"/n"}}, state)
		if b := m.Look(state).Beat; (b != nil) != want {
			t.Errorf("pings %v: a heartbeat %+v", pings, b)
		}
	}
}

// Heartbeats check the nodes in turns, as many as fit. Of nodes that may not be read a heartbeat checks
// one, behind the others.
func TestHeartbeatsTakeTurns(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	m := lease.New(lease.Policy{}, func(full []string) int { return min(len(full), 3) })
	state := func() lease.State {
		return lease.State{
			Terms: lease.Policy{}.Terms(6 * time.Second), Proof: wire.Proof{Kind: wire.QuorumWrite, Sent: clock.Stamp{At: now.Add(-time.Second)}},
			Now: now, Left: time.Second, Promised: now.Add(2 * time.Second),
		}
	}
	all := []*lease.Holding{{Full: []string{"/a", "/b"}}, {Full: []string{"/c", "/d"}}}
	for _, h := range all {
		m.Add(h, state())
	}
	beat := func(want ...string) {
		t.Helper()
		now = now.Add(time.Second)
		b := m.Look(state()).Beat
		if b == nil || !slices.Equal(b.Nodes, want) {
			t.Errorf("a heartbeat %+v, want the nodes %v", b, want)
			return
		}
		m.Heard(b.Number)
	}
	beat("/a", "/b", "/c")
	beat("/d", "/a", "/b")
	if m.Unreadable("/c") || m.Unreadable("/d") || !m.Unreadable("/d") {
		t.Error("a node counts as unreadable before, or not behind, an answer that says so")
	}
	beat("/a", "/c")
	beat("/b", "/c") // and /d, of which one is enough
	m.Readable([]string{"/c"})
	beat("/a", "/b", "/c")
	m.Unreadable("/a")
	beat("/b", "/d") // and /a
	m.Readable([]string{"/a"})
	beat("/c", "/a", "/d")
	m.Remove(all[1])
	m.Add(all[1], state())
	beat("/b", "/c", "/d")
	beat("/a", "/b", "/c")
	beat("/d", "/a", "/b")
}
