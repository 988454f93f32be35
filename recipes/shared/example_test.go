package shared_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/shared"
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

// An increment that counts once, also when its answer is lost.
func ExampleSharedCount_TrySet() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	count, err := shared.NewSharedCount(c, "/counts/invoices", 41)
	if err != nil {
		fmt.Println(err)
		return
	}
	for done := false; !done; { // until no other client came in between
		now, err := count.Get(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		if done, err = count.TrySet(ctx, now, now.Value+1); err != nil {
			fmt.Println(err)
			return
		}
	}
	now, err := count.Get(ctx)
	fmt.Println(now.Value, err)
	// Output: 42 <nil>
}

func ExampleSharedCount_Changes() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, end, err := connectExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	count, err := shared.NewSharedCount(c, "/counts/workers", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for now, err := range count.Changes(ctx) {
		fmt.Println(now.Value, err)
		if err != nil || now.Value == 3 {
			break
		}
		if err := count.Set(ctx, now.Value+1); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
}
