package discoveryhttp_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/discoveryhttp"
	"github.com/docent-go/docent/zktest"
)

// A program sends requests to the service orders, of which one instance is registered.
func ExampleNew() {
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

	// The server.
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello to "+r.Host)
	}))
	defer web.Close()
	at, _ := web.Listener.Addr().(*net.TCPAddr)
	me, err := d.Register(ctx, discovery.ServiceInstance{Service: "orders", Address: at.IP.String(), Port: at.Port})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = me.Close() }()

	// The client.
	orders, err := d.Provider("orders", discovery.WithStrategy(discovery.LeastLoaded))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := orders.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer orders.Close()
	rt, err := discoveryhttp.New(orders)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://orders/items/7", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := (&http.Client{Transport: rt}).Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(string(body), err)
	// Output: hello to orders <nil>
}
