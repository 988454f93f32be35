package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
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
	service := httptest.NewServer(fence.Handler(&gate, func(*http.Request) string { return "stock" }, fence.RefuseMissing,
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer service.Close()

	web := &http.Client{Transport: &fence.Transport{}}
	write := func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, service.URL, http.NoBody)
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

	var late int64 // token of a write that is under way when the lock is lost
	fmt.Println(fence.Do(ctx, lock, func(ctx context.Context) error {
		late, _ = fence.Token(ctx)
		return write(ctx)
	}))
	fmt.Println(fence.Do(ctx, lock, write)) // the next holder
	fmt.Println(errors.Is(write(fence.WithToken(ctx, late)), fence.ErrStale))
	// Output:
	// <nil>
	// <nil>
	// true
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
