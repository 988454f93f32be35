package client

import (
	"context"
	"slices"

	"github.com/docent-go/docent/internal/inside"
)

// createAndList is inside.Functions.CreateAndList.
func createAndList(ctx context.Context, s *Session, node inside.Node[Client]) (inside.Entry, error) {
	a := &attempt{ops: &s.ops, single: true}
	a.nodes = a.one[:0]
	path := join(node.Dir, node.Prefix)
	if err := a.add(node, path); err != nil {
		call(node.Gone)
		return inside.Entry{}, s.invalid(ctx, "create", path, err)
	}
	made, err := a.run(ctx, "create", path)
	if err != nil {
		return inside.Entry{}, err
	}
	return made[0], nil
}

// createGroup is inside.Functions.CreateGroup.
func createGroup(ctx context.Context, s *Session, nodes []inside.Node[Client], parts ...Op) ([]inside.Entry, error) {
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
		if len(nodes) > 0 {
			call(nodes[0].Gone)
		}
		return nil, s.invalid(ctx, "create group", path, err)
	}
	return a.run(ctx, "create group", path)
}

// group adds nodes to the attempt.
func (a *attempt) group(nodes []inside.Node[Client]) error {
	if len(nodes) == 0 {
		return misused("no nodes")
	}
	for _, node := range nodes {
		if err := a.add(node, join(node.Dir, node.Prefix)); err != nil {
			return err
		}
	}
	return nil
}

// add adds node to the attempt. path is its path, without prefix and number.
func (a *attempt) add(node inside.Node[Client], path string) error {
	n := attemptNode{in: a.ops, data: node.Data, list: node.List, told: node.Made, gone: node.Gone, movable: node.Movable}
	if node.In != nil {
		n.in = &node.In.ops
	}
	if n.in.core != a.core {
		return misused("%s is in the namespace of a client with another session", node.Dir)
	}
	spec := createSpec{ephemeral: true, protected: true, parents: parentsContainers, sequential: !node.Plain}
	if node.Persistent {
		spec.parents = parentsPersistent
	}
	spec.acl, spec.parentACL = slices.Clone(node.ACL), slices.Clone(node.ACL)
	var err error
	if n.spec, err = a.complete(spec); err != nil {
		return err
	}
	if _, err = n.in.full(node.Dir); err != nil {
		return err
	}
	full, err := n.in.creatable(path, n.spec)
	if err != nil {
		return err
	}
	n.dir, n.name = split(full)
	if node.Other != "" {
		if n.other, err = n.in.full(node.Other); err != nil {
			return err
		}
	}
	for _, dir := range node.More {
		full, err := n.in.full(dir)
		if err != nil {
			return err
		}
		n.more = append(n.more, full)
	}
	a.nodes = append(a.nodes, n)
	return nil
}

// call calls f, unless it is nil.
func call(f func()) {
	if f != nil {
		f()
	}
}
