package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// The server runs in this process; a real one only has another address.
func ExampleConnect() {
	srv, err := zktest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	c, err := client.Connect(ctx, srv.Addr(), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.CloseContext(ctx) }()
	path, err := c.Create(ctx, "/jobs/job-", []byte("hello"), client.Sequential(), client.WithParents())
	if err != nil {
		fmt.Println(err)
		return
	}
	data, _, err := c.Get(ctx, path)
	fmt.Printf("%s: %s, %v\n", path, data, err)
	// Output: /jobs/job-0000000000: hello, <nil>
}
