package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/wire"
)

// createSpec is what the options of a create say.
type createSpec struct {
	ephemeral, sequential, container bool
	ttl                              time.Duration
	hasTTL                           bool
	protected                        bool
	parents                          parentKind
	acl, parentACL                   []zk.ACL // nil: the client's default
}

// parentKind says which nodes a create makes for missing parents.
type parentKind string

const (
	parentsMustExist  parentKind = ""
	parentsContainers parentKind = "WithParents"
	parentsPersistent parentKind = "WithPersistentParents"
)

// longestTTL is the longest time for which ZooKeeper has room: 40 bits of
// milliseconds (EphemeralType.TTL).
const longestTTL = (1<<40 - 1) * time.Millisecond

// A CreateOption configures a create; without any it makes a persistent node
// under an existing parent, with the client's default ACL. The namespace counts as
// existing, see [WithNamespace].
type CreateOption func(*createSpec)

// Ephemeral makes a node that the server deletes when the session ends.
func Ephemeral() CreateOption { return func(s *createSpec) { s.ephemeral = true } }

// Sequential lets the server append a number of ten digits, which counts the
// creates under the parent.
func Sequential() CreateOption { return func(s *createSpec) { s.sequential = true } }

// Container makes a node that the server removes some time after its last
// child is gone. On servers without such nodes the create fails with
// [ErrUnsupported].
func Container() CreateOption { return func(s *createSpec) { s.container = true } }

// TTL makes a node that the server removes once it has no children and has not been
// changed for d. d is at least a millisecond and at most some 34 years. Servers need
// extendedTypesEnabled=true; without it the create fails with [ErrUnsupported].
func TTL(d time.Duration) CreateOption {
	return func(s *createSpec) { s.ttl, s.hasTTL = d, true }
}

// Protected puts "_c_<uuid>-" in front of the last part of the path, as Curator does.
// If the answer to the create is lost, the client finds the node by that name and
// does not create another. If the caller gives up, the client removes the node.
func Protected() CreateOption { return func(s *createSpec) { s.protected = true } }

// WithParents creates missing parents as empty container nodes, as Curator's
// creatingParentContainersIfNeeded does. The server removes each container some time
// after its last child is gone. They get the client's default ACL, or the one of
// [ParentACL].
//
// On servers without containers (ClickHouse Keeper, and Apache ZooKeeper before
// 3.5.1) the parents are persistent nodes. The client that made them removes them
// within about a session timeout after they are empty, and when it is closed. Parents
// that other clients still use when it is closed stay.
func WithParents() CreateOption {
	return func(s *createSpec) { s.parents = parentsContainers }
}

// WithPersistentParents is [WithParents] with persistent nodes, as Curator's
// creatingParentsIfNeeded makes them: they stay until a client deletes them. If both
// options are given, the last one counts.
func WithPersistentParents() CreateOption {
	return func(s *createSpec) { s.parents = parentsPersistent }
}

// ACL sets the node's ACL. It replaces the client's default, that of [WithDefaultACL]
// or [WithAuth], and adds nothing to it. A create with an ACL that has no entry is
// refused with [ErrInvalidACL].
func ACL(acl ...zk.ACL) CreateOption {
	return func(s *createSpec) { s.acl = append([]zk.ACL{}, acl...) }
}

// ParentACL sets the ACL of the parents that [WithParents] or [WithPersistentParents]
// makes. It replaces the client's default, too. A create with an ACL that has no
// entry is refused with [ErrInvalidACL].
func ParentACL(acl ...zk.ACL) CreateOption {
	return func(s *createSpec) { s.parentACL = append([]zk.ACL{}, acl...) }
}

func (o *ops) spec(opts []CreateOption) (createSpec, error) {
	var s createSpec
	for _, opt := range opts {
		if opt != nil {
			opt(&s)
		}
	}
	return o.complete(s)
}

