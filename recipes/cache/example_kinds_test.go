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
	for _, name := range []string{"w1", "w2"} {
		if _, err := c.Create(ctx, "/workers/"+name, []byte("idle"), client.WithPersistentParents()); err != nil {
			panic(err)
		}
	}
	workers, err := cache.NewChildren(c, "/workers", cache.Bytes)
	if err != nil {
		panic(err)
	}
	if err := workers.Start(ctx); err != nil {
		panic(err)
	}
	defer workers.Close()
	for name, worker := range workers.All() {
		fmt.Printf("%s %s\n", name, worker.Value)
	}
	// Output:
	// w1 idle
	// w2 idle
}

// A service that does not wait for its servers: it starts with an empty snapshot, and waits
// where it needs the nodes.
func ExampleWithLazyStart() {
	ctx := context.Background()
	c, stop := exampleClient(ctx)
	defer stop()
	if _, err := c.Create(ctx, "/motto", []byte("later")); err != nil {
		panic(err)
	}
	motto, err := cache.NewValue(c, "/motto", cache.Text, cache.WithLazyStart())
	if err != nil {
		panic(err)
	}
	if err := motto.Start(ctx); err != nil { // it returns at once
		panic(err)
	}
	defer motto.Close()

	if _, err := motto.WaitSynced(ctx); err != nil {
		panic(err)
	}
	node, _ := motto.Get()
	fmt.Println(node.Value)
	// Output:
	// later
}

// Prices that change all the time, each shown as it was read last. Two prices that one transaction
// has set may be of different moments.
func ExampleLooseTree() {
	ctx := context.Background()
	c, stop := exampleClient(ctx)
	defer stop()
	if _, err := c.Create(ctx, "/prices/tea", []byte("3"), client.WithPersistentParents()); err != nil {
		panic(err)
	}
	prices, err := cache.NewLooseTree(c, "/prices", cache.Text)
	if err != nil {
		panic(err)
	}
	if err := prices.Start(ctx); err != nil {
		panic(err)
	}
	defer prices.Close()
	stat, err := c.Set(ctx, "/prices/tea", []byte("4"), client.AnyVersion)
	if err != nil {
		panic(err)
	}
	snapshot, err := prices.Wait(ctx, stat.Mzxid) // at least with this write
	if err != nil {
		panic(err)
	}
	tea, _ := snapshot.Get("/prices/tea")
	fmt.Println(tea.Value)
	// Output:
	// 4
}
