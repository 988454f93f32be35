package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// AnyVersion stands for every version.
const AnyVersion int32 = -1

// ops are the operations of a [Client], in whatever session is current, and
// of a [Session], in that one or not at all.
//
// An operation is tried again by the retry policy, within its context, when
// nothing of it reached a server or when repeating it is harmless; what is
// done after an unknown outcome is said at each. Errors are [*OpError].
type ops struct {
	core   *core
	prefix string   // chroot and namespace, "" or an absolute path
	bound  *session // nil: any
}

// full maps a path of the caller to the server's.
func (o *ops) full(path string) (string, error) {
	if err := ValidatePath(path); err != nil {
		return "", &fault{err, OutcomeNeverSent}
	}
	mapped := path
	switch {
	case o.prefix != "" && path == "/":
		mapped = o.prefix
	case o.prefix != "":
		mapped = o.prefix + path
	}
	return mapped, o.fits(len(mapped))
}

// stripped maps a path of the server to the caller's.
func (o *ops) stripped(full string) string {
	if s := strings.TrimPrefix(full, o.prefix); s != "" {
		return s
	}
	return "/"
}

func validNamespace(name string) error {
	if err := ValidatePath("/" + name); err != nil || name == "" {
		return fmt.Errorf("client: namespace %q: it is one or more path parts without a leading \"/\"", name)
	}
	return nil
}

// Namespace returns a client for the same session whose paths are all under
// name, below this client's own namespace. What is missing of it is created,
// as containers, with the first node that asks for its parents. Closing
// either closes both.
func (c *Client) Namespace(name string) (*Client, error) {
	if err := validNamespace(name); err != nil {
		return nil, err
	}
	return &Client{ops{core: c.core, prefix: c.prefix + "/" + name}}, nil
}

type dataStat struct {
	data []byte
	stat *zk.Stat
}

func getData(path string) func(*zk.Conn) (dataStat, error) {
	return func(c *zk.Conn) (dataStat, error) {
		data, stat, err := c.Get(path)
		return dataStat{data, stat}, err
	}
}

func exists(path string) func(*zk.Conn) (*zk.Stat, error) {
	return func(c *zk.Conn) (*zk.Stat, error) {
		ok, stat, err := c.Exists(path)
		if !ok {
			stat = nil
		}
		return stat, err
	}
}

type childrenStat struct {
	names []string
	stat  *zk.Stat
}

func children(path string) func(*zk.Conn) (childrenStat, error) {
	return func(c *zk.Conn) (childrenStat, error) {
		names, stat, err := c.Children(path)
		return childrenStat{names, stat}, err
	}
}

// read runs one of the reads above, with a watch of the given kind if watch
// is set.
func read[T any](ctx context.Context, o *ops, op, path string, kind wire.WatchKind, watch bool, f func(path string) func(*zk.Conn) (T, error)) (v T, w *Watch, err error) {
	err = o.do(ctx, op, path, reads, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		if watch {
			v, w, err = watched(ctx, t.s, kind, full, f(full))
		} else {
			v, err = call(ctx, t.s, f(full))
		}
		return err
	})
	return v, w, err
}

// Get returns the data and stat of a node.
func (o *ops) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	v, _, err := read(ctx, o, "get", path, wire.DataWatch, false, getData)
	return v.data, v.stat, err
}

// GetW is Get with a watch that fires when the data changes or the node is
// deleted. A node that does not exist leaves no watch behind.
func (o *ops) GetW(ctx context.Context, path string) ([]byte, *zk.Stat, *Watch, error) {
	v, w, err := read(ctx, o, "get", path, wire.DataWatch, true, getData)
	return v.data, v.stat, w, err
}

// Exists reports whether a node exists, and its stat if it does.
func (o *ops) Exists(ctx context.Context, path string) (bool, *zk.Stat, error) {
	stat, _, err := read(ctx, o, "exists", path, wire.ExistsWatch, false, exists)
	return stat != nil, stat, err
}

// ExistsW is Exists with a watch that fires when the node is created, changed
// or deleted. On a node that never appears the watch stays on the server for
// the life of the session: prefer [Client.GetW] where the node is known.
func (o *ops) ExistsW(ctx context.Context, path string) (bool, *zk.Stat, *Watch, error) {
	stat, w, err := read(ctx, o, "exists", path, wire.ExistsWatch, true, exists)
	return stat != nil, stat, w, err
}

// Children returns the names of a node's children, in no order, and its stat.
func (o *ops) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	v, _, err := read(ctx, o, "children", path, wire.ChildWatch, false, children)
	return v.names, v.stat, err
}

