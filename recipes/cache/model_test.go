package cache_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// modelNode is what the history says of a node.
type modelNode struct {
	czxid, mzxid int64
	version      int32
}

// model is the history of a server, and a check of snapshots against it.
type model struct {
	covers func(path string) bool

	mu      sync.Mutex
	commits []zktest.Commit
}

func (m *model) commit(c zktest.Commit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commits = append(m.commits, c)
}

// modelOf is what a node of a snapshot says of itself.
func modelOf(n cache.Node[string]) modelNode { return modelNode{n.Czxid, n.Mzxid, n.Version} }

// nodesOf are the nodes of a snapshot.
func nodesOf(s *cache.Snapshot[string]) map[string]modelNode {
	out := make(map[string]modelNode, s.Len())
	for path, n := range s.All() {
		out[path] = modelOf(n)
	}
	return out
}

// unread reports whether the client could not read a node of a snapshot.
func unread(n cache.Node[string]) bool {
	unreadable := (*cache.UnreadableError)(nil)
	return n.Err != nil && errors.As(n.Err, &unreadable)
}

// check replays the history and returns how snapshots, in the order in which they
// were seen, differ from it.
func (m *model) check(all []*cache.Snapshot[string]) (broken []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.SortStableFunc(m.commits, func(a, b zktest.Commit) int { return cmp.Compare(a.Zxid, b.Zxid) })
	now, next, last := map[string]modelNode{}, 0, int64(0)
	for _, s := range all {
		if s.Zxid() < last {
			broken = append(broken, fmt.Sprintf("snapshot %#x came after %#x", s.Zxid(), last))
			continue
		}
		last = s.Zxid()
		for ; next < len(m.commits) && m.commits[next].Zxid <= last; next++ {
			m.apply(now, m.commits[next])
		}
		if diff := differ(s, now, promised); diff != "" {
			broken = append(broken, fmt.Sprintf("snapshot %#x: %s", last, diff))
		}
	}
	return broken
}

func (m *model) apply(now map[string]modelNode, c zktest.Commit) {
	for _, path := range c.Deleted {
		delete(now, path)
	}
	for _, path := range c.Created {
		if m.covers(path) {
			now[path] = modelNode{c.Zxid, c.Zxid, 0}
		}
	}
	for _, path := range c.Changed {
		if n, ok := now[path]; ok {
			now[path] = modelNode{n.czxid, c.Zxid, n.version + 1}
		}
	}
}

// extent says which nodes of a snapshot are compared.
type extent bool

const (
	entire   extent = false
	promised extent = true // without nodes that the client may not read: servers do not tell of those
)

// differ returns how a snapshot differs from the nodes that are wanted.
func differ(s *cache.Snapshot[string], want map[string]modelNode, part extent) string {
	var all []string
	common := 0
	for path, n := range s.All() {
		w, ok := want[path]
		if ok {
			common++
		}
		switch {
		case part == promised && strings.HasSuffix(path, guarded) && unread(n):
		case !ok:
			all = append(all, fmt.Sprintf("%s is %#x, and is not there", path, modelOf(n)))
		case w != modelOf(n):
			all = append(all, fmt.Sprintf("%s is %#x, want %#x", path, modelOf(n), w))
		}
	}
	if common < len(want) {
		all = append(all, missing(s, want, part)...)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// missing names what a snapshot should have and does not.
func missing(s *cache.Snapshot[string], want map[string]modelNode, part extent) (all []string) {
	for path, w := range want {
		if _, there := s.Get(path); !there && (part == entire || !strings.HasSuffix(path, guarded)) {
			all = append(all, fmt.Sprintf("%s is missing, want %#x", path, w))
		}
	}
	return all
}
