package simulation_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// mirror follows a watch.
type mirror struct {
	w    *watchWorld
	in   *client.Changes
	deep bool
	path string

	mu    sync.Mutex
	nodes map[string]int64 // the newest write of each
	known map[string]int64 // the newest transaction that is known of each node
}

func (m *mirror) follow() {
	for change, err := range m.in.All() {
		switch {
		case err != nil:
			m.w.fail("the watch ended: %v", err)
			return
		case change.Kind == client.ChangeMissed:
			m.w.count(func(s *watchTotals) {
				s.missed++
				if errors.Is(change.Err, client.ErrOverflow) {
					s.overflowed++
				}
			})
			m.mu.Lock()
			clear(m.nodes)
			m.mu.Unlock()
			m.read(m.path, true)
		default:
			m.w.count(func(s *watchTotals) { s.changes++ })
			m.check(change)
			m.read(change.Path, change.Kind == client.ChangeChildren)
		}
	}
}

// check compares a change with what came before it on the same node: that is
// known, or it was skipped without a sign.
func (m *mirror) check(change client.Change) {
	if !m.w.named || change.Kind != client.ChangeCreated && change.Kind != client.ChangeDeleted {
		return
	}
	m.w.mu.Lock()
	var before commit
	for _, c := range m.w.log[change.Path] {
		if c.zxid < change.Zxid {
			before = c
		}
	}
	m.w.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.known[change.Path]; before.zxid > known {
		m.w.fail("%s %x of %s came after %x was skipped; known until %x", change.Kind, change.Zxid, change.Path, before.zxid, known)
	}
	m.known[change.Path] = max(m.known[change.Path], change.Zxid)
}

// below are the names that a node may have below it.
func below(path string) []string {
	switch strings.Count(path, "/") {
	case 1:
		return []string{"n0", "n1", "n2", "n3"}
	case 2:
		return []string{"k0", "k1"}
	default:
		return nil
	}
}

// read reads a node, and all below it if the mirror has that and is to read it
// again.
func (m *mirror) read(path string, anew bool) {
	_, stat, err := m.w.c.Get(m.w.ctx, path)
	m.note(path, stat, err)
	switch {
	case m.deep && anew:
		for _, name := range below(path) { // also nodes that are gone
			m.read(path+"/"+name, true)
		}
	case !m.deep && anew && err == nil:
		names, _, err := m.w.c.Children(m.w.ctx, path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) { // then an event follows
			m.w.fail("children of %s: %v", path, err)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, name := range below(path) {
			delete(m.nodes, path+"/"+name)
		}
		for _, name := range names {
			m.nodes[path+"/"+name] = 1 // that it is there
		}
	}
}

// note takes in what was read of a node.
func (m *mirror) note(path string, stat *zk.Stat, err error) {
	m.w.mu.Lock()
	var gone int64
	for _, c := range m.w.log[path] {
		if !c.made {
			gone = c.zxid
		}
	}
	m.w.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.nodes[path] = stat.Mzxid
		m.known[path] = max(m.known[path], stat.Czxid)
	case errors.Is(err, zk.ErrNoNode):
		for p := range m.nodes {
			if p == path || strings.HasPrefix(p, path+"/") {
				delete(m.nodes, p)
			}
		}
		m.known[path] = max(m.known[path], gone)
	default:
		m.w.fail("read %s: %v", path, err)
	}
}

// differs says how the mirror differs from the tree.
func (m *mirror) differs(s *zktest.Member) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	there := map[string]int64{}
	for _, n := range s.Tree() {
		switch {
		case n.Path == m.path || m.deep && strings.HasPrefix(n.Path, m.path+"/"):
			there[n.Path] = n.Stat.Mzxid
		case strings.HasPrefix(n.Path, m.path+"/"):
			there[n.Path] = 1
		}
	}
	for p, zxid := range there {
		if m.nodes[p] != zxid {
			return fmt.Sprintf("%s is of %x there, %x here", p, zxid, m.nodes[p])
		}
	}
	for p := range m.nodes {
		if there[p] == 0 {
			return p + " is not there"
		}
	}
	return ""
}
