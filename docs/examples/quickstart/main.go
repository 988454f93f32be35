// Command quickstart takes a lock, loses it, and has a late write refused, all on a
// server in its own process.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	say := log.New(out, "", 0)

	// A ZooKeeper server in this process, and a client as a service has it.
	srv, err := zktest.Start()
	if err != nil {
		return err
	}
	defer srv.Close()
	c, err := client.Connect(ctx, srv.Addr(), client.WithName("first"), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer c.Close()
	lock, err := recipes.NewInterProcessMutex(c, "/locks/stock")
	if err != nil {
		return err
	}

	// The first lock. A second contender is told who holds it.
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	_, err = lock.TryAcquire(ctx)
	say.Println("taken:", errors.Is(err, recipes.ErrBusy))

	// The resource remembers the newest token, and accepts this write.
	var stock fence.Gate
	say.Println("write of the holder:", stock.Check("stock", hold.FencingToken()))

	// The server ends the session, as after a partition. The hold's context ends.
	for _, session := range srv.Sessions() {
		srv.ExpireSession(session.ID)
	}
	<-hold.Context().Done()
	say.Println("lost:", errors.Is(context.Cause(hold.Context()), recipes.ErrLost))

	// The next holder has a greater token. From then on a write of the old one is refused.
	return lock.Do(ctx, func(_ context.Context, next *recipes.Hold) error {
		say.Println("greater token:", next.FencingToken() > hold.FencingToken())
		say.Println("write of the next holder:", stock.Check("stock", next.FencingToken()))
		late := stock.Check("stock", hold.FencingToken())
		say.Println("late write refused:", errors.Is(late, fence.ErrStale))
		return nil
	})
}
