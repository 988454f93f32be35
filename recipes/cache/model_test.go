package cache_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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

// seen is a snapshot that a reader has seen.
type seen struct {
	zxid   int64
	nodes  map[string]modelNode
	unread map[string]bool // paths of nodes that the client may not read
}

func seenOf[V any](s *cache.Snapshot[V]) seen {
	out := seen{zxid: s.Zxid(), nodes: map[string]modelNode{}, unread: map[string]bool{}}
	for path, n := range s.All() {
		out.nodes[path] = modelNode{n.Czxid, n.Mzxid, n.Version}
		if unreadable := (*cache.UnreadableError)(nil); errors.As(n.Err, &unreadable) {
			out.unread[path] = true
		}
	}
	return out
}

// readable leaves out of both what a snapshot does not promise: servers do not tell
// of a node that the client may not read. What the snapshot says it could read stays.
func (s seen) readable(want map[string]modelNode) (got, wanted map[string]modelNode) {
	unsure := func(path string) bool {
		_, there := s.nodes[path]
		return strings.HasSuffix(path, guarded) && (!there || s.unread[path])
	}
	leaves := func(from map[string]modelNode) map[string]modelNode {
		out := maps.Clone(from)
		maps.DeleteFunc(out, func(path string, _ modelNode) bool { return unsure(path) })
		return out
	}
	return leaves(s.nodes), leaves(want)
}

// check replays the history and returns how snapshots, in the order in which they
// were seen, differ from it.
func (m *model) check(all []seen) (broken []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.SortStableFunc(m.commits, func(a, b zktest.Commit) int { return cmp.Compare(a.Zxid, b.Zxid) })
	now, next, last := map[string]modelNode{}, 0, int64(0)
	for _, s := range all {
		if s.zxid < last {
			broken = append(broken, fmt.Sprintf("snapshot %#x came after %#x", s.zxid, last))
			continue
		}
		last = s.zxid
		for ; next < len(m.commits) && m.commits[next].Zxid <= s.zxid; next++ {
			m.apply(now, m.commits[next])
		}
		if diff := differ(s.readable(now)); diff != "" {
			broken = append(broken, fmt.Sprintf("snapshot %#x: %s", s.zxid, diff))
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

func differ(got, want map[string]modelNode) string {
	var all []string
	for path, n := range want {
		if got[path] != n {
			all = append(all, fmt.Sprintf("%s is %#x, want %#x", path, got[path], n))
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			all = append(all, fmt.Sprintf("%s is %#x, and is not there", path, got[path]))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}
