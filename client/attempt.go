package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/duties"
	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

// newProtectedPrefix returns "_c_<uuid>-" with a random UUID. Its version is 8,
// free form (RFC 9562), where Curator's is 4: that is how people, and
// recipes.Contender, tell the nodes of the two apart. The bit behind the version is that of
// [inside.Node.Movable].
func newProtectedPrefix(movable bool) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (Go 1.24)
	b[6] = b[6]&0x07 | 0x80
	if movable {
		b[6] |= 0x08
	}
	b[8] = b[8]&0x3f | 0x80
	id := make([]byte, 0, len(inside.ProtectedPrefix)+len(b)*2+5)
	id = append(id, inside.ProtectedPrefix...)
	for _, group := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		id = append(hex.AppendEncode(id, group), '-')
	}
	return string(id)
}

// attempt is the state of the create of one node, or of several protected ones, over all its
// tries. Everything here serves one rule. Before the create is sent again, or given
// up, the client knows what became of the last request, or the remover finds out.
type attempt struct {
	*ops
	nodes  []attemptNode
	one    [1]attemptNode // the nodes, if there is one
	parts  []Op           // in the same transaction, behind the nodes
	single bool           // one node, created by a plain request

	prefix  string         // "_c_<uuid>-" in use, of all nodes
	last    *wire.Exchange // the newest request
	owner   *sessionState  // its session
	unknown bool           // the newest request may have been applied, or may yet be
	lost    bool           // an earlier request got no answer, and its nodes were not found

	first [1]inside.Entry   // backs the result, if there is one node
	sent  [2]*wire.Exchange // backs the requests of a try, if there are no more
}

// attemptNode is one of the nodes.
type attemptNode struct {
	in        *ops // whose namespace the path of the result is in
	spec      createSpec
	data      []byte
	dir, name string                               // full path of the parent; name without prefix and number
	list      bool                                 // list dir as well
	other     string                               // full path of another directory to list, or ""
	more      []string                             // full paths of directories to list behind that
	told      func(path string, connection uint64) // inside.Node.Made
	gone      func()                               // inside.Node.Gone
	movable   bool                                 // inside.Node.Movable
	stat      *zk.Stat                             // where the stat of the node is wanted, or nil

	children, otherList *wire.Exchange   // the lists of the newest try
	rest                []*wire.Exchange // of more
	look                *wire.Exchange   // and its look at the node
}

// run makes the nodes.
func (a *attempt) run(ctx context.Context, name, path string) (made []inside.Entry, err error) {
	effect := resolved
	if !a.nodes[0].spec.protected {
		effect = once
	}
	ctxerr.Require(ctx)
	ctx, seen := a.core.cfg.observer.observe(ctx, name, path)
	err = a.perform(ctx, seen, name, path, effect, func(ctx context.Context, t try) (err error) {
		made, err = a.try(ctx, t.s)
		return err
	})
	if err != nil {
		var op *OpError
		if errors.As(err, &op) {
			op.lostTry = a.lost
		}
		return nil, seen.end(a.abandon(err))
	}
	_ = seen.end(nil)
	for i := range made {
		made[i].Path = a.nodes[i].in.stripped(made[i].Path)
	}
	return made, nil
}

// try makes the nodes once. If the answer to the last request was lost, and its session
// goes on or the nodes outlive it, try first looks for the nodes by their prefix, and takes those that it finds.
func (a *attempt) try(ctx context.Context, s *sessionState) (made []inside.Entry, err error) {
	if f, takes := a.nodes[0].spec.needs(); takes {
		if err := s.Supports(ctx, f); err != nil {
			return nil, err
		}
		defer func() { err = s.Refused(f, err) }()
	}
	if a.unknown && a.nodes[0].spec.ephemeral && a.owner != s {
		// The nodes are deleted with their session. They must not be taken for
		// nodes of this one (CURATOR-498).
		a.unknown, a.prefix = false, ""
	}
	if a.unknown {
		made, err := a.find(ctx, s)
		if err != nil || made != nil {
			a.unknown = err != nil
			return made, err
		}
		a.unknown, a.lost = false, true
	}
	if a.prefix == "" && a.nodes[0].spec.protected {
		a.prefix = newProtectedPrefix(a.nodes[0].movable)
	}
	err = withParents(ctx, s, func() (lacking *missingParent, err error) {
		made, lacking, err = a.create(ctx, s)
		return lacking, err
	})
	return made, err
}

