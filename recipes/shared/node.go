package shared

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
)

// Versioned is a value at one moment.
type Versioned[T any] struct {
	Value   T
	Version int32 // of the node: how often it was set since it was made

	// The node that was read, and its newest write. A node that is made again
	// begins with the same versions as the deleted one.
	czxid, mzxid int64
}

// node is a node that holds a value of type T.
type node[T any] struct {
	settings

	kind kind[T]
	c    *client.Client
	path string
}

// newNode checks what the constructors of the package have in common.
func newNode[T any, O AtomicOption](c *client.Client, path string, kind kind[T], opts []O) (node[T], error) {
	if c == nil {
		return node[T]{}, errors.New("shared: the client is nil; make one with client.Connect")
	}
	if path == "/" {
		return node[T]{}, fmt.Errorf(`shared: the path of the %s is "/"; give it a node of its own, like "/counts/workers"`, kind.name)
	}
	if _, err := inner.ServerPath(c, path); err != nil {
		return node[T]{}, fmt.Errorf("shared: path of the %s: %w", kind.name, err)
	}
	set, err := newSettings(opts)
	if err != nil {
		return node[T]{}, fmt.Errorf("shared: %w", err)
	}
	return node[T]{settings: set, kind: kind, c: c, path: path}, nil
}

func (n *node[T]) parse(data []byte, stat *zk.Stat) (Versioned[T], error) {
	now := Versioned[T]{Version: stat.Version, czxid: stat.Czxid, mzxid: stat.Mzxid}
	if err := n.kind.wanted(n.path, len(data)); err != nil {
		return now, err
	}
	now.Value = n.kind.decode(data)
	return now, nil
}

func (n *node[T]) create(ctx context.Context, data []byte) error {
	_, err := n.c.Create(ctx, n.path, data, append(n.createOptions(), n.parents())...)
	return err
}

// mayExist says that after a create which failed with err the caller should
// look again.
func mayExist(err error) bool {
	return errors.Is(err, zk.ErrNodeExists) || client.UnknownOutcome(err)
}

// set sets the value, whatever it was, and makes a missing node with it.
func (n *node[T]) set(ctx context.Context, v T) error {
	data := n.kind.encode(v)
	for {
		there, stat, err := n.c.Exists(ctx, n.path)
		if err != nil {
			return err
		}
		if !there {
			if err := n.create(ctx, data); err == nil || !mayExist(err) || ctx.Err() != nil {
				return err
			}
			continue
		}
		if err := n.kind.wanted(n.path, int(stat.DataLength)); err != nil {
			return err
		}
		if _, err := n.c.Set(ctx, n.path, data, client.AnyVersion); !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
}

// ended is the error of ctx, which has ended. If there is no connection, it says why.
func (n *node[T]) ended(ctx context.Context) error {
	if _, err := n.c.Session(ctx); errors.Is(err, client.ErrNotConnected) {
		return err
	}
	return ctxerr.Ended(ctx)
}

// failed is the error of an operation of which the outcome is known to that extent,
// whatever is known of the requests that prepare it.
func (n *node[T]) failed(op string, outcome client.Outcome, err error) error {
	return &client.OpError{Op: op, Path: n.path, Outcome: outcome, Err: err}
}
