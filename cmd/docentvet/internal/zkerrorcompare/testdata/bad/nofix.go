package bad

import (
	"context"
	errors "log"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

func renamed(ctx context.Context, c *client.Client) bool {
	err := c.Delete(ctx, "/n", -1)
	errors.Print(err)
	return err == zk.ErrNoNode // want `err == zk.ErrNoNode misses`
}

func shadowed(ctx context.Context, c *client.Client) bool {
	var errors []error
	err := c.Delete(ctx, "/n", -1)
	errors = append(errors, err)
	switch err { // want `so case zk.ErrNoNode misses`
	case zk.ErrNoNode:
		return len(errors) == 0
	}
	return false
}
