package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

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

// errEmptyACL refuses an ACL that a server would take for no ACL at all.
var errEmptyACL = fmt.Errorf("%w: it has no entry", ErrInvalidACL)

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
		return s, &fault{errEmptyACL, OutcomeNeverSent}
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
func (spec *createSpec) needs() (f feature, takes bool) {
	switch {
	case spec.container:
		return containerNodes, true
	case spec.hasTTL:
		return ttlNodes, true
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
			return p.in.noParent(p.dir, &fault{errVanishing, OutcomeRefused})
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

// errVanishing is the error of a try that has used up its rounds.
var errVanishing = fmt.Errorf("%w: another client deletes the parent as fast as this one makes it; stop that client", ErrNoNode)

// noParent is the error of a create whose parent dir could not be made. The create of
// the node itself was not sent, and making a parent twice is as good as once.
func (o *ops) noParent(dir string, err error) error {
	fate := OutcomeNeverSent
	var ft *fault
	if errors.As(err, &ft) && ft.outcome == OutcomeRefused {
		fate = OutcomeRefused
	}
	var at *parentError
	if errors.As(err, &at) {
		dir = at.dir
	}
	what := "parent " + o.stripped(dir)
	if o.inNamespace(dir) {
		what = "the namespace"
	}
	return &fault{fmt.Errorf("make %s: %w", what, err), fate}
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
		return &fault{ErrNoNode, OutcomeRefused}
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
	return &parentError{dir, &fault{errVanishing, OutcomeRefused}}
}

// makeParent makes a missing parent. If spec asks for a container and the servers
// have none, it makes a persistent node, which the client removes later.
func (s *sessionState) makeParent(ctx context.Context, dir string, spec createSpec) error {
	if !spec.container {
		return s.call(ctx, &wire.Exchange{Request: spec.request(dir, nil)})
	}
	err := s.supports(ctx, containerNodes)
	spec.container = err == nil
	if err != nil && !errors.Is(err, ErrUnsupported) {
		return err
	}
	x := &wire.Exchange{Request: spec.request(dir, nil)}
	err = s.call(ctx, x)
	switch {
	case spec.container && errors.Is(s.refused(containerNodes, err), ErrUnsupported):
		return s.makeParent(ctx, dir, spec) // the node is remembered
	case err == nil && !spec.container:
		s.core.parents.Add(dir, x.Reply.Zxid)
	}
	return err
}
