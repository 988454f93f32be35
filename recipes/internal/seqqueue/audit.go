package seqqueue

import (
	"fmt"
	"slices"

	"github.com/docent-go/docent/client"
)

// Audit looks for what must not be in the chains of a client, at any moment: see the invariants
// of [chain]. It is for tests, which call it while others use the queues. A chain with many
// members takes long.
func Audit(c *client.Client) error {
	s := chainsOf(c)
	s.mu.Lock()
	all := make([]*chain, 0, len(s.all))
	for _, chain := range s.all {
		all = append(all, chain)
	}
	s.mu.Unlock()
	for _, chain := range all {
		if err := chain.audit(); err != nil {
			return fmt.Errorf("%s: %w", chain.key.dir, err)
		}
	}
	return nil
}

func (c *chain) audit() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if err := m.audit(); err != nil {
			return err
		}
	}
	return nil
}

// audit checks the invariants that concern m and its front. The caller holds the chain's mutex.
func (m *Member) audit() error {
	for i, f := range m.followers {
		if f.front != m || slices.Index(m.followers, f) != i {
			return fmt.Errorf("I4: %s is a follower of %s, and has another front or stands twice", f.Path, m.Path)
		}
	}
	front := m.front
	switch {
	case (m.state == linked) != (front != nil):
		return fmt.Errorf("I4: %s is in state %d, and has a front: %t", m.Path, m.state, front != nil)
	case front == nil:
	case front.shared:
		return fmt.Errorf("I2: %s waits behind %s, which shares", m.Path, front.Path)
	case front.state == over || front.state == left:
		return fmt.Errorf("I4: %s waits behind %s, whose end was told", m.Path, front.Path)
	case front.broken:
		return fmt.Errorf("I3: %s waits behind %s, which is broken", m.Path, front.Path)
	case !slices.Contains(front.followers, m):
		return fmt.Errorf("I4: %s does not know its follower %s", front.Path, m.Path)
	case front.Session.ID() != m.Session.ID():
		return fmt.Errorf("I5: %s waits behind %s of another session", m.Path, front.Path)
	}
	return nil
}