// complete gives s the client's default ACL where it has none, and checks it.
func (o *ops) complete(s createSpec) (createSpec, error) {
	if s.acl != nil && len(s.acl) == 0 || s.parentACL != nil && len(s.parentACL) == 0 {
		return s, fate.Unsent(errEmptyACL)
	}
	if s.acl == nil {
		s.acl = o.core.cfg.defaultACL
	}
	if s.parentACL == nil {
		s.parentACL = o.core.cfg.defaultACL
	}
	switch {
	case s.container && (s.ephemeral || s.sequential || s.hasTTL):
		return s, misused("Container is not possible with Ephemeral, Sequential or TTL")
	case s.hasTTL && s.ephemeral:
		return s, misused("TTL is not possible with Ephemeral")
	case s.hasTTL && (s.ttl < time.Millisecond || s.ttl > longestTTL):
		return s, misused("TTL(%v) is out of range: servers take 1ms to %v", s.ttl, longestTTL)
	default:
		return s, nil
	}
}

// withNamespace is spec for a node in dir, a full path. Missing nodes of the namespace
// are made as containers, unless the caller asks for others.
func (o *ops) withNamespace(spec createSpec, dir string) createSpec {
	if spec.parents == parentsMustExist && o.inNamespace(dir) {
		spec.parents = parentsContainers
	}
	return spec
}

// needs is the feature that the create needs of the servers, if there is one.
func (spec *createSpec) needs() (f session.Feature, takes bool) {
	switch {
	case spec.container:
		return session.ContainerNodes, true
	case spec.hasTTL:
		return session.TTLNodes, true
	default:
		return 0, false
	}
}

// request is the create as the server wants it. Containers and TTL nodes have a
// request type of their own.
func (spec *createSpec) request(full string, data []byte) wire.Request {
	r := wire.Request{Op: wire.OpCreate, Path: full, Data: data, ACL: spec.acl, Flags: spec.flags()}
	switch {
	case spec.container:
		r.Op, r.Flags = wire.OpCreateContainer, zk.FlagContainer
	case spec.hasTTL:
		r.Op, r.Flags, r.TTL = wire.OpCreateTTL, zk.FlagTTL, spec.ttl.Milliseconds()
		if spec.sequential {
			r.Flags = zk.FlagPersistentSequentialWithTTL
		}
	}
	return r
}

func (spec *createSpec) flags() int32 {
	var flags int32
	if spec.ephemeral {
		flags |= zk.FlagEphemeral
	}
	if spec.sequential {
		flags |= zk.FlagSequence
	}
	return flags
}

// Create makes a node and returns its path, which differs from the given one
// if it is sequential or protected.
//
// With [Protected], the client resolves a lost answer before it tries again: it looks
// for the node, after a Sync, and checks the owner. If the call fails after all, the
// client removes a node that it may have made in the background. It tries until that
// succeeds, the node's session is over or the client is closed.
//
// Without [Protected], a create whose outcome is unknown is not repeated. The error
// matches [UnknownOutcome], and the caller has to look whether the node exists. After
// any other error there is no node of this name from this call. Parents that were
// made stay; the server removes the ones that are containers.
func (o *ops) Create(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, error) {
	return o.createOne(ctx, path, data, nil, opts)
}

// createOne is Create. It stores the stat of the node in stat if that is not nil.
func (o *ops) createOne(ctx context.Context, path string, data []byte, stat *zk.Stat, opts []CreateOption) (string, error) {
	spec, err := o.spec(opts)
	if err != nil {
		return "", o.invalid(ctx, "create", path, err)
	}
	full, err := o.creatable(path, spec)
	if err != nil {
		return "", o.invalid(ctx, "create", path, err)
	}
	n := attemptNode{in: o, data: data, stat: stat}
	n.dir, n.name = split(full)
	n.spec = o.withNamespace(spec, n.dir)
	a := &attempt{ops: o, single: true}
	a.nodes = append(a.one[:0], n)
	made, err := a.run(ctx, "create", path)
	if err != nil {
		return "", err
	}
	return made[0].Path, nil
}

