package client

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// Entry is a node made by [Session.CreateAndList] or [Session.CreateGroup].
type Entry struct {
	Path  string // of the node
	Czxid int64  // the id of the transaction that made it: it grows with every create

	// Children are those of its parent, in no order, as seen at some moment
	// after the create; nil if they are not known.
	Children []string
	// Beside are the children of the other directory that was to be listed, as
	// seen after Children; nil if they are not known. A missing directory is an
	// empty one.
	Beside []string
}

// CreateAndList makes a protected, ephemeral, sequential node named prefix
// and a number in dir, and lists dir. It is the first step of every recipe
// that queues. Both requests leave together, so it costs one round trip; the
// list may be missing if the connection failed in between. Missing parents
// are made as by [WithParents].
//
// On error no node remains, or its removal goes on in the background until it
// succeeds or the session is over.
func (s *Session) CreateAndList(ctx context.Context, dir, prefix string, data []byte, opts ...CreateOption) (Entry, error) {
	return s.CreateAndListBeside(ctx, dir, prefix, "", data, opts...)
}

// CreateAndListBeside is [Session.CreateAndList] and lists another directory,
// beside, as well, behind dir, in the same round trip.
func (s *Session) CreateAndListBeside(ctx context.Context, dir, prefix, beside string, data []byte, opts ...CreateOption) (Entry, error) {
	n := attemptNode{in: &s.ops, data: data, list: true}
	var err error
	n.spec, err = s.spec(slices.Concat(opts, []CreateOption{Ephemeral(), Sequential(), Protected(), WithParents()}))
	if err == nil {
		_, err = s.full(dir)
	}
	if err == nil && beside != "" {
		n.beside, err = s.full(beside)
	}
	if err != nil {
		return Entry{}, &OpError{Op: "create", Path: dir, Outcome: OutcomeNeverSent, Err: err}
	}
	return s.single(ctx, join(dir, prefix), n)
}

// single makes one node.
func (o *ops) single(ctx context.Context, path string, n attemptNode) (Entry, error) {
	full, err := o.creatable(path, n.spec)
	if err != nil {
		return Entry{}, &OpError{Op: "create", Path: path, Outcome: OutcomeNeverSent, Err: err}
	}
	n.dir, n.name = split(full)
	a := &attempt{ops: o, nodes: []attemptNode{n}, single: true}
	made, err := a.run(ctx, "create", path)
	if err != nil {
		return Entry{}, err
	}
	return made[0], nil
}

// GroupNode is one of the nodes that [Session.CreateGroup] makes: protected,
// ephemeral and sequential, named Prefix and a number, in Dir; or without the
// number, if Plain.
type GroupNode struct {
	Dir, Prefix string
	In          *Client // whose namespace Dir, and the path of the result, are in; nil: the session's
	Plain       bool
	Data        []byte
	ACL         []zk.ACL // of the node, and of parents that are made; nil: the client's default
	List        bool     // list Dir behind the transaction
	Beside      string   // another directory to list, in the same namespace; "" for none
}

// CreateGroup makes several nodes and applies parts, all in one transaction or
// not at all. No other change comes between two of the nodes, in whatever
// directories they are, and all have the same Czxid. With the lists asked for
// it costs one round trip. Missing parents are made before, as by
// [WithParents].
//
// A lost answer is resolved as with [Protected], so that nothing is applied
// twice, unless somebody deletes all of the nodes before they are looked for.
// If one of parts is refused, the error is a [*MultiError] with its index among
// parts.
//
// On error no node remains, or its removal goes on in the background until it
// succeeds or the session is over. If the error matches [UnknownOutcome],
// parts may have been applied.
func (s *Session) CreateGroup(ctx context.Context, nodes []GroupNode, parts ...Op) ([]Entry, error) {
	path := "(empty)"
	if len(nodes) > 0 {
		path = nodes[0].Dir
	}
	a := &attempt{ops: &s.ops, parts: parts}
	err := a.group(nodes)
	if err == nil {
		_, err = a.requests(parts)
	}
	if err != nil {
		return nil, &OpError{Op: "create group", Path: path, Outcome: OutcomeNeverSent, Err: err}
	}
	return a.run(ctx, "create group", path)
}

// group makes nodes those of the attempt.
func (a *attempt) group(nodes []GroupNode) error {
	if len(nodes) == 0 {
		return fmt.Errorf("%w: no nodes", zk.ErrInvalidFlags)
	}
	for _, g := range nodes {
		n := attemptNode{in: a.ops, data: g.Data, list: g.List}
		if g.In != nil {
			n.in = &g.In.ops
		}
		if n.in.core != a.core {
			return fmt.Errorf("client: %s is in the namespace of a client with another session", g.Dir)
		}
		opts := []CreateOption{Ephemeral(), Protected(), WithParents()}
		if !g.Plain {
			opts = append(opts, Sequential())
		}
		if g.ACL != nil {
			opts = append(opts, ACL(g.ACL...), ParentACL(g.ACL...))
		}
		var err error
		if n.spec, err = a.spec(opts); err != nil {
			return err
		}
		full, err := n.in.creatable(join(g.Dir, g.Prefix), n.spec)
		if err != nil {
			return err
		}
		n.dir, n.name = split(full)
		if g.Beside != "" {
			if n.beside, err = n.in.full(g.Beside); err != nil {
				return err
			}
		}
		a.nodes = append(a.nodes, n)
	}
	return nil
}
