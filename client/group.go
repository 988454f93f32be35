package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// GroupNode is one of the nodes that [Session.CreateGroup] makes: protected,
// ephemeral and sequential, named Prefix and a number, in Dir; or without the
// number, if Plain.
type GroupNode struct {
	Dir, Prefix string
	In          *Client // whose namespace Dir, and the path of the result, are in; nil: the session's
	Plain       bool
	Data        []byte
	ACL         []zk.ACL // nil: the client's default
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
	g := &groupCreate{ops: &s.ops, nodes: nodes, parts: parts}
	if err := g.resolve(); err != nil {
		return nil, &OpError{Op: "create group", Path: path, Outcome: OutcomeNeverSent, Err: err}
	}
	var made []Entry
	err := s.do(ctx, "create group", path, resolving, func(ctx context.Context, t try) (err error) {
		made, err = g.try(ctx, t.s)
		return err
	})
	if err != nil {
		return nil, g.abandon(err)
	}
	for i := range made {
		made[i].Path = g.in(nodes[i]).stripped(made[i].Path)
	}
	return made, nil
}

// groupCreate is the state of one CreateGroup over all its tries, which are
// all of one session.
type groupCreate struct {
	*ops
	nodes []GroupNode
	parts []Op

	full  []string       // path of each node without prefix and number
	specs []createSpec   // of each node
	side  []string       // full path of what is to be listed beside each node, or ""
	count map[string]int // nodes in each directory

	prefix string                // "_c_<uuid>-" of all of them
	doubt  bool                  // the newest transaction may have been applied
	part   bool                  // some of the nodes were found, and not all
	last   *pending[multiAnswer] // that transaction
}

func (g *groupCreate) in(n GroupNode) *ops {
	if n.In == nil {
		return g.ops
	}
	return &n.In.ops
}

func (g *groupCreate) resolve() error {
	if len(g.nodes) == 0 {
		return fmt.Errorf("%w: no nodes", zk.ErrInvalidFlags)
	}
	g.prefix = newProtectedPrefix()
	g.count = make(map[string]int)
	size := 0
	for _, n := range g.nodes {
		opts := []CreateOption{Ephemeral()}
		if !n.Plain {
			opts = append(opts, Sequential())
		}
		if n.ACL != nil {
			opts = append(opts, ACL(n.ACL...))
		}
		if g.in(n).core != g.core {
			return fmt.Errorf("client: %s is in the namespace of a client with another session", n.Dir)
		}
		spec, err := g.spec(opts)
		if err != nil {
			return err
		}
		full, err := g.in(n).creatable(join(n.Dir, n.Prefix), n.Data, spec)
		if err != nil {
			return err
		}
		side := ""
		if n.Beside != "" {
			if side, err = g.in(n).full(n.Beside); err != nil {
				return err
			}
		}
		dir, _ := split(full)
		g.full, g.specs, g.side = append(g.full, full), append(g.specs, spec), append(g.side, side)
		g.count[dir]++
		size += len(full) + len(g.prefix) + len(n.Data) + spec.size() + 32
	}
	return g.fits(size)
}

func (g *groupCreate) try(ctx context.Context, s *session) ([]Entry, error) {
	if g.doubt {
		made, err := g.find(ctx, s)
		if err != nil || made != nil {
			g.doubt = err != nil
			return made, err
		}
		g.doubt = false
	}
	for round := 0; ; round++ {
		made, err := g.create(ctx, s)
		var refused *MultiError
		if round == parentRounds || !errors.As(err, &refused) || !errors.Is(err, zk.ErrNoNode) || refused.Index >= len(g.nodes) {
			return made, g.blame(err)
		}
		dir, _ := split(g.full[refused.Index])
		if err := g.makeContainers(ctx, s, dir, g.specs[refused.Index].acl); err != nil {
			return nil, g.noParent(dir, err)
		}
	}
}

// blame names the directory of a refused node, or counts the index of a refused
// part from the first of the caller's.
func (g *groupCreate) blame(err error) error {
	var refused *MultiError
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Index < len(g.nodes):
		return &fault{fmt.Errorf("in %s: %w", refused.Path, refused.Err), OutcomeRefused}
	}
	refused.Index -= len(g.nodes)
	return err
}