// creatable maps and checks path. The part that a sequential create extends
// may be empty.
func (o *ops) creatable(path string, spec createSpec) (string, error) {
	checked := path
	if spec.sequential && strings.TrimRight(path, "/.") != path { // else the number makes no difference
		checked += "0000000000"
	}
	full, err := o.full(checked)
	if err != nil {
		return "", err
	}
	return full[:len(full)-(len(checked)-len(path))], nil
}

// parentRounds bounds how often one try makes a parent that vanishes again. The
// server may remove a container before it has its first child, but it cannot be as
// fast as that every time. Another client can. The retry policy then decides when the
// next try begins, and whether there is one.
const parentRounds = 16

// withParents runs create. As long as create names a parent that is missing, it makes that
// and runs create again, which has changed nothing.
func withParents(ctx context.Context, s *sessionState, create func() (missing *missingParent, err error)) error {
	for round := 0; ; round++ {
		p, err := create()
		switch {
		case p == nil:
			return err
		case round == parentRounds:
			return p.in.noParent(p.dir, fate.Refusal(fate.ErrVanishing))
		}
		if err := p.in.makeParents(ctx, s, p.dir, p.of); err != nil {
			return p.in.noParent(p.dir, err)
		}
	}
}

// missingParent is a directory, a full path, without which a create fails.
type missingParent struct {
	in  *ops // whose namespace the error names it in
	dir string
	of  createSpec
}

// noParent is the error of a create whose parent dir could not be made. The create of
// the node itself was not sent, and making a parent twice is as good as once.
func (o *ops) noParent(dir string, err error) error {
	var at *parentError
	if errors.As(err, &at) {
		dir = at.dir
	}
	what := "parent " + o.stripped(dir)
	if o.inNamespace(dir) {
		what = "the namespace"
	}
	err = fmt.Errorf("make %s: %w", what, err)
	if fate.Is(err, fate.Refused) {
		return fate.Refusal(err)
	}
	return fate.Unsent(err)
}

// parentError is why the parent dir, a full path, could not be made.
type parentError struct {
	dir string
	err error
}

func (e *parentError) Error() string { return e.err.Error() }
func (e *parentError) Unwrap() error { return e.err }

// makeParents creates dir and its missing parents. It begins with the deepest: mostly
// only that one is missing.
func (o *ops) makeParents(ctx context.Context, s *sessionState, dir string, of createSpec) error {
	if dir == "/" {
		return fate.Refusal(ErrNoNode)
	}
	spec := createSpec{container: of.parents == parentsContainers, acl: of.parentACL}
	for range parentRounds {
		err := s.makeParent(ctx, dir, spec)
		switch {
		case err == nil, errors.Is(err, ErrNodeExists):
			return nil
		case !errors.Is(err, ErrNoNode):
			return &parentError{dir, err}
		}
		up, _ := split(dir)
		if err := o.makeParents(ctx, s, up, of); err != nil {
			return err
		}
	}
	return &parentError{dir, fate.Refusal(fate.ErrVanishing)}
}

// makeParent makes a missing parent. If spec asks for a container and the servers
// have none, it makes a persistent node, which the client removes later.
func (s *sessionState) makeParent(ctx context.Context, dir string, spec createSpec) error {
	if !spec.container {
		return s.Call(ctx, &wire.Exchange{Request: spec.request(dir, nil)})
	}
	err := s.Supports(ctx, session.ContainerNodes)
	spec.container = err == nil
	if err != nil && !errors.Is(err, ErrUnsupported) {
		return err
	}
	x := &wire.Exchange{Request: spec.request(dir, nil)}
	err = s.Call(ctx, x)
	switch {
	case spec.container && errors.Is(s.Refused(session.ContainerNodes, err), ErrUnsupported):
		return s.makeParent(ctx, dir, spec) // the node is remembered
	case err == nil && !spec.container:
		s.core.parents.Add(dir, x.Reply.Zxid)
	}
	return err
}

