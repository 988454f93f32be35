package client

import (
	"context"
	"errors"
	"fmt"
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

// parentKind is what becomes of missing parents: the option that says so.
type parentKind string

const (
	parentsMustExist  parentKind = ""
	parentsContainers parentKind = "WithParents"
	parentsPersistent parentKind = "WithPersistentParents"
)

// longestTTL is what ZooKeeper has room for (EphemeralType.TTL), 40 bits of
// milliseconds.
const longestTTL = (1<<40 - 1) * time.Millisecond

// A CreateOption configures a create; without any it makes a persistent node
// under an existing parent, with the client's default ACL.
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

// TTL makes a node that the server removes when it has not been changed for
// d, from a millisecond to some 34 years, and has no children. Servers need
// extendedTypesEnabled=true for it, or it fails with [ErrUnsupported].
func TTL(d time.Duration) CreateOption {
	return func(s *createSpec) { s.ttl, s.hasTTL = d, true }
}

// Protected puts "_c_<uuid>-" in front of the last part of the path, as
// Curator does, so that a create whose answer was lost is recognised instead
// of repeated, and removed if the caller gives up.
func Protected() CreateOption { return func(s *createSpec) { s.protected = true } }

// WithParents creates missing parents as empty container nodes, as Curator's
// creatingParentContainersIfNeeded does: the server removes each some time after
// its last child is gone. They get the client's default ACL; [ParentACL] gives
// them another.
//
// On servers without containers (ClickHouse Keeper, and Apache ZooKeeper before
// 3.5.1) the parents are persistent nodes. The client that made them removes them
// when they are empty, within about a session timeout, and when it is closed. It
// leaves those that others still use then.
func WithParents() CreateOption {
	return func(s *createSpec) { s.parents = parentsContainers }
}

// WithPersistentParents is [WithParents] with persistent nodes, as Curator's
// creatingParentsIfNeeded makes them: they stay until a client deletes them. Of
// both options the last one given counts.
func WithPersistentParents() CreateOption {
	return func(s *createSpec) { s.parents = parentsPersistent }
}

// ACL sets the node's ACL. It replaces the client's default, that of
// [WithDefaultACL] or [WithAuth], and adds nothing to it. Without an entry the
// create is refused with [ErrInvalidACL].
func ACL(acl ...zk.ACL) CreateOption {
	return func(s *createSpec) { s.acl = append([]zk.ACL{}, acl...) }
}

// ParentACL sets the ACL of the parents that [WithParents] or
// [WithPersistentParents] makes, and replaces the client's default likewise.
// Without an entry the create is refused with [ErrInvalidACL].
func ParentACL(acl ...zk.ACL) CreateOption {
	return func(s *createSpec) { s.parentACL = append([]zk.ACL{}, acl...) }
}

// errEmptyACL refuses what would be taken for no ACL at all.
var errEmptyACL = fmt.Errorf("%w: it has no entry", ErrInvalidACL)

func (o *ops) spec(opts []CreateOption) (createSpec, error) {
	var s createSpec
	for _, opt := range opts {
		if opt != nil {
			opt(&s)
		}
	}
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

// needs is the feature that the create takes, if it takes one.
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

// request is the create as a server wants it: containers and TTL nodes have a
// type of their own.
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
// With [Protected], a lost answer is resolved by looking for the node, after a
// Sync and with a check of its owner, before trying again; if the call fails
// after all, a node that it may have made is removed in the background, until
// that succeeds, the node's session is over or the client is closed.
// Without, a create whose outcome is unknown is not repeated: the error
// matches [UnknownOutcome], and whether the node exists must be looked up.
// Anything else that fails has made no node of this name; parents that were made
// stay, and the server removes those that are containers.
func (o *ops) Create(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, error) {
	return o.createOne(ctx, path, data, nil, opts)
}

// createOne is Create, and tells the stat of the node if stat is not nil.
func (o *ops) createOne(ctx context.Context, path string, data []byte, stat *zk.Stat, opts []CreateOption) (string, error) {
	spec, err := o.spec(opts)
	if err != nil {
		return "", o.invalid(ctx, "create", path, err)
	}
	full, err := o.creatable(path, spec)
	if err != nil {
		return "", o.invalid(ctx, "create", path, err)
	}
	n := attemptNode{in: o, spec: spec, data: data, stat: stat}
	n.dir, n.name = split(full)
	a := &attempt{ops: o, nodes: []attemptNode{n}, single: true}
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
	if spec.sequential {
		checked += "0000000000"
	}
	full, err := o.full(checked)
	if err != nil {
		return "", err
	}
	return full[:len(full)-(len(checked)-len(path))], nil
}

// parentRounds bounds how often a parent that vanishes is made again for one
// create, as the server may reap a container before it has its first child. A
// reaper cannot be that fast, an ACL or a race of operators can.
const parentRounds = 16

// noParent is a failure to make dir. Of the node itself nothing was sent, and
// making a parent twice is as good as once.
func (o *ops) noParent(dir string, err error) error {
	fate := OutcomeNeverSent
	var ft *fault
	if errors.As(err, &ft) && ft.outcome == OutcomeRefused {
		fate = OutcomeRefused
	}
	return &fault{fmt.Errorf("make parent %s: %w", o.stripped(dir), err), fate}
}

// makeParents creates dir and what is missing above it, asking for the
// deepest first: the usual case is that only that one is missing.
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
			return err
		}
		up, _ := split(dir)
		if err := o.makeParents(ctx, s, up, of); err != nil {
			return err
		}
	}
	return &fault{ErrNoNode, OutcomeRefused}
}