// create is one transaction, with the lists right behind it on the wire.
func (g *groupCreate) create(ctx context.Context, s *session) ([]Entry, error) {
	reqs, err := g.requests(g.parts)
	if err != nil {
		return nil, err
	}
	creates, described := make([]any, len(g.nodes)), make([]Op, len(g.nodes))
	paths := make([]string, len(g.nodes))
	for i, full := range g.full {
		dir, name := split(full)
		paths[i] = join(dir, g.prefix+name)
		creates[i] = &zk.CreateRequest{Path: paths[i], Data: notNull(g.nodes[i].Data), Acl: g.specs[i].acl, Flags: g.specs[i].flags()}
		described[i] = Op{name: "create", path: g.nodes[i].Dir}
	}
	tracked := s.link.TrackCreate(paths[0])
	defer tracked.Forget()
	g.doubt = true
	g.last = start(s, transaction(slices.Concat(creates, reqs)))
	behind := make(lists)
	select {
	case <-tracked.Leaving():
		for i, n := range g.nodes {
			if dir, _ := split(g.full[i]); n.List {
				behind.add(s, dir)
			}
			if g.side[i] != "" {
				behind.add(s, g.side[i])
			}
		}
	case <-g.last.done:
	case <-ctx.Done():
	}
	a, err := g.last.wait(ctx)
	if err == nil && a.err != nil {
		err = culprit(slices.Concat(described, g.parts), a.parts, a.err)
	}
	if err != nil {
		var ft *fault
		g.doubt = !errors.As(err, &ft) || ft.outcome == OutcomeUnknown
		return nil, err
	}
	g.doubt = false
	made := make([]Entry, len(g.nodes))
	zxid, _ := tracked.Zxid()
	for i := range made {
		made[i] = Entry{Path: a.parts[i].String, Czxid: zxid}
		dir, _ := split(g.full[i])
		behind.tell(ctx, &made[i], dir, g.side[i])
	}
	return made, nil
}

// find looks for the nodes of a transaction whose answer was lost, as
// protectedCreate does for one. There are all of them or none, unless somebody
// deleted some.
func (g *groupCreate) find(ctx context.Context, s *session) ([]Entry, error) {
	found := make(map[string][]string)
	some := false
	for _, n := range g.places() {
		names, err := findPrefix(ctx, s, n.dir, n.prefix)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(ending(a), ending(b)) })
		found[n.dir], some = names, some || len(names) > 0
	}
	if !some {
		return nil, nil
	}
	for dir, n := range g.count {
		if len(found[dir]) != n {
			g.part = true
			return nil, &fault{fmt.Errorf("%w: a part of the group was deleted by somebody else", zk.ErrNoNode), OutcomeRefused}
		}
	}
	made := make([]Entry, len(g.nodes))
	for i, full := range g.full {
		dir, _ := split(full)
		made[i].Path = join(dir, found[dir][0])
		found[dir] = found[dir][1:]
	}
	stat, err := call(ctx, s, exists(made[0].Path))
	switch {
	case err != nil:
		return nil, err
	case stat == nil:
		return nil, &fault{fmt.Errorf("%w: the group was deleted by somebody else", zk.ErrNoNode), OutcomeRefused}
	}
	for i := range made {
		made[i].Czxid = stat.Czxid
	}
	return made, nil
}

// ending is the number of a sequential node, and, as the names of one group
// differ in nothing else, its place in it.
func ending(name string) string { return name[max(0, len(name)-10):] }

// places is where the nodes are found.
func (g *groupCreate) places() []protectedName {
	places := make([]protectedName, 0, len(g.count))
	for dir := range g.count {
		places = append(places, protectedName{dir, g.prefix})
	}
	slices.SortFunc(places, func(a, b protectedName) int { return cmp.Compare(a.dir, b.dir) })
	return places
}

// abandon leaves the transaction to the remover if it may have made, or may
// yet make, the nodes, and returns err with that said.
func (g *groupCreate) abandon(err error) error {
	if !g.doubt && !g.part {
		return err
	}
	last, n := g.last, len(g.nodes)
	g.core.remover.abandon(abandoned{
		owner: g.bound,
		settled: func(ctx context.Context) ([]string, error) {
			a, err := last.wait(ctx)
			if err != nil {
				return nil, err
			}
			made := make([]string, 0, n)
			if a.err == nil {
				for _, part := range a.parts[:n] {
					made = append(made, part.String)
				}
			}
			return made, nil
		},
		nodes: g.places(),
	})
	var op *OpError
	if g.doubt && errors.As(err, &op) {
		op.Outcome = OutcomeUnknown
	}
	return err
}
