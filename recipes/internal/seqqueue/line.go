package seqqueue

import (
	"slices"
	"sort"
)

// Blocks is the rule of a recipe: whether a contender ahead has to go before
// the one behind may proceed. It is pure. A mutex is blocked by everybody, a
// reader by writers only.
type Blocks func(ahead Node) bool

// Everybody is the rule of a mutex.
func Everybody(Node) bool { return true }

// verdict is what a list of children says to one of them.
type verdict struct {
	listed  bool // the own node is in the list
	wrapped bool // the directory's counter has passed its end
	blocked bool
	nearest Node   // the last contender ahead that blocks, if blocked
	ahead   int    // contenders ahead that block
	foreign string // a child of another recipe or library, if any
}

// judge finds the own place in a list of children. It looks at each name
// once: at thousands of waiters, sorting the list at every wake-up is what
// costs.
func judge(tags Tags, own Node, children []string, blocks Blocks) verdict {
	var v verdict
	found := 0 // of the site
	for _, name := range children {
		if name == own.Name {
			v.listed = true
			continue
		}
		n, numeral := tags.parse(name)
		switch {
		case numeral == noNumber:
			if slices.Contains(tags.Site.Names, name) {
				found++
			}
		case n.Recipe != "":
			v.foreign = name
		case numeral == wrapped:
			v.wrapped = true
		case !n.before(own) || !blocks(n):
		default:
			v.ahead++
			if !v.blocked || v.nearest.before(n) {
				v.blocked, v.nearest = true, n
			}
		}
	}
	if found > 0 && found == len(tags.Site.Names) {
		v.foreign = tags.Site.Names[0]
	}
	return v
}

// line returns the contenders among children in order, foreign ones included.
func line(tags Tags, children []string) []Node {
	nodes := make([]Node, 0, len(children))
	for _, name := range children {
		if n, numeral := tags.parse(name); numeral == number {
			nodes = append(nodes, n)
		}
	}
	sort.Slice(nodes, func(i, j int) bool { return nodes[i].before(nodes[j]) })
	return nodes
}

// upTo counts the contenders in a list of children that are not behind last.
func upTo(tags Tags, last Node, children []string) (n int) {
	for _, name := range children {
		if other, numeral := tags.parse(name); numeral == number && other.Recipe == "" && !last.before(other) {
			n++
		}
	}
	return n
}
