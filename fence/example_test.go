package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// A service refuses the write of a holder that is late.
func Example_http() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	srv, err := zktest.Start() // a real one only has another address
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
	lock, err := recipes.NewInterProcessMutex(c, "/locks/stock")
	if err != nil {
		fmt.Println(err)
		return
	}

	// The service: its one resource is the stock.
	var gate fence.Gate
	items := 10
	service := httptest.NewServer(fence.Handler(&gate, func(*http.Request) string { return "stock" }, fence.AdmitReads,
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				items, _ = strconv.Atoi(r.URL.Query().Get("items"))
			}
		})))
	defer service.Close()

	// The holders: one sends its write too late.
	web := &http.Client{Transport: &fence.Transport{Resource: func(r *http.Request) string {
		if "http://"+r.URL.Host == service.URL {
			return "stock"
		}
		return "" // no other server is to see the token
	}}}
	stock := fence.Remote{Client: web, URL: service.URL}
	set := func(ctx context.Context, items int) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, fmt.Sprintf("%s?items=%d", service.URL, items), http.NoBody)
		if err != nil {
			return err
		}
		resp, err := web.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		return fence.CheckResponse(resp)
	}

	var late func() error // a write that is under way when the lock is lost
	fmt.Println(fence.Do(ctx, lock, stock, "stock", func(ctx context.Context) error {
		late = func() error { return set(context.WithoutCancel(ctx), 99) }
		return set(ctx, items-1)
	}))
	fmt.Println(fence.Do(ctx, lock, stock, "stock", func(ctx context.Context) error { // the next holder
		read := items
		fmt.Println(errors.Is(late(), fence.ErrStale))
		return set(ctx, read-1)
	}))
	fmt.Println(items)
	// Output:
	// <nil>
	// true
	// <nil>
	// 8
}

func ExampleGate() {
	var gate fence.Gate
	fmt.Println(gate.Check("stock", 7))
	fmt.Println(gate.Check("stock", 7)) // the same holder again
	fmt.Println(gate.Check("stock", 9)) // the next one
	fmt.Println(gate.Check("stock", 7))
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// fence: stale fencing token 7 for "stock", which has seen 9
}
