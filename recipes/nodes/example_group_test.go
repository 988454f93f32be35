package nodes_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

func ExampleGroupMember_Members() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	me, err := nodes.NewGroupMember(c, "/workers", "w1", []byte("10.0.0.7:80"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := me.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	members, err := me.Members(ctx)
	fmt.Printf("%d, w1 at %s, %v\n", len(members), members["w1"], err)
	fmt.Println(me.CloseContext(ctx))
	// Output:
	// 1, w1 at 10.0.0.7:80, <nil>
	// <nil>
}

// A node that outlives the session of its process for a while, and not the process.
func ExamplePersistentTtlNode() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	srv, err := zktest.Start(zktest.WithExtendedTypes()) // extendedTypesEnabled=true
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	c, err := client.Connect(ctx, srv.Addr(), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.CloseContext(ctx) }()

	node, err := nodes.NewPersistentTtlNode(c, "/services/api", time.Minute, []byte("10.0.0.7:80"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := node.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(node.Close()) // the servers delete it a minute later
	found, _, err := c.Exists(ctx, "/services/api")
	fmt.Println(found, err)
	// Output:
	// <nil>
	// true <nil>
}

// A program that is no member follows the group without an id.
func ExampleNewGroup() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	group, err := nodes.NewGroup(c, "/workers")
	if err != nil {
		fmt.Println(err)
		return
	}
	members, err := group.Members(ctx)
	fmt.Println(len(members), err)
	// Output: 0 <nil>
}
