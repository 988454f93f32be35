package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// connectExample connects to a server in this process; a real one only has
// another address. The caller must call end.
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

func ExampleInterProcessMutex_Do() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	lock, err := recipes.NewInterProcessMutex(c, "/locks/orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = lock.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		fmt.Println("working, and", ctx.Err() == nil) // ctx ends when the lock is lost
		return nil
	})
	fmt.Println(err)
	// Output:
	// working, and true
	// <nil>
}

func ExampleInterProcessMutex_Acquire() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	lock, err := recipes.NewInterProcessMutex(c, "/locks/orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	hold, err := lock.Acquire(ctx) // ctx bounds the waiting and nothing after it
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("held:", hold.Err() == nil, hold.FencingToken() > 0)
	fmt.Println(hold.Release(ctx))
	fmt.Println(errors.Is(hold.Err(), recipes.ErrReleased))
	// Output:
	// held: true true
	// <nil>
	// true
}

func ExampleInterProcessMutex_TryAcquire() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	lock, err := recipes.NewInterProcessMutex(c, "/locks/orders", recipes.WithNodeData([]byte("worker-7")))
	if err != nil {
		fmt.Println(err)
		return
	}
	hold, err := lock.TryAcquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = hold.Close() }()

	_, err = lock.TryAcquire(ctx)
	var busy *recipes.BusyError
	if errors.As(err, &busy) {
		fmt.Printf("held by %s\n", busy.Holder.Data)
	}
	// Output: held by worker-7
}
