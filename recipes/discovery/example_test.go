package discovery_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/zktest"
)

// server is a server for an example, with a context and a function that ends both.
func server() (ctx context.Context, address string, end func()) {
	srv, err := zktest.Start(zktest.WithListen("127.0.0.1:0"))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	return ctx, srv.Addr(), func() {
		cancel()
		_ = srv.Close()
	}
}

// A service registers itself, and a caller follows it. Both may be written in Java, with Spring Cloud
// Zookeeper.
func Example() {
	ctx, address, end := server()
	defer end()
	c, err := client.Connect(ctx, address, client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()

	services, err := discovery.New(c, "", discovery.SpringCloud())
	if err != nil {
		fmt.Println(err)
		return
	}
	own, err := services.Register(ctx, discovery.ServiceInstance{
		Service: "orders", ID: "a", Address: "10.0.0.7", Port: 8080, Zone: "west",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = own.Close() }()

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
	step := 0
	for now, err := range orders.Changes(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, i := range now.Instances {
			fmt.Println(i.ID, "at", i.HostPort(), "in", i.Zone)
		}
		if len(now.Instances) == 0 {
			fmt.Println("nobody;", len(now.Disabled), "disabled")
		}
		switch step++; step {
		case 1: // it moves
			i := own.Instance()
			i.Address = "10.0.0.8"
			err = own.Update(ctx, i)
		case 2: // before it stops, its callers go elsewhere
			err = own.Disable(ctx)
		case 3:
			err = own.Close()
		case 4:
			return
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// a at 10.0.0.7:8080 in west
	// a at 10.0.0.8:8080 in west
	// nobody; 1 disabled
	// nobody; 0 disabled
}

// The payload of a Java class is a type of Go's, and its class is written into each node.
func ExampleCuratorJSON() {
	type Details struct {
		Version string   `json:"version"`
		Tags    []string `json:"tags"`
	}
	codec := discovery.CuratorJSON[Details]("com.example.Details")
	i := discovery.ServiceInstance{
		Service: "orders", ID: "a", Address: "10.0.0.7", Port: 8080, Registered: time.UnixMilli(1795486358465),
		Payload: Details{Version: "1.2", Tags: []string{"blue"}},
	}
	node, err := codec.Encode(&i)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(node.Data))
	read, err := codec.Decode("orders", node.Node, node.Data)
	if err != nil {
		fmt.Println(err)
		return
	}
	if details, is := read.Payload.(Details); is {
		fmt.Println(details.Version)
	}
	// Output:
	// {"name":"orders","id":"a","address":"10.0.0.7","port":8080,"sslPort":null,"payload":{"@class":"com.example.Details","version":"1.2","tags":["blue"]},"registrationTimeUTC":1795486358465,"serviceType":"DYNAMIC","uriSpec":null}
	// 1.2
}
