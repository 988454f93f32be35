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

// start begins a span below that of ctx. It stands for a tracing library's; what it
// returns ends the span, and prints it.
func start(ctx context.Context, name string) (context.Context, func(outcome fmt.Stringer)) {
	type key struct{}
	if parent, ok := ctx.Value(key{}).(string); ok {
		name = parent + " > " + name
	}
	return context.WithValue(ctx, key{}, name), func(outcome fmt.Stringer) { fmt.Println(name+":", outcome) }
}

// Every operation, acquire and hold is a span, and what is done while the lock is
// held is below the span of the hold.
func Example_observer() {
	observer := client.Observer{
		Operation: func(ctx context.Context, op client.OperationInfo) (context.Context, func(client.OperationResult)) {
			if op.Op == "get" { // of a hold that lasts: it reads its node, to hear of requests to release
				return ctx, func(client.OperationResult) {}
			}
			ctx, end := start(ctx, op.Op)
			return ctx, func(r client.OperationResult) { end(r.Outcome) }
		},
		Lock: func(ctx context.Context, _ client.LockInfo) (context.Context, client.LockHooks) {
			ctx, acquired := start(ctx, "acquire")
			var ended func(fmt.Stringer)
			return ctx, client.LockHooks{
				Acquired: func(r client.AcquireResult) { acquired(r.Outcome) },
				Held: func(ctx context.Context, _ client.HoldInfo) context.Context {
					ctx, ended = start(ctx, "hold")
					return ctx
				},
				Ended: func(r client.HoldResult) { ended(r.End) },
			}
		},
	}
	if err := trace(observer); err != nil {
		fmt.Println(err)
	}
	// Output:
	// request > acquire > create: done
	// request > acquire: acquired
	// request > hold > children: done
	// request > hold > delete: done
	// request > hold: released
}

// trace takes a lock and lists the root under it.
func trace(observer client.Observer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	srv, err := zktest.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	c, err := client.Connect(ctx, srv.Addr(), client.WithObserver(observer), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	lock, err := recipes.NewInterProcessMutex(c, "/locks/orders")
	if err != nil {
		return err
	}
	ctx, _ = start(ctx, "request")
	return lock.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		_, _, err := c.Children(ctx, "/")
		return err
	})
}
