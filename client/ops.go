package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
	"github.com/docent-go/docent/retry"
)

// AnyVersion means every version.
const AnyVersion int32 = -1

// ops are the operations of a [Client] and of a [Session]. Operations of a Client
// run in the current session, whichever that is. Operations of a Session run in
// that session or not at all.
//
// When nothing of an operation reached a server, or repeating it is harmless, the client
// tries it again by the retry policy, within its context. Each operation says what
// happens after an unknown outcome. Errors are [*OpError].
type ops struct {
	core    *core
	prefix  string        // chroot and namespace, "" or an absolute path
	session *sessionState // in which the operations run; nil: the current one
	policy  *retry.Policy // of the operations; nil: that of the client
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
	return mapped, nil
}

// stripped maps a path of the server to the caller's.
func (o *ops) stripped(full string) string {
	if s := strings.TrimPrefix(full, o.prefix); s != "" {
		return s
	}
	return "/"
}

// inNamespace reports whether dir, the full path of a parent, is a node of the
// namespace itself or above it, and not below.
func (o *ops) inNamespace(dir string) bool {
	return len(o.prefix) > len(o.core.cfg.chroot) && len(dir) <= len(o.prefix)
}

func validNamespace(name string) error {
	if err := ValidatePath("/" + name); err != nil || name == "" {
		return fmt.Errorf("client: namespace %q: it is one or more path parts without a leading \"/\"", name)
	}
	return nil
}

// Namespace returns a client for the same session whose paths are all under name,
// below this client's own namespace. Missing nodes of the namespace are made on first
// use, see [WithNamespace]. Closing either client closes both.
func (c *Client) Namespace(name string) (*Client, error) {
	if err := validNamespace(name); err != nil {
		return nil, err
	}
	sub := &Client{c.ops}
	sub.prefix += "/" + name
	return sub, nil
}

// Retrying returns a client for the same session whose calls are tried again by p, in
// place of the policy of [WithRetry]. So one call can fail soon while another waits
// for a server as long as its context allows:
//
//	_, _, err := c.Retrying(retry.None()).Get(ctx, path)
//	_, _, err = c.Retrying(retry.Default()).Get(ctx, path)
//
// p also bounds the wait for a connection, and its pauses have the same cap. Namespaces
// and sessions that come from the copy have its policy. Closing either client closes
// both.
func (c *Client) Retrying(p retry.Policy) *Client {
	if c.core.cfg.hasRand {
		p = p.WithRand(c.core.cfg.rand)
	}
	twin := &Client{c.ops}
	twin.policy = &p
	return twin
}

// patience is that of one call. A pause is capped, so that a session survives it.
func (o *ops) patience() patience {
	p := o.core.cfg.policy
	if o.policy != nil {
		p = *o.policy
	}
	return patience{policy: p.WithCap(o.core.servers.Timeout() / 3)}
}

// read runs a read of op, and leaves a watch if watch is set. Without an error the
// exchange has been answered; with an error it is nil.
func (o *ops) read(ctx context.Context, name, path string, op wire.Op, watch bool) (x *wire.Exchange, w *OneShotWatch, err error) {
	err = o.do(ctx, name, path, reads, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		if watch {
			read, on, err := t.s.watchedOne(ctx, op, full)
			x, w = read, &OneShotWatch{hub: t.s.hub, on: on}
			return err
		}
		x = asked(op, full)
		return t.s.read(ctx, x)
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
			x = asked(wire.OpGetData, full)
			if unread := t.s.call(ctx, x); unread != nil {
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
	err := s.call(ctx, x)
	if unknown && errors.Is(err, zk.ErrBadVersion) {
		return &fault{errMoved, OutcomeUnknown}
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
			return &fault{errEmptyACL, OutcomeNeverSent}
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
