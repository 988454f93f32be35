package cache

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/docent-go/docent/client"
)

// Level is one kind of node in a typed tree: the nodes whose paths match a pattern. Their
// data is decoded to T, once for each reading. A level may be in any number of trees. It has
// no values in a tree that [NewTypedTree] has made without it. A level never changes, and
// any number of goroutines may use it. Its codec runs on the goroutine of each tree.
type Level[T any] struct {
	*pattern

	codec Codec[T]
}

// NewLevel returns a level. It checks nothing: [NewTypedTree] refuses an invalid pattern
// and a nil codec. So a level may be a variable of a package.
func NewLevel[T any](p Pattern, codec Codec[T]) *Level[T] { return &Level[T]{compile(p), codec} }

// Levels are the levels of a typed tree.
type Levels []level

// level is what the levels of all types can do.
type level interface {
	// open returns the pattern, and the codec with the type in its values.
	open() (*pattern, Codec[Typed], error)
}

// Typed is the value of a node in a typed tree. Only the [Level] that has decoded it can
// read it. It is zero for a node of no level.
type Typed struct{ value any } // a *decoded[T]

// decoded is a value with the level that has decoded it.
type decoded[T any] struct {
	by    *Level[T]
	value T
}

// NewTypedTree returns a cache of all nodes that the levels match. It does no I/O before
// Start. All levels are in one snapshot: what one transaction writes to several levels
// shows together or not at all. States, failures and readers are those of every [Tree].
//
// The path of the tree is the longest that all patterns begin with. Patterns that begin
// with different names make it "/". Servers with persistent watches then tell the client of
// every change that they make. Two trees are better if no snapshot has to have both.
//
// The tree has the nodes that a level matches, and the nodes above them. It also reads the
// data of the nodes above, which [WithLimits] counts, and does not keep it. It reads no
// other node. The options are those of [NewTree]. [WithFilter] leaves out more nodes, and
// [WithDepth] has no effect.
//
// NewTypedTree returns an error if a pattern is invalid, or if two levels match the same
// path. If a level matches nodes that are made as parents, its codec also gets their empty
// data: to [JSON] that is [Undecodable].
func NewTypedTree(c *client.Client, levels Levels, opts ...Option) (*Tree[Typed], error) {
	set, err := levels.open()
	if err != nil {
		return nil, err
	}
	opts = append(slices.Clip(opts), optionFunc(func(s *settings) error {
		s.levels, s.filter = set, set.and(s.filter)
		return nil
	}))
	top, depth := set.extent()
	f, err := newFollower(c, "Tree", top, func([]byte) (Typed, error) { return Typed{}, nil }, depth, opts)
	if err != nil {
		return nil, err
	}
	servers := part{name: "zookeeper"}
	if f.whole && slices.ContainsFunc(set, func(l openLevel) bool { return len(l.parts) > 0 && l.parts[0] == servers }) {
		return nil, errors.New("cache: the tree of / leaves out /zookeeper, which a level names; make a typed tree of its own for that level")
	}
	return &Tree[Typed]{f}, nil
}

func (l *Level[T]) open() (*pattern, Codec[Typed], error) {
	switch {
	case l == nil || l.pattern == nil:
		return nil, nil, errors.New("cache: a level is nil; make it with NewLevel")
	case l.codec == nil:
		return nil, nil, fmt.Errorf("cache: level %s: the codec is nil; Bytes, Text and JSON are some", l.text)
	}
	return l.pattern, func(data []byte) (Typed, error) {
		v, err := l.codec(data)
		if err != nil {
			return Typed{}, err
		}
		return Typed{&decoded[T]{l, v}}, nil
	}, l.err
}

// open checks the levels.
func (ls Levels) open() (opened, error) {
	var set opened
	var err error
	if len(ls) == 0 {
		err = errors.New("cache: there is no level; make one with NewLevel")
	}
	for _, l := range ls {
		if l == nil {
			l = (*Level[any])(nil)
		}
		p, codec, bad := l.open()
		if bad != nil {
			err = errors.Join(err, bad)
			continue
		}
		for _, other := range set {
			if path, both := other.overlap(p); both {
				err = errors.Join(err, fmt.Errorf("cache: the levels %s and %s both match %s", other.text, p.text, path))
			}
		}
		set = append(set, openLevel{p, codec})
	}
	return set, err
}

