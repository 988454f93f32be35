package recipes_test

import (
	"context"
	"fmt"
	"time"

	"github.com/docent-go/docent/recipes"
)

// Ask the holder of the lock to let go of it, and wait for the lock.
func ExampleInterProcessMutex_RequestRelease() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	lock, err := recipes.NewInterProcessMutex(c, "/locks/report")
	if err != nil {
		fmt.Println(err)
		return
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	hold.OnRevoke(func() { _ = hold.Close() }) // when it suits: the lock is held until then

	queue, err := lock.Queue(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, contender := range queue {
		fmt.Println(contender.Mode, "by", contender.Family, contender.Holder)
		if contender.Holder {
			err = lock.RequestRelease(ctx, contender)
		}
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	mine, err := lock.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mine.FencingToken() > hold.FencingToken(), mine.Release(ctx))
	// Output:
	// exclusive by Docent true
	// true <nil>
}
