// Package bad compares errors with ==.
package bad

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

func get(ctx context.Context, c *client.Client) error {
	_, _, err := c.Get(ctx, "/n")
	if err == zk.ErrNoNode { // want `err == zk.ErrNoNode misses the errors of Docent, which wrap it: write errors.Is\(err, zk.ErrNoNode\)`
		return nil
	}
	if client.ErrNoAuth != err { // want `client.ErrNoAuth != err misses.*write !errors.Is\(err, client.ErrNoAuth\)`
		return err
	}
	return nil
}

func busy(err error) bool { return err == recipes.ErrBusy } // want `write errors.Is\(err, recipes.ErrBusy\)`

func choose(ctx context.Context, c *client.Client) string {
	err := c.Delete(ctx, "/n", -1)
	switch err { // want `switch err compares with ==, so case zk.ErrNoNode misses`
	case nil:
		return ""
	case context.Canceled, zk.ErrNoNode:
		return "none"
	default:
		return "other"
	}
}

func called(ctx context.Context, c *client.Client) bool {
	switch err := c.Delete(ctx, "/n", -1); err { // want `so case client.ErrNoNode misses`
	case client.ErrNoNode:
		return false
	}
	switch c.Delete(ctx, "/n", -1) { // want `so case client.ErrNotEmpty misses`
	case client.ErrNotEmpty:
		return false
	}
	return true
}
