// Spans prints the spans of one contended acquire: what a tracing library would show
// of a request that waits for a lock behind two others, works and releases it.
//
//	go run ./docs/examples/spans                     # on a server in this process
//	go run ./docs/examples/spans -servers 127.0.0.1:2181  # on yours
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

const path = "/docent/spans"

func main() {
	zk := flag.String("servers", "", "connect string of ZooKeeper, host:port[,host:port]; empty starts a server in this process")
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if err := run(*zk); err != nil {
		fmt.Fprintln(os.Stderr, "spans:", err)
		os.Exit(1)
	}
}

func run(zk string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if zk == "" {
		srv, err := zktest.Start()
		if err != nil {
			return err
		}
		defer func() { _ = srv.Close() }()
		zk = srv.Addr()
	}
	others, err := client.Connect(ctx, zk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, others.Close()) }()
	c, err := client.Connect(ctx, zk, client.WithObserver(observer()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := compete(ctx, others); err != nil {
		return err
	}
	return request(ctx, c)
}

// compete has two others take the lock, one after the other, for 50 ms each.
func compete(ctx context.Context, c *client.Client) error {
	lock, err := recipes.NewInterProcessMutex(c, path)
	if err != nil {
		return err
	}
	holding := make(chan error, 4)
	for i := range 2 {
		go func() {
			err := lock.Do(ctx, func(context.Context, *recipes.Hold) error {
				holding <- nil
				time.Sleep(50 * time.Millisecond)
				return nil
			})
			if err != nil {
				holding <- err
			}
		}()
		if i == 0 {
			if err := <-holding; err != nil {
				return err
			}
		}
	}
	for { // until the second stands in line
		line, err := lock.Queue(ctx)
		if err != nil || len(line) >= 2 {
			return err
		}
	}
}

// request is what is traced.
func request(ctx context.Context, c *client.Client) error {
	lock, err := recipes.NewInterProcessMutex(c, path)
	if err != nil {
		return err
	}
	ctx, s := start(ctx, "request")
	err = lock.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		ctx, s := start(ctx, "work")
		defer s.end("")
		_, _, err := c.Exists(ctx, "/docent")
		time.Sleep(5 * time.Millisecond)
		return err
	})
	s.end("")
	s.print(s.begun, "", "")
	return err
}
