package seqqueue

import (
	"strings"
	"testing"
)

// Each invariant, broken by hand, is noticed and named. The chain stands as it should before.
func TestAudit(t *testing.T) {
	t.Parallel()
	other := newTape(t).session
	plants := []struct {
		invariant, what string
		plant           func(front, m *Member)
	}{
		{"I2", "the front shares", func(front, _ *Member) { front.shared = true }},
		{"I3", "the front is broken", func(front, _ *Member) { front.broken = true }},
		{"I4", "the front is over", func(front, _ *Member) { front.state = over }},
		{"I4", "the front has left", func(front, _ *Member) { front.state = left }},
		{"I4", "the front does not know", func(front, _ *Member) { front.followers = nil }},
		{"I4", "the front knows it twice", func(front, m *Member) { front.followers = append(front.followers, m) }},
		{"I4", "no front", func(_, m *Member) { m.front = nil }},
		{"I4", "a front of one that is first", func(_, m *Member) { m.state = first }},
		{"I5", "another session", func(front, _ *Member) { front.Session = other }},
	}
	for _, p := range plants {
		tape := newTape(t)
		front := tape.make(1, mutexTag)
		m := tape.make(2, mutexTag)
		tape.listed(front)
		tape.want("behind", m, linked, front)
		if err := tape.audit(); err != nil {
			t.Fatalf("before: %v", err)
		}
		p.plant(front, m)
		if err := tape.audit(); err == nil || !strings.HasPrefix(err.Error(), p.invariant) {
			t.Errorf("%s: %v, want %s", p.what, err, p.invariant)
		}
	}
}
