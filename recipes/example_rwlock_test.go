package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/recipes"
)

func ExampleInterProcessReadWriteLock() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	lock, err := recipes.NewInterProcessReadWriteLock(c, "/locks/stock")
	if err != nil {
		fmt.Println(err)
		return
	}
	one, err := lock.ReadLock().Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	two, err := lock.ReadLock().Acquire(ctx) // readers share
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = lock.WriteLock().TryAcquire(ctx) // and keep writers out
	fmt.Println(errors.Is(err, recipes.ErrBusy))
	_, err = lock.WriteLock().Acquire(one.Context()) // a reader cannot wait to write
	fmt.Println(errors.Is(err, recipes.ErrWouldDeadlock))
	fmt.Println(one.Release(ctx), two.Release(ctx))
	// Output:
	// true
	// true
	// <nil> <nil>
}

// Write something, and go on reading it before another client can write.
func ExampleWriteHold_Downgrade() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	lock, err := recipes.NewInterProcessReadWriteLock(c, "/locks/stock")
	if err != nil {
		fmt.Println(err)
		return
	}
	write, err := lock.WriteLock().Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = write.Close() }() // does nothing after the downgrade
	// ... write ...
	read, err := write.Downgrade(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = read.Close() }()
	// ... read, beside others ...
	fmt.Println(errors.Is(write.Err(), recipes.ErrReleased), read.Err(), read.FencingToken() == write.FencingToken())
	// Output: true <nil> true
}