// create sends the create once, with the lists behind it in the same write. It returns
// the parent that is missing, if it may be made.
func (a *attempt) create(ctx context.Context, s *sessionState) (made []inside.Entry, missing *missingParent, err error) {
	x := a.request()
	xs := a.lists(x)
	a.last, a.owner, a.unknown = x, s, true
	x.Keep = true // after the call gave up, the remover may still wait for the answer
	if a.single {
		err = s.Call(ctx, xs...)
	} else {
		err = s.transact(ctx, a.described(), xs...)
	}
	if err != nil {
		a.unknown = !fate.Is(err, fate.NeverSent) && !fate.Is(err, fate.Refused)
		missing, err = a.blame(err)
		return nil, missing, err
	}
	a.unknown = false
	made = append(a.first[:0], make([]inside.Entry, len(a.nodes))...)
	for i, full := range a.made() {
		n := a.nodes[i]
		made[i] = inside.Entry{Path: full, Czxid: x.Reply.Zxid, Connection: x.Connection(), Children: names(n.children), Other: namesOrNone(n.otherList)}
		for _, x := range n.rest {
			made[i].More, made[i].Stats = append(made[i].More, namesOrNone(x)), append(made[i].Stats, statOf(x))
		}
		if n.stat != nil {
			if n.look == nil {
				n.look = session.Ask(wire.OpExists, full)
				_ = s.Call(ctx, n.look) // the create has succeeded, whatever this says
			}
			*n.stat = *n.spec.stat(s, x, n.look, n.data)
		}
	}
	return made, nil, nil
}

// made are the nodes that the answer to the newest request names. Of a transaction that was
// refused there are none, though the parts before the refused one have no error.
func (a *attempt) made() (full []string) {
	parts := a.last.Reply.Parts
	switch {
	case a.single:
		return []string{a.last.Reply.Path}
	case slices.ContainsFunc(parts, func(r wire.Result) bool { return r.Code != 0 }):
		return nil
	}
	for _, r := range parts[:min(len(a.nodes), len(parts))] {
		full = append(full, r.Path)
	}
	return full
}

// request is the create.
func (a *attempt) request() *wire.Exchange {
	if a.single {
		n := &a.nodes[0]
		x := &wire.Exchange{Request: n.spec.request(join(n.dir, a.prefix+n.name), n.data)}
		if n.told != nil {
			x.OnAnswer = func() {
				if x.Err() == nil && x.Reply.Code == 0 {
					n.told(n.in.stripped(x.Reply.Path), x.Connection())
				}
			}
		}
		return x
	}
	reqs := make([]wire.Request, len(a.nodes), len(a.nodes)+len(a.parts))
	for i := range a.nodes {
		n := &a.nodes[i]
		reqs[i] = n.spec.request(join(n.dir, a.prefix+n.name), n.data)
	}
	more, _ := a.requests(a.parts) // createGroup has looked at them
	x := transaction(append(reqs, more...))
	if slices.ContainsFunc(a.nodes, func(n attemptNode) bool { return n.told != nil }) {
		x.OnAnswer = func() { a.tellMade(x) }
	}
	return x
}

// tellMade tells which nodes the transaction x has made, if it was applied.
func (a *attempt) tellMade(x *wire.Exchange) {
	if x.Err() != nil || x.Reply.Code != 0 || len(x.Reply.Parts) != len(x.Request.Parts) ||
		slices.ContainsFunc(x.Reply.Parts, func(r wire.Result) bool { return r.Code != 0 }) {
		return
	}
	for i := range a.nodes {
		if n := &a.nodes[i]; n.told != nil {
			n.told(n.in.stripped(x.Reply.Parts[i].Path), x.Connection())
		}
	}
}

// lists returns x, the create, and behind it the lists and looks that the nodes ask
// for. The lists of other directories come last.
func (a *attempt) lists(x *wire.Exchange) (xs []*wire.Exchange) {
	xs = append(a.sent[:0], x)
	for i := range a.nodes {
		if n := &a.nodes[i]; n.list {
			n.children = session.Ask(wire.OpGetChildren, n.dir)
			xs = append(xs, n.children)
		}
	}
	for i := range a.nodes {
		n := &a.nodes[i]
		if n.other != "" {
			n.otherList = session.Ask(wire.OpGetChildren, n.other)
			xs = append(xs, n.otherList)
		}
		n.rest = nil
		for _, dir := range n.more {
			n.rest = append(n.rest, session.Ask(wire.OpGetChildren, dir))
		}
		xs = append(xs, n.rest...)
		if n.look = nil; n.stat != nil && !n.spec.sequential {
			n.look = session.Ask(wire.OpExists, join(n.dir, a.prefix+n.name))
			xs = append(xs, n.look)
		}
	}
	return xs
}

