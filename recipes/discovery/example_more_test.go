package discovery_test

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/nodes"
)

// Each layout has its own node for the same instance.
func ExampleCodec() {
	for _, codec := range []discovery.Codec{
		discovery.Dubbo(), discovery.Kitex(), discovery.Nerve(), discovery.HostPort(), discovery.GoKit(), discovery.Serverset(),
		discovery.Kratos(), discovery.Curator(), discovery.CuratorString(), discovery.CuratorMap(),
	} {
		i := discovery.ServiceInstance{Service: "orders", Address: "10.0.0.7", Port: 8080}
		if codec.Name() == "Kratos" {
			i.Endpoints = []string{"grpc://10.0.0.7:8080?isSecure=false"}
		}
		node, err := codec.Encode(&i)
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(node.Data) < 60 {
			fmt.Println(codec.Name(), node.Node == "10.0.0.7:8080", string(node.Data))
		}
	}
	// Output:
	// Kitex true {"Weight":0,"Tags":null}
	// Nerve true {"host":"10.0.0.7","port":8080,"name":"10.0.0.7:8080"}
	// HostPort true 10.0.0.7:8080
	// GoKit false 10.0.0.7:8080
}

// A service whose servers may be away when it starts, and an operator who takes it out of service.
func ExampleRegistration() {
	ctx, address, end := server()
	defer end()
	c, err := client.Connect(ctx, address, client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()
	host, err := discovery.HostAddress(ctx, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	services, err := discovery.New(c, "/services", discovery.CuratorMap())
	if err != nil {
		fmt.Println(err)
		return
	}
	own, err := services.NewRegistration(discovery.ServiceInstance{Service: "orders", ID: "a", Address: host, Port: 8080}, nodes.WithLazyStart())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := errors.Join(own.Start(ctx), own.Wait(ctx)); err != nil {
		fmt.Println(err)
		return
	}
	for now := range own.Changes(ctx) {
		fmt.Println(now.State)
		break
	}
	err = services.Edit(ctx, "orders", "a", func(i *discovery.ServiceInstance) error { i.Disabled = true; return nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	names, err := services.Services(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	now, err := services.Instances(ctx, "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(names, len(now.Disabled), "disabled")
	if err := own.Enable(ctx); err != nil {
		fmt.Println(err)
		return
	}
	orders, err := services.Cache("orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := orders.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer orders.Close()
	if now, err = orders.WaitSynced(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(now.Instances), "enabled")
	if _, err := orders.Wait(ctx, 0); err != nil {
		fmt.Println(err)
		return
	}
	if err := own.CloseContext(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ours
	// [orders] 1 disabled
	// 1 enabled
}
