// Command workers keeps a live list of workers and what they do. Each worker is a
// member of a group and writes its job to its node; a cache of the directory has them
// all. Without -servers it runs on an in-process server.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

func main() {
	servers := flag.String("servers", "", "connect string; empty: an in-process server")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, *servers, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		cancel()
		os.Exit(1) //nolint:gocritic // the deferred cancel was called
	}
}

const group = "/fleet/workers"

func run(ctx context.Context, servers string, out io.Writer) error {
	if servers == "" {
		srv, err := zktest.Start()
		if err != nil {
			return err
		}
		defer func() { _ = srv.Close() }()
		servers = srv.Addr()
	}
	c, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	list, err := cache.NewChildren(c, group, cache.Text)
	if err != nil {
		return err
	}
	if err := list.Start(ctx); err != nil {
		return err
	}
	defer list.Close()

	worker, err := connect(ctx, servers) // in a real fleet every worker is a process
	if err != nil {
		return err
	}
	defer func() { _ = worker.Close() }()
	one, err := join(ctx, worker, "w1")
	if err != nil {
		return err
	}
	two, err := join(ctx, worker, "w2")
	if err != nil {
		return err
	}
	defer func() { _ = one.Close() }()
	for _, step := range []struct {
		do   func() error
		want string
	}{
		{func() error { return nil }, "w1 idle, w2 idle"},
		{func() error { return one.Set(ctx, []byte("job 7")) }, "w1 job 7, w2 idle"},
		{two.Close, "w1 job 7"},
	} {
		if err := step.do(); err != nil {
			return err
		}
		if err := await(ctx, list, step.want); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(out, "workers:", text(list))
	}
	return nil
}

func connect(ctx context.Context, servers string) (*client.Client, error) {
	return client.Connect(ctx, servers, client.WithLogger(slog.New(slog.DiscardHandler)))
}

// join makes a worker a member of the group, and waits until its node stands.
func join(ctx context.Context, c *client.Client, id string) (*nodes.GroupMember, error) {
	me, err := nodes.NewGroupMember(c, group, id, []byte("idle"))
	if err != nil {
		return nil, err
	}
	return me, me.Start(ctx)
}

// await follows the list until it is as wanted. A reader that misses changes sees the
// newest list all the same.
func await(ctx context.Context, list *cache.Children[string], want string) error {
	for _, err := range list.Changes(ctx) {
		if err != nil {
			return err
		}
		if text(list) == want {
			return nil
		}
	}
	return ctx.Err()
}

// text is the newest list, in the order of the names.
func text(list *cache.Children[string]) string {
	var all []string
	for id, worker := range list.All() {
		all = append(all, id+" "+worker.Value)
	}
	return strings.Join(all, ", ")
}
