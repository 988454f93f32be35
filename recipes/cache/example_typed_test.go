package cache_test

import (
	"context"
	"fmt"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
)

// Two kinds of nodes in one tree: the limits of each shop, and its servers.
func ExampleNewTypedTree() {
	ctx := context.Background()
	c, stop := exampleClient(ctx)
	defer stop()
	type limits struct{ Orders int }
	type server struct{ Addr string }
	const serverPath cache.Pattern = "/shops/{shop}/servers/{id}"
	var (
		limitsOf  = cache.NewLevel("/shops/{shop}/limits", cache.JSON[limits]())
		serversOf = cache.NewLevel(serverPath, cache.JSON[server]())
	)
	tree, err := cache.NewTypedTree(c, cache.Levels{limitsOf, serversOf})
	if err != nil {
		panic(err)
	}
	if err := tree.Start(ctx); err != nil {
		panic(err)
	}
	defer tree.Close()

	// A writer makes the path by the same pattern.
	path, err := serverPath.Path("north", "s1")
	if err != nil {
		panic(err)
	}
	for change, err := range tree.Changes(ctx) {
		if err != nil {
			panic(err)
		}
		if change.Kind == cache.Began {
			_, _ = c.Create(ctx, "/shops/north/limits", []byte(`{"Orders":3}`), client.WithPersistentParents())
			_, _ = c.Create(ctx, path, []byte(`{"Addr":"10.0.0.1:80"}`), client.WithPersistentParents())
		}
		if one, ok := serversOf.Change(change); ok {
			fmt.Println(one.Kind, one.Params.Get("shop"), one.Params.Get("id"), one.New.Value.Addr)
			break
		}
	}

	snapshot := tree.Snapshot()
	north, _ := limitsOf.Get(snapshot, "north")
	fmt.Println(north.Value.Orders)
	for params, one := range serversOf.All(snapshot, "north") {
		fmt.Println(params, one.Value.Addr)
	}
	// Output:
	// created north s1 10.0.0.1:80
	// 3
	// shop=north id=s1 10.0.0.1:80
}

// A level makes paths of parameters, and finds the parameters of a path.
func ExampleNewLevel() {
	jobs := cache.NewLevel("/queues/{queue}/jobs/{id}", cache.Text)
	path, err := jobs.Path("mail", "17")
	fmt.Println(path, err)
	_, err = jobs.Path("mail/../print", "17")
	fmt.Println(err)

	params, ok := jobs.Match("/queues/mail/jobs/17")
	fmt.Println(params.Get("queue"), params.Get("id"), ok)
	_, ok = jobs.Match("/queues/mail/jobs/17/log")
	fmt.Println(ok)
	// Output:
	// /queues/mail/jobs/17 <nil>
	// cache: pattern /queues/{queue}/jobs/{id}: the parameter queue: zk: invalid path: "mail/../print" has a slash; encode it, for example with url.PathEscape
	// mail 17 true
	// false
}
