package cache_test

import (
	"context"
	"fmt"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
)

// One node, as JSON. A read of the cache sends no request.
func ExampleValue() {
	ctx := context.Background()
	c, stop := exampleClient(ctx)
	defer stop()
	type limits struct{ Orders int }
	value, err := cache.NewValue(c, "/limits", cache.JSON[limits]())
	if err != nil {
		panic(err)
	}
	if err := value.Start(ctx); err != nil {
		panic(err)
	}
	defer value.Close()
	if _, err := value.WaitSynced(ctx); err != nil {
		panic(err)
	}
	_, found := value.Get()
	fmt.Println(found)

	_, stat, err := c.CreateStat(ctx, "/limits", []byte(`{"Orders":3}`))
	if err != nil {
		panic(err)
	}
	if _, err := value.Wait(ctx, stat.Czxid); err != nil { // until the cache has the write
		panic(err)
	}
	node, found := value.Get()
	fmt.Println(node.Value.Orders, found)
	// Output:
	// false
	// 3 true
}

// The children of a node with their data.
func ExampleChildren() {
	ctx := context.Background()
	c, stop := exampleClient(ctx)
	defer stop()
	var made int64
	for _, name := range []string{"w1", "w2"} {
		_, stat, err := c.CreateStat(ctx, "/workers/"+name, []byte("idle"), client.WithPersistentParents())
		if err != nil {
			panic(err)
		}
		made = stat.Czxid
	}
	workers, err := cache.NewChildren(c, "/workers", cache.Bytes)
	if err != nil {
		panic(err)
	}
	if err := workers.Start(ctx); err != nil {
		panic(err)
	}
	defer workers.Close()
	if _, err := workers.Wait(ctx, made); err != nil {
		panic(err)
	}
	for name, worker := range workers.All() {
		fmt.Printf("%s %s\n", name, worker.Value)
	}
	// Output:
	// w1 idle
	// w2 idle
}
