package cache

import "strings"

// task is something to read.
type task struct {
	path string
	what what
}

type what uint8

const (
	ofData     what = iota // the data of a node
	ofChildren             // the names of its children
	ofBirth                // whether it has been made; for one-shot watches
)

// top is the path of the cache.
func (f *follower[V]) top() string { return f.path }

// depthOf is how far path is below that of the cache.
func (f *follower[V]) depthOf(path string) int {
	if path == f.path {
		return 0
	}
	return strings.Count(strings.TrimPrefix(path, strings.TrimSuffix(f.path, "/")), "/")
}

// lists reports whether the children of path belong to the cache.
func (f *follower[V]) lists(path string) bool { return f.depth < 0 || f.depthOf(path) < f.depth }

// covers reports whether path belongs to the cache.
func (f *follower[V]) covers(path string) bool {
	switch {
	case path == f.path:
		return true
	case !isBelow(path, f.path) || f.depth >= 0 && f.depthOf(path) > f.depth || f.whole && (path == "/zookeeper" || isBelow(path, "/zookeeper")):
		return false
	case f.filter == nil:
		return true
	}
	for i := len(strings.TrimSuffix(f.path, "/")) + 1; i < len(path); i++ {
		if path[i] == '/' && !f.filter(path[:i]) {
			return false
		}
	}
	return f.filter(path)
}
