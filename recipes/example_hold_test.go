package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// A write to ZooKeeper that is applied only while the lock is held.
func ExampleHold_Guard() {
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
	hold, err := lock.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hold.Confirm(ctx)) // asks the ensemble
	_, err = hold.Guard(ctx, client.CreateOp("/done", []byte("tonight")))
	fmt.Println(err)
	fmt.Println(hold.Release(ctx))
	_, err = hold.Guard(ctx, client.DeleteOp("/done", client.AnyVersion))
	fmt.Println(errors.Is(err, recipes.ErrReleased))
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// true
}

// A participant leads until it gives the term up.
func ExampleLeaderLatch() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	latch, err := recipes.NewLeaderLatch(c, "/leaders/scheduler", recipes.WithID("worker-7"))
	if err != nil {
		fmt.Println(err)
		return
	}
	term, err := latch.Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("leading:", term.Err() == nil) // term.Context() ends before another participant can lead
	fmt.Println(term.Release(ctx))
	// Output:
	// leading: true
	// <nil>
}

// Participants whose function returns lead in turns.
func ExampleLeaderSelector() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	selector, err := recipes.NewLeaderSelector(c, "/leaders/cleaner", recipes.WithID("worker-7"))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = selector.Do(ctx, func(ctx context.Context, _ *recipes.Term) error { // takeLeadership
		leader, err := selector.Leader(ctx)
		fmt.Println(leader.ID)
		return err
	})
	fmt.Println(err)
	// Output:
	// worker-7
	// <nil>
}
