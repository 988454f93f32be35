package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/recipes"
)

// Move goods from one stock to another while no other client touches either.
func ExampleInterProcessMultiLock() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	from, err := recipes.NewInterProcessMutex(c, "/locks/stock-a")
	if err != nil {
		fmt.Println(err)
		return
	}
	to, err := recipes.NewInterProcessMutex(c, "/locks/stock-b")
	if err != nil {
		fmt.Println(err)
		return
	}
	// Another program may name them the other way round.
	both, err := recipes.NewInterProcessMultiLock(from, to)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = both.Do(ctx, func(context.Context, *recipes.MultiHold) error {
		_, err := to.TryAcquire(ctx)
		fmt.Println(errors.Is(err, recipes.ErrBusy))
		return nil
	})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}
