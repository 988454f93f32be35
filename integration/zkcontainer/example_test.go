package zkcontainer_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/testcontainers/testcontainers-go"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// One server, and go-zookeeper as its client.
func ExampleRun() {
	ctx := context.Background()
	c, err := zkcontainer.Run(ctx, image())
	defer func() {
		if err := testcontainers.TerminateContainer(c); err != nil {
			log.Print(err)
		}
	}()
	if err != nil {
		log.Print(err)
		return
	}
	conn, _, err := zk.Connect([]string{c.Addr()}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		log.Print(err)
		return
	}
	defer conn.Close()
	path, err := conn.Create("/orders", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err)
	// Output: /orders <nil>
}

// Three servers, of which the leader is killed. The connection string is what Curator's
// CuratorFrameworkFactory.builder().connectString takes.
func ExampleRunEnsemble() {
	ctx := context.Background()
	e, err := zkcontainer.RunEnsemble(ctx, image(), 3, zkcontainer.WithChroot("/shop"))
	defer func() {
		if err := e.Terminate(ctx); err != nil {
			log.Print(err)
		}
	}()
	if err != nil {
		log.Print(err)
		return
	}
	_, _ = e.ConnectionString(ctx) // 127.0.0.1:20345,127.0.0.1:31415,127.0.0.1:27182/shop
	leader, err := e.Leader(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	others := e.Followers(ctx)
	if err := leader.Kill(ctx); err != nil {
		log.Print(err)
		return
	}
	next, err := e.AwaitServing(ctx, others...)
	fmt.Println(next != leader, err)
	// Output: true <nil>
}
