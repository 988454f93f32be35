package seqqueue

import (
	"context"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Blocks is the rule of a recipe: whether a contender ahead has to go before the contender
// behind it has its turn. The result depends on the argument alone. Every contender blocks a
// mutex, and writers alone block a reader.
type Blocks func(ahead Node) bool

// AllBlock is the rule of a mutex: every contender ahead blocks.
func AllBlock(Node) bool { return true }

// verdict is what a list of children says to one of them.
type verdict struct {
	listed  bool // its own node is in the list
	wrapped bool // the directory's counter has passed its end
	blocked bool
	nearest Node   // the last contender ahead that blocks, if blocked
	second  Node   // the last but one of these, if there are two
	foreign string // a child of another recipe or library, if any
	maybe   bool   // Site.Last is there without the other names

	blockers int // contenders ahead that block
}

// judge finds the place of own in a list of children. It looks at each name once: with
// thousands of waiters, sorting the list at every wake-up is what costs.
func judge(tags Tags, own Node, children []string, blocks Blocks) verdict {
	var v verdict
	found, last := 0, false // names of the site, and whether Last is one
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
				last = last || name == tags.Site.Last
			}
		case n.Recipe != "":
			v.foreign = name
		case numeral == wrapped:
			v.wrapped = true
		case !n.before(own) || !blocks(n):
		default:
			v.blockers++
			switch {
			case !v.blocked:
				v.blocked, v.nearest = true, n
			case v.nearest.before(n):
				v.nearest, v.second = n, v.nearest
			case v.second.Name == "" || v.second.before(n):
				v.second = n
			}
		}
	}
	if found > 0 && found == len(tags.Site.Names) {
		v.foreign, last = tags.Site.Names[0], false
	}
	v.maybe = last
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

const (
	digits = 10 // of a sequence number

	// A queue is exhausted this close to the end of the counter. The room
	// left is for contenders that do not know the rule.
	lastSequence = 1<<31 - 1<<20
	// From here on every contender warns.
	warnSequence = 1 << 30
)

// Bare is the tag of a name that is a number alone. Programs with a lock of their own name
// their nodes so.
const Bare = ""

// Tags are the texts in front of the number that tell a contender from other children.
type Tags struct {
	// Contenders stand in one line, by their numbers, whichever tag they have. [Bare] may
	// be one of the tags.
	Contenders []string
	// Foreign are contenders by the rules of another protocol, which may not see
	// ours. If one is in the directory, an acquire is refused. A child whose name has
	// one of Contenders is not foreign.
	Foreign []Foreign
	// Site is where a recipe works that puts no contenders into the directory
	// itself. If it is there, an acquire is refused, too.
	Site Site
}

// Foreign tells contenders of another recipe or library.
type Foreign struct {
	Tag    string
	Recipe string // in words: "mutex"
	// Library names the library that made a child with the tag and a number. It
	// returns "" for a child that is no such contender.
	Library func(name string) string
	Remedy  string // what a caller can do about it, besides another path
}

// Site is a recipe that works in child directories. All of the names
// together are its sign. One of them alone is an ordinary child, except for Last.
type Site struct {
	Names  []string
	Recipe string

	// Last is one of Names, or "". While the recipe has a hold, the server may delete
	// the other directories, which are empty, and not this one. So if Last alone is
	// there, Used looks into it. Used returns the path of a node of a hold, or "".
	Last string
	Used func(ctx context.Context, at Reader, dir string) (node string, err error)
}

// Reader reads nodes: a client or a session.
type Reader interface {
	Children(ctx context.Context, path string) ([]string, *zk.Stat, error)
	Exists(ctx context.Context, path string) (bool, *zk.Stat, error)
}

// Node is a contender.
type Node struct {
	Name string // of the child
	Key  string // what it is ordered by: its sequence number, as text
	Tag  string // what stands in front of the number

	Recipe string // by whose other rules it goes, "" for a contender
}

// Sequence is the number in the name.
func (n Node) Sequence() int64 {
	v, _ := strconv.ParseInt(n.Key, 10, 64) // ten digits
	return v
}

// before is the order of the queue. Two contenders with the same number are a
// write hold and the read hold that it was downgraded to. The read hold lasts longer,
// so it comes last. Other equal numbers appear only when the counter is at its end. Then
// the name decides, so that all clients of this library agree.
func (n Node) before(o Node) bool {
	switch {
	case n.Key != o.Key:
		return n.Key < o.Key
	case n.Tag != o.Tag:
		return n.Tag > o.Tag
	}
	return n.Name < o.Name
}

// parse reads a child's name. It returns the contender, also one by foreign rules. For any
// other child it returns noNumber.
func (t Tags) parse(name string) (n Node, v numeral) {
	for _, tag := range t.Contenders {
		if n, v = parse(tag, name); v != noNumber {
			return n, v
		}
	}
	for _, f := range t.Foreign {
		if n, v = parse(f.Tag, name); v != noNumber && f.Library(name) != "" {
			n.Name, n.Tag, n.Recipe = name, f.Tag, f.Recipe
			return n, v
		}
	}
	return Node{}, noNumber
}

// numeral is what follows a tag.
type numeral int

const (
	noNumber numeral = iota // or no tag
	number
	// wrapped is a number past the end of the counter: it is negative, with
	// the sign as one of at least ten characters (Java's "%010d").
	wrapped
)

// parse looks for the last occurrence of tag.
func parse(tag, name string) (Node, numeral) {
	i := 0
	if tag != Bare {
		i = strings.LastIndex(name, tag)
	}
	if i < 0 {
		return Node{}, noNumber
	}
	key := name[i+len(tag):]
	if rest, negative := strings.CutPrefix(key, "-"); negative {
		// A whole name of this form may be any program's. The counter is the directory's, so
		// the own number tells of its end as well.
		if tag != Bare && isNumber(rest) && (len(rest) == digits-1 || len(rest) == digits && rest[0] != '0') {
			return Node{}, wrapped
		}
		return Node{}, noNumber
	}
	if len(key) != digits || !isNumber(key) {
		return Node{}, noNumber
	}
	return Node{Name: name, Key: key, Tag: tag}, number
}

func isNumber(s string) bool {
	if s == "" || len(s) > digits {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
