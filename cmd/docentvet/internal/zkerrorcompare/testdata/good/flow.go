package good // want package:"bare .*recipes.ErrBusy"

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/client/zkconn"
	"github.com/docent-go/docent/cmd/docentvet/internal/zkerrorcompare/testdata/helper"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/discovery"
)

// conn is what the package needs of a connection. zk.Conn has it, and zkconn.Conn.
type conn interface {
	Get(path string) ([]byte, *zk.Stat, error)
	Delete(path string, version int32) error
}

var _, _ conn = (*zk.Conn)(nil), (*zkconn.Conn)(nil)

func called(c conn) bool {
	_, _, err := c.Get("/n")
	switch err {
	case zk.ErrNoNode:
		return false
	}
	return err == zk.ErrNoAuth || c.Delete("/n", -1) == zk.ErrNotEmpty
}

// remover is what a client has, and what a test gives instead of it.
type remover interface {
	Delete(ctx context.Context, path string, version int32) error
}

var _ remover = (*client.Client)(nil)

func removed(ctx context.Context, c remover) bool { return c.Delete(ctx, "/n", -1) == zk.ErrNoNode }

func param[C conn](c C) bool {
	err := c.Delete("/n", -1)
	return err == zk.ErrNoNode
}

// Missing is asked by other packages.
func Missing(err error) bool { return err == zk.ErrNoNode || err == client.ErrNoNode }

func given(err error) bool { return err == zk.ErrNoNode }

func both(ctx context.Context, c *client.Client, raw conn) bool {
	return given(raw.Delete("/n", -1)) || given(c.Delete(ctx, "/n", -1))
}

func aValue(err error) bool { return err == zk.ErrNoNode }

func passed(ctx context.Context, c *client.Client, use func(func(error) bool)) bool {
	use(aValue)
	return aValue(c.Delete(ctx, "/n", -1))
}

type ender interface{ end(error) bool }

type waiter struct{}

func (waiter) end(err error) bool { return err == zk.ErrNoNode }

func ends(ctx context.Context, c *client.Client, e ender, raw conn) bool {
	return e.end(raw.Delete("/n", -1)) || waiter{}.end(c.Delete(ctx, "/n", -1))
}

type store struct {
	conn conn
	call func() error
	last error
	// Failed is given by others, too.
	Failed error
}

func (s *store) held(ctx context.Context, c *client.Client) bool {
	s.last = s.conn.Delete("/n", -1)
	if s.Failed == nil {
		s.Failed = c.Delete(ctx, "/n", -1)
		s.last = c.Delete(ctx, "/n", -1)
	}
	return s.last == zk.ErrNoNode || s.Failed == zk.ErrNoNode || s.call() == zk.ErrNoNode
}

type filled struct{ err error }

func fill(into *error) { *into = zk.ErrNoNode }

func (f *filled) asked(ctx context.Context, c *client.Client) bool {
	f.err = c.Delete(ctx, "/n", -1)
	fill(&f.err)
	err := c.Delete(ctx, "/n", -1)
	fill(&err)
	return f.err == zk.ErrNoNode || err == zk.ErrNoNode
}

func closure(ctx context.Context, c *client.Client, raw conn) (err error) {
	defer func() {
		if err == zk.ErrNoNode {
			err = nil
		}
	}()
	if raw != nil {
		return raw.Delete("/n", -1)
	}
	return c.Delete(ctx, "/n", -1)
}

// The value is taken out of what wraps it.
func unwrapped(ctx context.Context, c *client.Client) bool {
	err := c.Delete(ctx, "/n", -1)
	var op *client.OpError
	if errors.As(err, &op) && op.Err == zk.ErrNoNode {
		return true
	}
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err == zk.ErrNoNode || context.Cause(ctx) == client.ErrSessionLost
}

// plain takes the wrapper off.
func plain(err error) error {
	for _, known := range []error{zk.ErrNoNode, zk.ErrNotEmpty} {
		if errors.Is(err, known) {
			return known
		}
	}
	if errors.Is(err, recipes.ErrBusy) {
		return recipes.ErrBusy
	}
	return err
}

func plainly(ctx context.Context, c *client.Client, lock *recipes.InterProcessMutex) bool {
	err := c.Delete(ctx, "/n", -1)
	if errors.Is(err, zk.ErrNoNode) {
		err = zk.ErrNoNode
	}
	hold, busy := lock.TryAcquire(ctx)
	if busy == nil {
		busy = hold.Close()
	}
	return err == zk.ErrNoNode || plain(err) == zk.ErrNotEmpty || plain(busy) == recipes.ErrBusy
}

func busy(err error) bool { return err == recipes.ErrBusy } // plain may have returned it

func far(ctx context.Context, c *client.Client, raw *zk.Conn, s *helper.Store) bool {
	return helper.Either(ctx, c, raw) == zk.ErrNoNode || s.Plain(ctx) == zk.ErrNoNode
}

// The function's own error comes out of a Do as it is.
func done(ctx context.Context, raw conn, lock *recipes.InterProcessMutex, work func(context.Context, *recipes.Hold) error) bool {
	err := lock.Do(ctx, func(context.Context, *recipes.Hold) error { return raw.Delete("/n", -1) })
	return err == zk.ErrNoNode || lock.Do(ctx, work) == zk.ErrNoNode
}

// These are returned as they are.
func bare(ctx context.Context, c *client.Client, t *cache.Tree[string], p *discovery.ServiceProvider, hold *recipes.Hold) bool {
	call, err := p.Pick(ctx)
	if err == nil {
		call.Done(nil)
	}
	return err == discovery.ErrClosed || t.Start(ctx) == cache.ErrClosed || hold.Err() == recipes.ErrReleased ||
		c.SetServers("a") == client.ErrClosed
}

// A test has a hold of its own.
func released(ctx context.Context, hold recipes.AnyHold) bool {
	return hold.Release(ctx) == client.ErrSessionLost
}

func received(ctx context.Context, c *client.Client, raw conn) bool {
	failed := make(chan error, 2)
	go func() { failed <- raw.Delete("/n", -1) }()
	go func() { failed <- c.Delete(ctx, "/n", -1) }()
	select {
	case err := <-failed:
		return err == zk.ErrNoNode
	case <-ctx.Done():
		return false
	}
}

func wrapped(raw conn) bool {
	err := fmt.Errorf("delete: %w", raw.Delete("/n", -1))
	return err == zk.ErrNoNode
}

// ErrNoNode is the package's own.
var ErrNoNode = errors.New("no node")

func own(ctx context.Context, c *client.Client) bool {
	err := c.Delete(ctx, "/n", -1)
	return err == ErrNoNode || err == context.Canceled
}
