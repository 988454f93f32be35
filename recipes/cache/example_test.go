package cache_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// A server and a client for the examples.
func exampleClient(ctx context.Context) (*client.Client, func()) {
	srv, err := zktest.Start()
	if err != nil {
		panic(err)
	}
	c, err := client.Connect(ctx, srv.Addr(), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	return c, func() { _ = c.Close(); _ = srv.Close() }
}

func ExampleTree_Changes() {
	ctx := context.Background()
	c, stop := exampleClient(ctx)
	defer stop()
	tree, err := cache.NewTree(c, "/config", cache.Text)
	if err != nil {
		panic(err)
	}
	if err := tree.Start(ctx); err != nil {
		panic(err)
	}
	defer tree.Close()
	for change, err := range tree.Changes(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(change.Path, change.Kind)
		switch change.Kind {
		case cache.Began:
			_, _ = c.Create(ctx, "/config", []byte("one"))
		case cache.Created:
			_, _ = c.Set(ctx, "/config", []byte("two"), client.AnyVersion)
		default:
			fmt.Println(change.Old.Value, change.New.Value)
			return
		}
	}
	// Output:
	// began
	// /config created
	// /config updated
	// one two
}
