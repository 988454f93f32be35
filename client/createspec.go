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
// does not create another. If the caller gives up, the client removes the node. With
// [Sequential], sort such names by their last ten digits: the uuid stands before these.
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
	return s, s.kind()
}

// kind refuses kinds of nodes that there are not.
func (spec *createSpec) kind() error {
	switch {
	case spec.container && (spec.ephemeral || spec.sequential || spec.hasTTL):
		return misused("Container is not possible with Ephemeral, Sequential or TTL")
	case spec.hasTTL && spec.ephemeral:
		return misused("TTL is not possible with Ephemeral")
	case spec.hasTTL && (spec.ttl < time.Millisecond || spec.ttl > longestTTL):
		return misused("TTL(%v) is out of range: servers take 1ms to %v", spec.ttl, longestTTL)
	default:
		return nil
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
