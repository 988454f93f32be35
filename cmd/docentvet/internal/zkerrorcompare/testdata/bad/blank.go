package bad

import (
	"context"
	_ "errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

func noted(ctx context.Context, c *client.Client) bool {
	err := c.Delete(ctx, "/n", -1)
	if err == zk.ErrNotEmpty /* by another */ || // want `err == zk.ErrNotEmpty misses`
		err == /* also by another */ zk.ErrNoNode { // want `err == zk.ErrNoNode misses`
		return true
	}
	return false
}
