package bad

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/cmd/docentvet/internal/zkerrorcompare/testdata/helper"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/discovery"
)

func either(ctx context.Context, c *client.Client, deep bool) bool {
	var err error
	if deep {
		_, _, err = c.Children(ctx, "/n")
	} else {
		err = c.Delete(ctx, "/n", -1)
	}
	return err == zk.ErrNoNode // want `err == zk.ErrNoNode misses`
}

// The error of the connection is another one, which the same variable had before.
func later(ctx context.Context, c *client.Client, raw *zk.Conn) bool {
	err := raw.Delete("/n", -1)
	if err == zk.ErrNoNode {
		return true
	}
	err = c.Delete(ctx, "/n", -1)
	return err == zk.ErrNoNode // want `err == zk.ErrNoNode misses`
}

func wrapped(ctx context.Context, c *client.Client) bool {
	err := c.Delete(ctx, "/n", -1)
	if err != nil {
		err = fmt.Errorf("delete: %w", err)
	}
	joined := errors.Join(err, errors.New("more"))
	return err == zk.ErrNoNode || // want `err == zk.ErrNoNode misses`
		joined == client.ErrNoNode // want `joined == client.ErrNoNode misses`
}

type job struct {
	c   *client.Client
	err error
}

func (j *job) run(ctx context.Context) { j.err = j.c.Delete(ctx, "/n", -1) }

func (j *job) gone() bool { return j.err == zk.ErrNoNode } // want `j.err == zk.ErrNoNode misses`

func made(ctx context.Context, c *client.Client) bool {
	return (job{err: c.Delete(ctx, "/n", -1)}).err != zk.ErrNoNode // want `misses`
}

func remove(ctx context.Context, c *client.Client) (n int, err error) {
	defer func() { log.Print(err) }()
	err = c.Delete(ctx, "/n", -1)
	return 1, err
}

func helped(ctx context.Context, c *client.Client) bool {
	_, err := remove(ctx, c)
	return err == zk.ErrNoNode // want `err == zk.ErrNoNode misses`
}

func far(ctx context.Context, c *client.Client, s *helper.Store) string {
	if _, err := helper.Read(ctx, c); err == zk.ErrNoNode { // want `err == zk.ErrNoNode misses`
		return "none"
	}
	switch s.Delete(ctx) { // want `so case zk.ErrNotEmpty misses`
	case zk.ErrNotEmpty:
		return "full"
	}
	return ""
}

func gone(err error) bool { return err == zk.ErrNoNode } // want `err == zk.ErrNoNode misses`

func asked(ctx context.Context, c *client.Client) bool { return gone(c.Delete(ctx, "/n", -1)) }

func closure(ctx context.Context, c *client.Client) (err error) {
	defer func() {
		if err == zk.ErrNoNode { // want `err == zk.ErrNoNode misses`
			err = nil
		}
	}()
	try := func() error { return c.Delete(ctx, "/n", -1) }
	if try() == zk.ErrNotEmpty { // want `misses`
		return nil
	}
	return try()
}

func value(ctx context.Context, c *client.Client) bool {
	remove := c.Delete
	return remove(ctx, "/n", -1) == zk.ErrNoNode // want `misses`
}

func first[T any](ctx context.Context, c *client.Client, read func([]byte) T) (T, error) {
	var none T
	data, _, err := c.Get(ctx, "/n")
	if err == zk.ErrNoNode { // want `err == zk.ErrNoNode misses`
		return none, nil
	}
	return read(data), err
}

func generic(ctx context.Context, c *client.Client) bool {
	_, err := first(ctx, c, func(b []byte) int { return len(b) })
	return err == zk.ErrNoAuth // want `err == zk.ErrNoAuth misses`
}

func done(ctx context.Context, c *client.Client, lock *recipes.InterProcessMutex) bool {
	err := lock.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error { return c.Delete(ctx, "/n", -1) })
	return err == zk.ErrNoNode // want `err == zk.ErrNoNode misses`
}

func released(ctx context.Context, hold *recipes.Lease) bool {
	return hold.Release(ctx) == client.ErrSessionLost // want `misses`
}

func picked(ctx context.Context, p *discovery.ServiceProvider) bool {
	_, err := p.Pick(ctx)
	return err == discovery.ErrNoInstance // want `err == discovery.ErrNoInstance misses`
}

func typed(err error) bool {
	var op *client.OpError
	if !errors.As(err, &op) {
		return false
	}
	err = op
	return err == zk.ErrNoNode // want `err == zk.ErrNoNode misses`
}

func labelled(ctx context.Context, c *client.Client) error {
again:
	err := c.Delete(ctx, "/n", -1)
	switch {
	case err == client.ErrNotEmpty: // want `err == client.ErrNotEmpty misses`
		goto again
	case (err) != nil && err != zk.ErrNoNode: // want `err != zk.ErrNoNode misses`
		return err
	}
	return nil
}

func seen(ctx context.Context, lock *recipes.Election) bool {
	for _, err := range lock.Observe(ctx) {
		if err == zk.ErrNoNode { // want `err == zk.ErrNoNode misses`
			return true
		}
	}
	return false
}
