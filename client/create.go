package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// createSpec is what the options of a create say.
type createSpec struct {
	ephemeral, sequential, container bool
	ttl                              time.Duration
	hasTTL                           bool
	protected, parents               bool
	acl                              []zk.ACL
}

// A CreateOption configures a create; without any it makes a persistent node
// under an existing parent, with the client's default ACL.
type CreateOption interface{ applyCreate(*createSpec) }

type createFunc func(*createSpec)

func (f createFunc) applyCreate(s *createSpec) { f(s) }

// Ephemeral makes the node go with the session.
func Ephemeral() CreateOption { return createFunc(func(s *createSpec) { s.ephemeral = true }) }

// Sequential lets the server append a number of ten digits, which counts the
// creates under the parent.
func Sequential() CreateOption { return createFunc(func(s *createSpec) { s.sequential = true }) }

// Container makes a node that the server removes some time after its last
// child is gone.
func Container() CreateOption { return createFunc(func(s *createSpec) { s.container = true }) }

// TTL makes a node that the server removes when it has not been changed for
// d, in milliseconds, and has no children. Servers need
// extendedTypesEnabled=true for it.
func TTL(d time.Duration) CreateOption {
	return createFunc(func(s *createSpec) { s.ttl, s.hasTTL = d, true })
}

// Protected puts "_c_<uuid>-" in front of the last part of the path, as
// Curator does, so that a create whose answer was lost is recognised instead
// of repeated, and removed if the caller gives up.
func Protected() CreateOption { return createFunc(func(s *createSpec) { s.protected = true }) }

// WithParents creates missing parents as empty container nodes with the ACL
// of the node itself, as Curator's creatingParentContainersIfNeeded does.
func WithParents() CreateOption { return createFunc(func(s *createSpec) { s.parents = true }) }

// ACL sets the node's ACL instead of the client's default.
func ACL(acl ...zk.ACL) CreateOption {
	return createFunc(func(s *createSpec) { s.acl = acl })
}

func (o *ops) spec(opts []CreateOption) (createSpec, error) {
	var s createSpec
	for _, opt := range opts {
		if opt != nil {
			opt.applyCreate(&s)
		}
	}
	if s.acl == nil {
		s.acl = o.core.cfg.acl()
	}
	var why string
	switch {
	case s.container && (s.ephemeral || s.sequential || s.hasTTL):
		why = "a container is neither ephemeral nor sequential and has no TTL"
	case s.hasTTL && s.ttl < time.Millisecond:
		why = fmt.Sprintf("TTL %v is less than a millisecond", s.ttl)
	case s.hasTTL && s.ephemeral:
		why = "an ephemeral node has no TTL"
	default:
		return s, nil
	}
	return s, &fault{fmt.Errorf("%w: %s", zk.ErrInvalidFlags, why), OutcomeNeverSent}
}

// send is the create as go-zookeeper wants it: it has a call and an opcode of
// its own for containers and for TTL nodes, and takes Create with the
// container flag for a plain persistent node.
func (spec createSpec) send(full string, data []byte) func(*zk.Conn) (string, error) {
	data = notNull(data)
	return func(c *zk.Conn) (string, error) {
		switch {
		case spec.container:
			return c.CreateContainer(full, data, zk.FlagContainer, spec.acl)
		case spec.hasTTL && spec.sequential:
			return c.CreateTTL(full, data, zk.FlagPersistentSequentialWithTTL, spec.acl, spec.ttl)
		case spec.hasTTL:
			return c.CreateTTL(full, data, zk.FlagTTL, spec.acl, spec.ttl)
		default:
			return c.Create(full, data, spec.flags(), spec.acl)
		}
	}
}

// notNull keeps go-zookeeper from sending nil as null, which is not the same
// as no bytes to those who read it: Java's getData would return null.
func notNull(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

func (spec createSpec) flags() int32 {
	var flags int32
	if spec.ephemeral {
		flags |= zk.FlagEphemeral
	}
	if spec.sequential {
		flags |= zk.FlagSequence
	}
	return flags
}

func (spec createSpec) size() int {
	n := 0
	for _, a := range spec.acl {
		n += len(a.Scheme) + len(a.ID) + 12
	}
	return n
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
// Anything else that fails has made no node of this name; parents made by
// [WithParents] stay, and the server removes them.
func (o *ops) Create(ctx context.Context, path string, data []byte, opts ...CreateOption) (created string, err error) {
	spec, err := o.spec(opts)
	if err != nil {
		return "", &OpError{Op: "create", Path: path, Outcome: OutcomeNeverSent, Err: err}
	}
	if spec.protected {
		e, err := o.protected(ctx, path, data, spec, false, "")
		return e.Path, err
	}
	err = o.do(ctx, "create", path, once, func(ctx context.Context, t try) error {
		full, err := o.creatable(path, data, spec)
		if err != nil {
			return err
		}
		return o.withParents(ctx, t.s, full, spec, func() error {
			name, err := call(ctx, t.s, spec.send(full, data))
			created = o.stripped(name)
			return err
		})
	})
	if err != nil {
		return "", err
	}
	return created, nil
}

// creatable maps and checks path. The part that a sequential create extends
// may be empty.
func (o *ops) creatable(path string, data []byte, spec createSpec) (string, error) {
	checked := path
	if spec.sequential {
		checked += "0000000000"
	}
	full, err := o.full(checked)
	if err != nil {
		return "", err
	}
	full = full[:len(full)-(len(checked)-len(path))]
	return full, o.fits(len(full) + len(data) + spec.size())
}

// parentRounds bounds how often a vanishing parent is made anew for one
// create; a reaper cannot be that fast, an ACL or a race of operators can.
const parentRounds = 16

// withParents runs create, making missing parents as often as needed: the
// server may reap a container between its creation and its first child.
func (o *ops) withParents(ctx context.Context, s *session, full string, spec createSpec, create func() error) error {
	for round := 0; ; round++ {
		err := create()
		if !spec.parents || round == parentRounds || !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		dir, _ := split(full)
		if err := o.makeContainers(ctx, s, dir, spec.acl); err != nil {
			return o.noParent(dir, err)
		}
	}
}

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

// makeContainers creates dir and what is missing above it, asking for the
// deepest first: the usual case is that only that one is missing.
func (o *ops) makeContainers(ctx context.Context, s *session, dir string, acl []zk.ACL) error {
	if dir == "/" {
		return &fault{zk.ErrNoNode, OutcomeRefused}
	}
	spec := createSpec{container: true, acl: acl}
	for range parentRounds {
		_, err := call(ctx, s, spec.send(dir, nil))
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists):
			return nil
		case !errors.Is(err, zk.ErrNoNode):
			return err
		}
		up, _ := split(dir)
		if err := o.makeContainers(ctx, s, up, acl); err != nil {
			return err
		}
	}
	return &fault{zk.ErrNoNode, OutcomeRefused}
}
