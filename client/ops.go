package client

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/wire"
)

// read runs a read of op, and leaves a watch if watch is set. Without an error the
// exchange has been answered; with an error it is nil.
func (o *ops) read(ctx context.Context, name, path string, op wire.Op, watch bool) (x *wire.Exchange, w *OneShotWatch, err error) {
	err = o.do(ctx, name, path, reads, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		if watch {
			read, wait, err := t.s.hub.ReadOne(ctx, op, full)
			x, w = read, &OneShotWatch{wait: wait}
			return err
		}
		x = session.Ask(op, full)
		return t.s.Read(ctx, x)
	})
	if err != nil {
		return nil, nil, err
	}
	return x, w, nil
}

// Get returns the data and stat of a node.
func (o *ops) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	x, _, err := o.read(ctx, "get", path, wire.OpGetData, false)
	if err != nil {
		return nil, nil, err
	}
	return x.Reply.Data, stat(x), nil
}

// GetW is Get with a watch that fires when the data changes or the node is
// deleted. A node that does not exist leaves no watch behind.
func (o *ops) GetW(ctx context.Context, path string) ([]byte, *zk.Stat, *OneShotWatch, error) {
	x, w, err := o.read(ctx, "get", path, wire.OpGetData, true)
	if err != nil {
		return nil, nil, nil, err
	}
	return x.Reply.Data, stat(x), w, nil
}

// Exists reports whether a node exists, and its stat. The stat is never nil: it is zero
// if there is no node, as go-zookeeper's is, and after an error.
func (o *ops) Exists(ctx context.Context, path string) (bool, *zk.Stat, error) {
	x, _, err := o.read(ctx, "exists", path, wire.OpExists, false)
	found, stat := existing(x)
	return found, stat, err
}

// ExistsW is Exists with a watch that fires when the node is created, changed
// or deleted. On a node that never appears the watch stays on the server until
// [OneShotWatch.Stop], or for the life of the session.
func (o *ops) ExistsW(ctx context.Context, path string) (bool, *zk.Stat, *OneShotWatch, error) {
	x, w, err := o.read(ctx, "exists", path, wire.OpExists, true)
	found, stat := existing(x)
	return found, stat, w, err
}

// Children returns the names of a node's children, in no order, and its stat. The names
// share their memory: a name that is kept keeps that of the whole list, unless it is
// cloned with [strings.Clone].
func (o *ops) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	x, _, err := o.read(ctx, "children", path, wire.OpGetChildren, false)
	if err != nil {
		return nil, nil, err
	}
	return x.Reply.Names, stat(x), nil
}

// ChildrenW is Children with a watch that fires when a child is created or deleted,
// or when the node itself is deleted.
func (o *ops) ChildrenW(ctx context.Context, path string) ([]string, *zk.Stat, *OneShotWatch, error) {
	x, w, err := o.read(ctx, "children", path, wire.OpGetChildren, true)
	if err != nil {
		return nil, nil, nil, err
	}
	return x.Reply.Names, stat(x), w, nil
}

// Sync waits until the server that this client talks to has caught up with
// what the leader had committed when the call arrived there.
//
// It is no barrier against a leader. A leader answers before it has applied what it
// has just committed, and a leader that was deposed answers until it notices that
// (ZOOKEEPER-1675). A read after a write of this client has neither gap.
func (o *ops) Sync(ctx context.Context, path string) error {
	_, _, err := o.read(ctx, "sync", path, wire.OpSync, false)
	return err
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

// A SetOption changes what [Client.Set] does.
type SetOption func(*setSpec)

type setSpec struct{ equalIsMine bool }

// AcceptEqual lets a [Client.Set] with a version succeed after a lost answer if the
// node has the next version and the same bytes. Another client may have written these
// bytes. So it suits a value that is the same whichever client writes it, but neither
// counters nor ids.
func AcceptEqual() SetOption { return func(s *setSpec) { s.equalIsMine = true } }

// Set replaces the data of a node if it has the given version, and returns the
// new stat.
//
// After an unknown outcome the client tries again. With [AnyVersion] that may
// overwrite what another client wrote in between, as Curator's retry does. With a
// version nothing is written twice. But if the version has changed by then, the
// client cannot tell which client changed it. The error then matches [UnknownOutcome]
// and not [ErrBadVersion], unless [AcceptEqual] decides it.
func (o *ops) Set(ctx context.Context, path string, data []byte, version int32, opts ...SetOption) (now *zk.Stat, err error) {
	var spec setSpec
	for _, opt := range opts {
		if opt != nil {
			opt(&spec)
		}
	}
	err = o.do(ctx, "set", path, repeatable, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		x := &wire.Exchange{Request: wire.Request{Op: wire.OpSetData, Path: full, Data: data, Version: version}}
		err = t.s.conditional(ctx, x, t.unknown)
		if errors.Is(err, errMoved) && spec.equalIsMine {
			x = session.Ask(wire.OpGetData, full)
			if failed := t.s.Call(ctx, x); failed != nil {
				return failed
			}
			if x.Reply.Stat.Version == version+1 && bytes.Equal(x.Reply.Data, data) {
				err = nil
			}
		}
		if err == nil {
			now = stat(x)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return now, nil
}

// conditional sends a write that is refused if the version differs. unknown says that
// an earlier try may have been applied: a refusal says nothing then.
func (s *sessionState) conditional(ctx context.Context, x *wire.Exchange, unknown bool) error {
	err := s.Call(ctx, x)
	if unknown && errors.Is(err, zk.ErrBadVersion) {
		return fate.Unanswered(errMoved)
	}
	return err
}

// Delete deletes a node if it has the given version. A node with children is
// refused with [ErrNotEmpty]; see [Client.DeleteAll]. "/" and the servers' own
// nodes cannot be deleted.
//
// After an unknown outcome the client tries again. Then it counts as success if there
// is no node, and another version stays unknown, as with [Client.Set]. If another
// client makes a node in between at the same path, that node can be deleted: give a
// version, or delete only names that are never used twice.
func (o *ops) Delete(ctx context.Context, path string, version int32) error {
	return o.do(ctx, "delete", path, repeatable, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		if err := deletable(full); err != nil {
			return err
		}
		err = t.s.conditional(ctx, deletion(full, version), t.unknown)
		if t.unknown && errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	})
}

// GetACL returns the ACL and stat of a node.
func (o *ops) GetACL(ctx context.Context, path string) ([]zk.ACL, *zk.Stat, error) {
	x, _, err := o.read(ctx, "getACL", path, wire.OpGetACL, false)
	if err != nil {
		return nil, nil, err
	}
	return x.Reply.ACL, stat(x), nil
}

// SetACL replaces the ACL of a node if its ACL has the given version, and
// returns the new stat. After an unknown outcome the client tries again, as
// [Client.Set] does. An ACL without an entry is refused with [ErrInvalidACL].
func (o *ops) SetACL(ctx context.Context, path string, acl []zk.ACL, version int32) (now *zk.Stat, err error) {
	err = o.do(ctx, "setACL", path, repeatable, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		if len(acl) == 0 {
			return fate.Unsent(errEmptyACL)
		}
		x := &wire.Exchange{Request: wire.Request{Op: wire.OpSetACL, Path: full, ACL: acl, Version: version}}
		if err := t.s.conditional(ctx, x, t.unknown); err != nil {
			return err
		}
		now = stat(x)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return now, nil
}