// described are all parts of the transaction, as errors name them.
func (a *attempt) described() []Op {
	all := make([]Op, 0, len(a.nodes)+len(a.parts))
	for _, n := range a.nodes {
		all = append(all, Op{name: "create", path: n.in.stripped(n.dir)})
	}
	return append(all, a.parts...)
}

// blame returns the parent of a node if it is missing and may be made.
// The error about a node names its directory. The error about a part counts from the
// first of the caller's parts.
func (a *attempt) blame(err error) (missing *missingParent, _ error) {
	var refused *MultiError
	at := 0
	switch {
	case errors.As(err, &refused) && refused.Index >= len(a.nodes):
		refused.Index -= len(a.nodes)
		return nil, err
	case refused != nil:
		at = refused.Index
		err = fate.Refusal(fmt.Errorf("in %s: %w", refused.Path, refused.Err))
	}
	if n := &a.nodes[at]; errors.Is(err, ErrNoNode) && n.spec.parents != parentsMustExist {
		return &missingParent{a.ops, n.dir, n.spec}, err
	}
	return nil, err
}

// abandon leaves the nodes to the remover if the newest request may have made them,
// or may yet make them. It returns err and says so in it.
func (a *attempt) abandon(err error) error {
	gone := a.nodes[0].gone
	if a.prefix == "" || !a.unknown {
		call(gone)
		return err
	}
	m := &duties.Removal{What: a.nodes[0].dir, From: &duties.Lost{Request: a.last, Dirs: a.dirs(), Prefix: a.prefix, Made: a.made}, Gone: gone}
	if a.nodes[0].spec.ephemeral {
		m.Owner = a.owner
	}
	for i := range a.nodes {
		a.nodes[i].data = nil // of no more use
	}
	a.core.remover.Add(m)
	var op *OpError
	if errors.As(err, &op) {
		op.Outcome = OutcomeUnknown
	}
	return err
}

// find looks for the nodes of a request whose answer was lost; without any it returns
// nil. There are all of the nodes or none, unless another client deleted some. The
// check of the owner makes sure that the nodes are this session's.
func (a *attempt) find(ctx context.Context, s *sessionState) ([]inside.Entry, error) {
	found, some := map[string][]string{}, false
	for _, dir := range a.dirs() {
		names, err := duties.Listed(ctx, s, dir)
		if err != nil {
			return nil, err
		}
		names = duties.WithPrefix(names, a.prefix)
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(duties.Ending(a), duties.Ending(b)) })
		found[dir], some = names, some || len(names) > 0
	}
	if !some {
		return nil, nil
	}
	made := make([]inside.Entry, len(a.nodes))
	for i, n := range a.nodes {
		names := found[n.dir]
		if len(names) == 0 {
			return nil, a.missing(ctx, s, "a part of the group")
		}
		made[i].Path, found[n.dir] = join(n.dir, names[0]), names[1:]
	}
	// There are more nodes than that only if a request was delivered twice. The nodes
	// that are first in line are kept.
	for _, dir := range a.dirs() {
		for _, extra := range found[dir] {
			a.core.remover.Remove(s, join(dir, extra))
		}
	}
	x := session.Ask(wire.OpExists, made[0].Path)
	if err := s.Read(ctx, x); err != nil {
		return nil, err
	}
	stat := stat(x)
	switch {
	case stat == nil && !a.single:
		return nil, a.missing(ctx, s, "the group")
	case stat == nil, a.nodes[0].spec.ephemeral && stat.EphemeralOwner != s.ID():
		return nil, nil
	}
	for i := range made {
		made[i].Czxid = stat.Czxid
	}
	if seen := a.nodes[0].stat; seen != nil {
		*seen = *stat
	}
	return made, nil
}

// missing is the error of a group of which nodes have gone. The end of the session deletes
// them too, and a server that is about to close the connection may still answer reads. So
// a write goes first: if it is answered, the session lives, and another client did it. A server
// that puts the write off has not looked at the session.
func (a *attempt) missing(ctx context.Context, s *sessionState, what string) error {
	if err := s.Call(ctx, checks([]string{a.nodes[0].dir})); err != nil && (!fate.Is(err, fate.Refused) || fate.Passing(err)) {
		return err
	}
	return fate.Refusal(fmt.Errorf("%w: another client deleted %s", ErrNoNode, what))
}

// dirs are the directories in which the nodes are found.
func (a *attempt) dirs() (all []string) {
	for _, n := range a.nodes {
		if !slices.Contains(all, n.dir) {
			all = append(all, n.dir)
		}
	}
	return all
}

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