// CreateStat is [Client.Create] and returns the stat of the new node as well. Not
// every server knows ZooKeeper's create2, so the client reads the stat behind the
// create. Both leave in the same write, unless the server chooses the name.
//
// The stat may therefore be later than the create: it shows what other clients have
// written to the node since. Czxid is always that of the create. If no answer came to the
// read, or the node is deleted already, Ctime and Mtime are 0. The rest is as it was at
// the create.
func (o *ops) CreateStat(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, *zk.Stat, error) {
	now := new(zk.Stat)
	made, err := o.createOne(ctx, path, data, now, opts)
	if err != nil {
		return "", nil, err
	}
	return made, now, nil
}

// CreateOrSet makes a node, or sets the data of an existing node, whatever its
// version, as Curator's orSetData does. It returns the stat after that; for a node
// that it made, as [Client.CreateStat] does. Other clients may create or delete the
// node meanwhile.
//
// It sends the set first. So a node that exists costs one request, as with
// [Client.Set], and a node that is made costs one more than with [Client.Create].
//
// The options are for a node that is made. An existing node keeps its kind and its
// ACL. [Ephemeral] is refused, because an existing node may belong to another
// session. [Sequential] and [Protected] are refused, because they make a new name
// each time.
//
// After an unknown outcome the client tries again. That may overwrite what another
// client wrote in between, as [Client.Set] with [AnyVersion] may. If the call fails
// with an error that matches [UnknownOutcome], the data may have been written. After
// any other error this call has written nothing.
func (o *ops) CreateOrSet(ctx context.Context, path string, data []byte, opts ...CreateOption) (now *zk.Stat, err error) {
	spec, err := o.spec(opts)
	if err == nil && (spec.ephemeral || spec.sequential || spec.protected) {
		err = misused("CreateOrSet does not take Ephemeral, Sequential or Protected")
	}
	if err != nil {
		return nil, o.invalid(ctx, createOrSetOp, path, err)
	}
	err = o.do(ctx, createOrSetOp, path, repeatable, func(ctx context.Context, t try) (err error) {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		if f, takes := spec.needs(); takes {
			if err := t.s.Supports(ctx, f); err != nil {
				return err
			}
			defer func() { err = t.s.Refused(f, err) }()
		}
		for {
			x := &wire.Exchange{Request: wire.Request{Op: wire.OpSetData, Path: full, Data: data, Version: AnyVersion}}
			if err = t.s.Call(ctx, x); !errors.Is(err, ErrNoNode) {
				now = stat(x)
				return err
			}
			now, err = o.create(ctx, t.s, full, spec, data)
			if !errors.Is(err, ErrNodeExists) { // else another client made it in between
				return err
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return now, nil
}

// create makes the node at full, with parents if the options ask for them. It returns
// the stat of the node.
func (o *ops) create(ctx context.Context, s *sessionState, full string, spec createSpec, data []byte) (now *zk.Stat, err error) {
	dir, _ := split(full)
	spec = o.withNamespace(spec, dir)
	err = withParents(ctx, s, func() (*missingParent, error) {
		x, look := &wire.Exchange{Request: spec.request(full, data)}, session.Ask(wire.OpExists, full)
		err := s.Call(ctx, x, look)
		switch {
		case err == nil:
			now = spec.stat(s, x, look, data)
		case spec.parents != parentsMustExist && errors.Is(err, ErrNoNode):
			return &missingParent{o, dir, spec}, err
		}
		return nil, err
	})
	return now, err
}

// stat is the stat of the node that x has made. It is what look shows, or, without an
// answer to look, what follows from the create.
func (spec *createSpec) stat(s *sessionState, x, look *wire.Exchange, data []byte) *zk.Stat {
	if look.Answered() && look.Err() == nil {
		if seen := stat(look); seen != nil && seen.Czxid == x.Reply.Zxid {
			return seen
		}
	}
	made := &zk.Stat{Czxid: x.Reply.Zxid, Mzxid: x.Reply.Zxid, Pzxid: x.Reply.Zxid, DataLength: int32(len(data))} //nolint:gosec // a request is smaller
	if spec.ephemeral {
		made.EphemeralOwner = s.ID()
	}
	return made
}
