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

// AnyVersion means every version.
const AnyVersion int32 = -1

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

// stat is the stat in the answer to x, nil if there is no node.
func stat(x *wire.Exchange) *zk.Stat {
	if x == nil || x.Reply.Code != 0 {
		return nil
	}
	stat := x.Reply.Stat
	return &stat
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

// existing is what the answer to x says of a node, with a stat that is never nil.
func existing(x *wire.Exchange) (bool, *zk.Stat) {
	if now := stat(x); now != nil {
		return true, now
	}
	return false, new(zk.Stat)
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
func (o *ops) Sync(ctx context.Context, path string) error {
	_, _, err := o.read(ctx, "sync", path, wire.OpSync, false)
	return err
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
			if unread := t.s.Call(ctx, x); unread != nil {
				return unread
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

// deletable refuses nodes for which servers say only "invalid arguments"
// (ZKDatabase.isSpecialPath).
func deletable(full string) error {
	switch full {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return misused("servers do not let %s be deleted", full)
	default:
		return nil
	}
}

func deletion(full string, version int32) *wire.Exchange {
	return &wire.Exchange{Request: wire.Request{Op: wire.OpDelete, Path: full, Version: version}}
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

// names are the names that a list says, nil if there is no list or it failed.
func names(x *wire.Exchange) []string {
	if x == nil || !x.Answered() || x.Err() != nil || x.Reply.Code != 0 {
		return nil
	}
	return x.Reply.Names
}

// namesOrNone are names. If the directory is missing there are none.
func namesOrNone(x *wire.Exchange) []string {
	if x != nil && x.Answered() && errors.Is(fate.OfCode(x.Reply.Code), zk.ErrNoNode) {
		return []string{}
	}
	return names(x)
}

// statOf is the stat that a list came with, zero if there is no list or it failed.
func statOf(x *wire.Exchange) zk.Stat {
	if names(x) == nil {
		return zk.Stat{}
	}
	return x.Reply.Stat
}
