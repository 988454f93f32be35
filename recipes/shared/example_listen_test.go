package shared_test

import (
	"context"
	"fmt"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/shared"
)

// A function is called with the present count and with every new one.
func ExampleSharedCount_Listen() {
	example(func(ctx context.Context, c *client.Client) error {
		workers, err := shared.NewSharedCount(c, "/config/workers", 4)
		if err != nil {
			return err
		}
		heard := make(chan int32)
		stop := workers.Listen(ctx, func(now shared.VersionedCount) {
			select {
			case heard <- now.Value:
			case <-ctx.Done():
			}
		})
		defer stop()
		fmt.Println(<-heard)
		if err := workers.Set(ctx, 8); err != nil {
			return err
		}
		fmt.Println(<-heard)
		return nil
	})
	// Output:
	// 4
	// 8
}

// A count with a one-shot watch, for a loop of one's own.
func ExampleSharedCount_ValueW() {
	example(func(ctx context.Context, c *client.Client) error {
		workers, err := shared.NewSharedCount(c, "/config/workers", 4)
		if err != nil {
			return err
		}
		now, changed, err := workers.ValueW(ctx)
		if err != nil {
			return err
		}
		fmt.Println(now)
		if err := workers.Set(ctx, 8); err != nil {
			return err
		}
		<-changed.Done()
		now, err = workers.Value(ctx)
		fmt.Println(now)
		return err
	})
	// Output:
	// 4
	// 8
}

// A set that looks at nothing, for repairs.
func ExampleDistributedAtomicLong_ForceSet() {
	example(func(ctx context.Context, c *client.Client) error {
		sold, err := shared.NewDistributedAtomicLong(c, "/counts/sold")
		if err != nil {
			return err
		}
		if err := sold.ForceSet(ctx, 100); err != nil {
			return err
		}
		now, err := sold.Subtract(ctx, 3) // one came back three times
		fmt.Println(now.PreValue, now.PostValue)
		return err
	})
	// Output: 100 97
}
