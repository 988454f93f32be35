// Package good compares errors as their sources mean it.
package good

import (
	"context"
	"errors"
	"io"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/client/zkconn"
)

func is(err error) bool { return errors.Is(err, zk.ErrNoNode) || err == io.EOF || err == nil }

func raw(c *zk.Conn, z *zkconn.Conn) bool {
	_, _, err := c.Get("/n")
	if err == zk.ErrNoNode {
		return true
	}
	_, _, _, err = z.ChildrenW("/n")
	_, _, errW := z.Get("/n")
	return err != zk.ErrConnectionClosed || errW == zk.ErrNoNode || c.Delete("/n", -1) == zk.ErrNoNode
}

func event(ev zk.Event) bool { return ev.Err == zk.ErrSessionExpired }

type failure struct{}

func (failure) Error() string { return "failed" }

func (failure) Is(target error) bool { return target == client.ErrNoNode }

func same() bool { return client.ErrNoNode == zk.ErrNoNode }

func meant(ctx context.Context, c *client.Client) bool {
	err := c.Delete(ctx, "/n", -1)
	return err == zk.ErrNoNode //nolint:errorlint // that is what is tested
}

func chosen(err error) bool {
	switch err {
	case io.EOF:
		return true
	}
	switch {
	case errors.Is(err, client.ErrNoNode):
		return true
	}
	return false
}
