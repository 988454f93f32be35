package shared_test

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
)

// example runs f with a client of a server in this process.
func example(f func(ctx context.Context, c *client.Client) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err == nil {
		defer end()
		err = f(ctx, c)
	}
	if err != nil {
		fmt.Println(err)
	}
}

func ExampleNewSharedValue() {
	example(func(ctx context.Context, c *client.Client) error {
		limits, err := shared.NewSharedValue(c, "/config/limits", []byte("100 a second"))
		if err != nil {
			return err
		}
		now, err := limits.Get(ctx)
		if err != nil {
			return err
		}
		set, err := limits.TrySet(ctx, now, []byte("200 a second"))
		if err != nil {
			return err
		}
		now, err = limits.Get(ctx)
		fmt.Printf("%v: %s, version %d\n", set, now.Value, now.Version)
		return err
	})
	// Output: true: 200 a second, version 1
}

func ExampleNewDistributedAtomicLong() {
	example(func(ctx context.Context, c *client.Client) error {
		hits, err := shared.NewDistributedAtomicLong(c, "/counts/hits")
		if err != nil {
			return err
		}
		v, err := hits.Add(ctx, 10)
		if err != nil {
			return err
		}
		fmt.Println(v.PreValue, v.PostValue)
		v, err = hits.CompareAndSet(ctx, 11, 0)
		fmt.Println(v.Succeeded, v.PreValue)
		return err
	})
	// Output:
	// 0 10
	// false 10
}

// After three tries that other clients spoiled, an addition waits for the mutex.
func ExamplePromotedToLock() {
	example(func(ctx context.Context, c *client.Client) error {
		mutex, err := recipes.NewInterProcessMutex(c, "/locks/hits")
		if err != nil {
			return err
		}
		hits, err := shared.NewDistributedAtomicLong(c, "/counts/hits",
			shared.WithTries(retry.NTimes(2, time.Millisecond)),
			shared.PromotedToLock(mutex, 10*time.Second, retry.NTimes(10, time.Millisecond)))
		if err != nil {
			return err
		}
		v, err := hits.Increment(ctx)
		fmt.Println(v.PostValue, v.Stats.OptimisticTries, v.Stats.PromotedTries)
		return err
	})
	// Output: 1 1 0
}

func ExampleNewDistributedAtomicInteger() {
	example(func(ctx context.Context, c *client.Client) error {
		workers, err := shared.NewDistributedAtomicInteger(c, "/counts/workers", shared.WithoutMark())
		if err != nil {
			return err
		}
		first, err := workers.Initialize(ctx, 5)
		if err != nil {
			return err
		}
		v, err := workers.Decrement(ctx)
		fmt.Println(first, v.PostValue)
		return err
	})
	// Output: true 4
}

func ExampleNewDistributedAtomicValue() {
	example(func(ctx context.Context, c *client.Client) error {
		owner, err := shared.NewDistributedAtomicValue(c, "/values/owner")
		if err != nil {
			return err
		}
		v, err := owner.TrySet(ctx, []byte("host-1"))
		fmt.Printf("%q %q\n", v.PreValue, v.PostValue)
		return err
	})
	// Output: "" "host-1"
}

func ExampleNewCachedAtomicLong() {
	example(func(ctx context.Context, c *client.Client) error {
		number, err := shared.NewDistributedAtomicLong(c, "/counts/tickets")
		if err != nil {
			return err
		}
		tickets, err := shared.NewCachedAtomicLong(number, 100)
		if err != nil {
			return err
		}
		for range 2 {
			v, err := tickets.Next(ctx)
			if err != nil {
				return err
			}
			fmt.Println(v.PostValue)
		}
		v, err := number.Get(ctx)
		fmt.Println("reserved:", v.PostValue)
		return err
	})
	// Output:
	// 1
	// 2
	// reserved: 100
}

func ExampleNewSequence() {
	example(func(ctx context.Context, c *client.Client) error {
		ids, err := shared.NewSequence(c, "/ids/orders", 100)
		if err != nil {
			return err
		}
		for range 2 {
			id, err := ids.Next(ctx)
			if err != nil {
				return err
			}
			fmt.Println(id)
		}
		first, last, err := ids.Reserve(ctx, 5)
		fmt.Println(first, last)
		return err
	})
	// Output:
	// 1
	// 2
	// 101 105
}
