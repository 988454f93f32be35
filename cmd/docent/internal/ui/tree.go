package ui

import (
	"math"
	"strings"

	"github.com/go-zookeeper/zk"
)

// mostData is how much of a node's data a model keeps, in bytes.
const mostData = 4 << 10

// node is a node of the servers as it was read last.
type node struct {
	name     string
	parent   *node // nil at the top
	children map[string]*node

	stat   zk.Stat
	data   string // the beginning
	size   int    // of all of it
	read   bool   // data and stat are known
	epoch  int    // of the model, when data were read last
	listed int    // epoch of the model when children were listed, 0 if they are not known
	hidden bool   // it may not be read, or not be listed
	owner  owner  // what the data of a contender say
	asked  bool   // to release
}

// session is that with which the node is deleted, 0 if it stays.
func (n *node) session() int64 {
	if n.stat.EphemeralOwner == math.MinInt64 {
		return 0 // of a container, on ClickHouse Keeper
	}
	return n.stat.EphemeralOwner
}

// tree is all nodes at and below a top.
type tree struct {
	top   string
	root  *node // nil until it is read
	count int
}

// find returns the node at a path, nil if none is known.
func (t *tree) find(at string) *node {
	n := t.root
	if n == nil || at == t.top {
		return n
	}
	rest, ok := strings.CutPrefix(at, strings.TrimSuffix(t.top, "/")+"/")
	if !ok {
		return nil
	}
	for name := range strings.SplitSeq(rest, "/") {
		if n = n.children[name]; n == nil {
			return nil
		}
	}
	return n
}

// path is where a node is.
func (t *tree) path(n *node) string {
	if n.parent == nil {
		return t.top
	}
	return join(t.path(n.parent), n.name)
}

// add makes a node below a known one. It returns nil if the one above is not known.
func (t *tree) add(at string) *node {
	if at == t.top {
		if t.root == nil {
			t.root = &node{name: at}
			t.count++
		}
		return t.root
	}
	parent := t.find(above(at))
	if parent == nil {
		return nil
	}
	return t.child(parent, at[strings.LastIndexByte(at, '/')+1:])
}

func (t *tree) child(parent *node, name string) *node {
	if n := parent.children[name]; n != nil {
		return n
	}
	if parent.children == nil {
		parent.children = map[string]*node{}
	}
	n := &node{name: strings.Clone(name), parent: parent}
	parent.children[n.name] = n
	t.count++
	return n
}

// remove forgets a node and all below it.
func (t *tree) remove(n *node) {
	if n.parent == nil {
		t.root = nil
	} else {
		delete(n.parent.children, n.name)
	}
	t.uncount(n)
}

func (t *tree) uncount(n *node) {
	t.count--
	for _, c := range n.children {
		t.uncount(c)
	}
}
