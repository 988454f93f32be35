package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/zktest"
)

// A program calls an instance of the service orders, and tells how the call has ended.
func ExampleServiceProvider() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	srv, err := zktest.Start()
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
	defer func() { _ = c.Close() }()
	d, err := discovery.New(c, "/services", discovery.CuratorMap())
	if err != nil {
		fmt.Println(err)
		return
	}
	me, err := d.Register(ctx, discovery.ServiceInstance{Service: "orders", ID: "o1", Address: "10.0.0.7", Port: 80})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = me.Close() }()

	orders, err := d.Provider("orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := orders.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer orders.Close()
	call, err := orders.Pick(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = nil // of your call to call.Instance.HostPort()
	call.Done(err)
	fmt.Println("called", call.Instance.HostPort())

	_, err = orders.Pick(ctx, call.Instance.Node) // another one
	fmt.Println(errors.Is(err, discovery.ErrNoInstance), err)
	// Output:
	// called 10.0.0.7:80
	// true discovery: no instance of orders below /services: 1 excepted by the caller
}