// ChildrenW is Children with a watch that fires when a child is created or
// deleted, or the node itself deleted.
func (o *ops) ChildrenW(ctx context.Context, path string) ([]string, *zk.Stat, *Watch, error) {
	v, w, err := read(ctx, o, "children", path, wire.ChildWatch, true, children)
	return v.names, v.stat, w, err
}

// Sync waits until the server that this client talks to has caught up with
// what the leader had committed when the call arrived there.
func (o *ops) Sync(ctx context.Context, path string) error {
	return o.do(ctx, "sync", path, reads, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		return syncOn(ctx, t.s, full)
	})
}

func syncOn(ctx context.Context, s *session, full string) error {
	_, err := call(ctx, s, func(c *zk.Conn) (string, error) { return c.Sync(full) })
	return err
}

// Set replaces the data of a node if it has the given version.
//
// After an unknown outcome it is tried again. With a version that is safe: if
// the first try turns out to have been applied, by its version and its bytes,
// the call succeeds. With [AnyVersion] it may overwrite what somebody else
// wrote in between, as Curator's retry does.
func (o *ops) Set(ctx context.Context, path string, data []byte, version int32) (stat *zk.Stat, err error) {
	err = o.do(ctx, "set", path, repeatable, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		if err := o.fits(len(full) + len(data)); err != nil {
			return err
		}
		stat, err = call(ctx, t.s, func(c *zk.Conn) (*zk.Stat, error) { return c.Set(full, notNull(data), version) })
		if t.again && version != AnyVersion && errors.Is(err, zk.ErrBadVersion) {
			stat, err = ownWrite(ctx, t.s, full, data, version, err)
		}
		return err
	})
	return stat, err
}

// ownWrite tells whether a set that is refused with refusal was applied by an
// earlier try, whose answer was lost.
func ownWrite(ctx context.Context, s *session, full string, data []byte, version int32, refusal error) (*zk.Stat, error) {
	now, err := call(ctx, s, getData(full))
	var ft *fault
	switch {
	case err == nil && now.stat.Version == version+1 && bytes.Equal(now.data, data):
		return now.stat, nil
	case errors.As(err, &ft) && ft.outcome != OutcomeRefused:
		return nil, err // not known yet
	default:
		return nil, refusal
	}
}

// Delete deletes a node if it has the given version; a node with children is
// refused with [zk.ErrNotEmpty].
//
// After an unknown outcome it is tried again, and finding no node then counts
// as success. Somebody who creates the same path anew in between can lose it:
// give a version, or delete only names that are never used twice.
func (o *ops) Delete(ctx context.Context, path string, version int32) error {
	return o.do(ctx, "delete", path, repeatable, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		err = deleteOn(ctx, t.s, full, version)
		if t.again && errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	})
}

func deleteOn(ctx context.Context, s *session, full string, version int32) error {
	_, err := call(ctx, s, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(full, version) })
	return err
}

// GetACL returns the ACL and stat of a node.
func (o *ops) GetACL(ctx context.Context, path string) ([]zk.ACL, *zk.Stat, error) {
	type aclStat struct {
		acl  []zk.ACL
		stat *zk.Stat
	}
	v, _, err := read(ctx, o, "getACL", path, wire.DataWatch, false, func(full string) func(*zk.Conn) (aclStat, error) {
		return func(c *zk.Conn) (aclStat, error) {
			acl, stat, err := c.GetACL(full)
			return aclStat{acl, stat}, err
		}
	})
	return v.acl, v.stat, err
}

// SetACL replaces the ACL of a node if its ACL has the given version. After
// an unknown outcome it is tried again; with a version the second try may be
// refused with [zk.ErrBadVersion] because the first was applied.
func (o *ops) SetACL(ctx context.Context, path string, acl []zk.ACL, version int32) (stat *zk.Stat, err error) {
	err = o.do(ctx, "setACL", path, repeatable, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		if err := o.fits(len(full) + createSpec{acl: acl}.size()); err != nil {
			return err
		}
		stat, err = call(ctx, t.s, func(c *zk.Conn) (*zk.Stat, error) { return c.SetACL(full, acl, version) })
		return err
	})
	return stat, err
}

// frameOverhead bounds what a request's frame holds besides paths, data and
// ACLs: header, lengths, flags, version.
const frameOverhead = 128

// fits refuses what a server would answer by dropping the connection, and
// with it everybody's requests.
func (o *ops) fits(size int) error {
	if size += frameOverhead; size > o.core.cfg.maxRequest {
		return &fault{fmt.Errorf("%w: %d bytes, limit %d; raise jute.maxbuffer on the servers and WithMaxRequest here, or store less",
			ErrTooLarge, size, o.core.cfg.maxRequest), OutcomeNeverSent}
	}
	return nil
}
