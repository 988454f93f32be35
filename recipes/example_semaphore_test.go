package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
)

func ExampleInterProcessSemaphoreV2() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	pool, err := recipes.NewInterProcessSemaphoreV2(c, "/pools/db", 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	lease, err := pool.Acquire(ctx, 2) // both or none
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("held:", lease.Permits(), lease.Err() == nil)
	_, err = pool.TryAcquire(ctx, 2)
	fmt.Println("two more:", errors.Is(err, recipes.ErrBusy))
	_, err = pool.Acquire(ctx, 4)
	fmt.Println("four:", errors.Is(err, recipes.ErrTooManyPermits))
	fmt.Println(lease.Release(ctx))
	// Output:
	// held: 2 true
	// two more: true
	// four: true
	// <nil>
}

// The number of permits is a count that an operator may change.
func ExampleNewInterProcessSemaphoreV2FromCount() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	size, err := shared.NewSharedCount(c, "/pools/db-size", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := recipes.NewInterProcessSemaphoreV2FromCount(c, "/pools/db", size)
	if err != nil {
		fmt.Println(err)
		return
	}
	one, err := pool.Acquire(ctx, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	raised := time.AfterFunc(10*time.Millisecond, func() { _ = size.Set(ctx, 2) })
	defer raised.Stop()
	two, err := pool.Acquire(ctx, 1) // waits until there are two
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(one.Close(), two.Close())
	// Output: <nil> <nil>
}

func ExampleInterProcessSemaphoreMutex() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	lock, err := recipes.NewInterProcessSemaphoreMutex(c, "/locks/report")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = lock.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		_, err := lock.Acquire(ctx) // it is not re-entrant
		fmt.Println(errors.Is(err, recipes.ErrWouldDeadlock))
		return nil
	})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}
