// Command first takes a lock, does its work and releases the lock.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, "127.0.0.1:2181") // or "zk1:2181,zk2:2181,zk3:2181"
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, servers string) error {
	c, err := client.Connect(ctx, servers, client.WithName("first"))
	if err != nil {
		return err // names every server and why it was not reached
	}
	defer c.Close()

	lock, err := recipes.NewInterProcessMutex(c, "/locks/orders")
	if err != nil {
		return err
	}
	return lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		return sellOne(ctx, hold.FencingToken()) // ctx ends when the lock is lost
	})
}

func sellOne(ctx context.Context, token int64) error {
	fmt.Println("sold one item, with token", token)
	return ctx.Err()
}
