// Package caches measures what the caches of a large tree cost. It takes the time and
// the memory to read the tree, and the requests for one change and for a reconnection.
// Docent's caches, Curator's, and loops that read node by node follow the same tree on
// one server.
//
// Each cache is in a process of its own. The process obeys commands, one a line, and
// answers each with one line, "ok" or "error" and more:
//
//	connect kind host:port  to a server, in place of the connection before
//	load path               read the tree; answered with a Load as JSON
//	await path version      until the cache has this version of the node's data
//	memory                  the bytes of the heap in use, after a collection of garbage
//	drop                    close the cache
//	quit                    close the session and end
package caches

import "time"

// Load is the answer to "load".
type Load struct {
	Took  time.Duration `json:"took"`
	Nodes int           `json:"nodes"`
	Peak  int64         `json:"peak"` // most bytes of the heap in use meanwhile, with garbage
}

// Kind is one way to have a tree in memory.
type Kind struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Follows is false for a loop, which learns of no change.
	Follows bool `json:"follows"`
	// Java says that the cache is Curator's.
	Java bool `json:"java"`
}

// The names of kinds.
const (
	docent        = "docent"
	docentOneShot = "docent-one-shot"
	curator       = "curator"
	treeCache     = "treecache"
	loop          = "loop"
	watchingLoop  = "loop-watch"
)

// Kinds are all kinds. The loop is what the others are compared with.
func Kinds() []Kind {
	return []Kind{
		{Name: loop, Title: "go-zookeeper, a read per node in turn"},
		{Name: watchingLoop, Title: "the same with watches: a read and a list per node"},
		{Name: docent, Title: "Docent `Tree`", Follows: true},
		{Name: docentOneShot, Title: "Docent `Tree`, one-shot watches", Follows: true},
		{Name: curator, Title: "Curator `CuratorCache`", Follows: true, Java: true},
		{Name: treeCache, Title: "Curator `TreeCache`", Follows: true, Java: true},
	}
}

// Shape is the tree: directories below a top, and nodes with data in them.
type Shape struct {
	Directories int `json:"directories"`
	In          int `json:"in"`    // nodes in each directory
	Value       int `json:"value"` // bytes of data of each of those
}

// ShapeOf is the tree of about n nodes.
func ShapeOf(n int) Shape {
	const in, value = 99, 64
	return Shape{Directories: max(1, n/(in+1)), In: in, Value: value}
}

// Nodes is how many there are, the top and the directories included.
func (s Shape) Nodes() int { return 1 + s.Directories*(1+s.In) }

const (
	perNode = 300 // bytes that a cache may use for a node, besides the tree's own bytes
	factor  = 1.5 // that a cache may use of the tree's own bytes
)

// Bound is how many bytes a cache of a tree with so many bytes of paths and data may use.
func (s Shape) Bound(raw int64) float64 {
	return factor*float64(raw) + perNode*float64(s.Nodes())
}
