package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// connectExample returns a client of a server in this process.
func connectExample(ctx context.Context) (c *client.Client, end func(), err error) {
	srv, err := zktest.Start()
	if err != nil {
		return nil, nil, err
	}
	c, err = client.Connect(ctx, srv.Addr(), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, nil, errors.Join(err, srv.Close())
	}
	return c, func() { _ = c.CloseContext(ctx); _ = srv.Close() }, nil
}

func ExamplePersistentNode() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	node, err := nodes.NewPersistentNode(c, nodes.Ephemeral, "/workers/w1", []byte("10.0.0.7:80"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := node.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(node.Status().State, node.Status().Path)
	err = node.Set(ctx, []byte("10.0.0.7:81"))
	data, _, _ := c.Get(ctx, "/workers/w1")
	fmt.Println(string(data), err)
	fmt.Println(node.Close())
	// Output:
	// ours /workers/w1
	// 10.0.0.7:81 <nil>
	// <nil>
}

func ExampleGroupMember_MemberChanges() {
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
	defer func() { _ = me.Close() }()
	for members, err := range me.MemberChanges(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(members) > 0 {
			fmt.Printf("w1 at %s\n", members["w1"])
			break
		}
	}
	// Output: w1 at 10.0.0.7:80
}

// A service that starts before its servers has a client with WithLazyConnect as well.
func ExampleWithLazyStart() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	node, err := nodes.NewPersistentNode(c, nodes.Ephemeral, "/workers/w1", nil, nodes.WithLazyStart())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(node.Start(ctx)) // returns at once
	fmt.Println(node.Wait(ctx))
	for now := range node.Changes(ctx) {
		fmt.Println(now.State)
		break
	}
	fmt.Println(node.Close())
	// Output:
	// <nil>
	// <nil>
	// ours
	// <nil>
}
