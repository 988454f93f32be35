package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

// connectExample returns a client of a server in this process.
func connectExample(ctx context.Context) (c *client.Client, end func(), err error) {
	srv, err := zktest.Start()
	if err != nil {
		return nil, nil, err
	}
	c, err = client.Connect(ctx, srv.Addr(), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, nil, errors.Join(err, srv.Close())
	}
	return c, func() { _ = c.CloseContext(ctx); _ = srv.Close() }, nil
}

func ExampleDistributedBarrier() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	gate, err := barrier.NewDistributedBarrier(c, "/gates/maintenance")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("set:", gate.Set(ctx))
	passed := make(chan error)
	go func() { passed <- gate.Wait(ctx) }()
	fmt.Println("removed:", gate.Remove(ctx))
	fmt.Println("passed:", <-passed)
	// Output:
	// set: <nil>
	// removed: <nil>
	// passed: <nil>
}

func ExampleDistributedDoubleBarrier() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	var all sync.WaitGroup
	for _, name := range []string{"w1", "w2"} {
		all.Go(func() { // in a real fleet every member is a process
			start, err := barrier.NewDistributedDoubleBarrier(c, "/jobs/start", 2, barrier.WithMemberName(name))
			if err != nil {
				fmt.Println(err)
				return
			}
			member, err := start.Enter(ctx)
			if err != nil {
				fmt.Println(err)
				return
			}
			defer func() { _ = member.Close() }()
			fmt.Println("both work")
			if err := member.Leave(ctx); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("both have worked")
		})
	}
	all.Wait()
	// Output:
	// both work
	// both work
	// both have worked
	// both have worked
}

func ExampleDistributedDoubleBarrier_View() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	start, err := barrier.NewDistributedDoubleBarrier(c, "/jobs/start", 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	now, err := start.View(ctx)
	fmt.Println(len(now.Members), "of", now.Needed, now.Missing("w1", "w2"), err)
	// Output: 0 of 2 [w1 w2] <nil>
}