// LevelChange is a [Change] of a node of a level.
type LevelChange[T any] struct {
	// Change has the kind, the path, and the snapshot with all levels.
	Change[Typed]

	Params Params
	// Old and New are the nodes of that Change with their values.
	Old, New *Node[T]
}

// Change returns a change with its parameters and values, and whether it is of a node of
// this level. It is of one level at most. The changes that concern no node are of none.
func (l *Level[T]) Change(c Change[Typed]) (LevelChange[T], bool) {
	if !l.matches(c.Path) {
		return LevelChange[T]{}, false
	}
	typed := LevelChange[T]{Change: c, Params: Params{l.pattern, c.Path}, Old: l.changed(c.Old), New: l.changed(c.New)}
	return typed, typed.Old != nil || typed.New != nil
}

// Get returns the node with these parameters, and whether there is one. If its Err is not
// nil, its value is the last good one, as in every [Snapshot]. A parameter that no node can
// have, such as one with a slash, is of no node. Get panics if the number of parameters is
// wrong: only a change of the program can help.
func (l *Level[T]) Get(s *Snapshot[Typed], params ...string) (Node[T], bool) {
	if n := l.free(); len(params) != n {
		panic(fmt.Sprintf("cache: Get of level %s with %d parameters, want %d", l.text, len(params), n))
	}
	return l.at(s, l.fill(params))
}

// at returns the node of the level at path, and whether there is one. A path with
// parameters of the caller may be that of another level, if one has a slash.
func (l *Level[T]) at(s *Snapshot[Typed], path string) (Node[T], bool) {
	raw, there := s.Get(path)
	if !there || !l.matches(path) {
		return Node[T]{}, false
	}
	return l.node(&raw)
}

// All yields the nodes of the level with these first parameters, in the order of their
// paths. Without parameters it yields all nodes of the level. All panics if there are
// more parameters than the pattern has.
func (l *Level[T]) All(s *Snapshot[Typed], params ...string) iter.Seq2[Params, Node[T]] {
	if n := l.free(); len(params) > n {
		panic(fmt.Sprintf("cache: All of level %s with %d parameters, want at most %d", l.text, len(params), n))
	}
	return func(yield func(Params, Node[T]) bool) { l.walk(s, "/", l.parts, params, yield) }
}

// walk yields the nodes that have the parts below path. It reports false once yield does.
func (l *Level[T]) walk(s *Snapshot[Typed], path string, parts []part, params []string, yield func(Params, Node[T]) bool) bool {
	switch {
	case len(parts) == 0:
		n, there := l.at(s, path)
		return !there || yield(Params{l.pattern, path}, n)
	case !parts[0].free:
		return l.walk(s, childPath(path, parts[0].name), parts[1:], params, yield)
	case len(params) > 0:
		return l.walk(s, childPath(path, params[0]), parts[1:], params[1:], yield)
	}
	for _, child := range s.Children(path) {
		if !l.walk(s, child.Path, parts[1:], nil, yield) {
			return false
		}
	}
	return true
}

// changed returns a node of a change with its value, nil if there is none.
func (l *Level[T]) changed(n *Node[Typed]) *Node[T] {
	if n == nil {
		return nil
	}
	typed, ours := l.node(n)
	if !ours {
		return nil
	}
	return &typed
}

// node returns a node that the level matches with its value, and false if the tree was
// made without the level. A value that could never be decoded or read is zero, and the
// node says why.
func (l *Level[T]) node(n *Node[Typed]) (Node[T], bool) {
	typed := Node[T]{
		Path: n.Path, Czxid: n.Czxid, Mzxid: n.Mzxid, EphemeralOwner: n.EphemeralOwner,
		ctime: n.ctime, mtime: n.mtime, Version: n.Version, Err: n.Err,
	}
	if n.Value.value == nil {
		return typed, n.Err != nil
	}
	d, ok := n.Value.value.(*decoded[T])
	if !ok || d.by != l {
		return Node[T]{}, false
	}
	typed.Value = d.value
	return typed, true
}
