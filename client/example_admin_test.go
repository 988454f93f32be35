package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// One request shows the data of two nodes and a list, all of one state of the tree.
func ExampleClient_MultiRead() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	if _, err := c.Create(ctx, "/config/limit", []byte("3"), client.WithParents()); err != nil {
		fmt.Println(err)
		return
	}
	res, err := c.MultiRead(ctx, client.GetOp("/config/limit"), client.ChildrenOp("/config"), client.GetOp("/none"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(res[0].Data), res[1].Children, errors.Is(res[2].Err, client.ErrNoNode))
	// Output: 3 [limit] true
}

// The servers warn when the tree has more than ten nodes. Hard limits refuse writes.
func ExampleClient_SetQuota() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	if _, err := c.Create(ctx, "/jobs/a", []byte("data"), client.WithParents()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.SetQuota(ctx, "/jobs", client.Quota{Nodes: 10}))
	q, err := c.Quota(ctx, "/jobs")
	fmt.Println(q.Quota.Nodes, q.UsedNodes, q.UsedBytes, err)
	all, err := c.Quotas(ctx, "/")
	fmt.Println(len(all), err)
	fmt.Println(c.RemoveQuota(ctx, "/jobs"))
	// Output:
	// <nil>
	// 10 2 4 <nil>
	// 1 <nil>
	// <nil>
}

// What this client is and has.
func ExampleClient_Identities() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	_, err := c.Identities(ctx) // such as {digest billing} and {ip 10.0.0.7}
	fmt.Println(err)
	if _, err := c.Create(ctx, "/workers/a", nil, client.Ephemeral(), client.WithParents()); err != nil {
		fmt.Println(err)
		return
	}
	mine, err := c.Ephemerals(ctx, "/workers")
	fmt.Println(mine, err)
	count, err := c.CountDescendants(ctx, "/workers")
	fmt.Println(count, err)
	// Output:
	// <nil>
	// [/workers/a] <nil>
	// 1 <nil>
}

// A member leaves, unless another client has changed the configuration meanwhile. The servers
// of this example let nobody do that.
func ExampleClient_Reconfigure() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	now, err := c.Ensemble(ctx)
	if err != nil {
		fmt.Println("a single server:", err)
	}
	_, err = c.Reconfigure(ctx, client.Reconfiguration{Leave: []int64{3}, IfVersion: now.Version})
	fmt.Println(errors.Is(err, zk.ErrReconfigDisabled))
	// Output:
	// a single server: client: ensemble /zookeeper/config: it names no server
	// true
}
