// Command registry is a registry of workers: each registers its address, and a
// dispatcher knows at any time which workers there are. Without -servers it runs on an
// in-process server, on which one worker's session is lost.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/client"
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

const group = "/registry/workers"

func run(ctx context.Context, servers string, out io.Writer) error {
	var srv *zktest.Server
	if servers == "" {
		var err error
		if srv, err = zktest.Start(); err != nil {
			return err
		}
		defer func() { _ = srv.Close() }()
		servers = srv.Addr()
	}
	var workers []*nodes.GroupMember
	for id, address := range map[string]string{"w1": "10.0.0.1:80", "w2": "10.0.0.2:80"} {
		c, err := connect(ctx, servers) // in a real fleet every worker is a process
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		me, err := work(ctx, c, id, address)
		if err != nil {
			return err
		}
		defer func() { _ = me.Close() }()
		workers = append(workers, me)
	}
	following, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with its context
		defer close(done)
		dispatch(following, out, workers[0])
	}()
	defer func() { stop(); <-done }()

	if srv != nil {
		if err := loseSession(ctx, srv, workers[1]); err != nil {
			return err
		}
	}
	now, err := workers[0].Members(ctx)
	if err != nil {
		return err
	}
	stop()
	<-done
	_, _ = fmt.Fprintln(out, "at the end:", text(now))
	return nil
}

// loseSession ends the session of a worker, and waits until it is registered again.
func loseSession(ctx context.Context, srv *zktest.Server, worker *nodes.GroupMember) error {
	before := worker.Status()
	node, _ := srv.Node(before.Path)
	srv.ExpireSession(node.Stat.EphemeralOwner)
	for now := range worker.Changes(ctx) {
		if now.State == nodes.Ours && now.Czxid != before.Czxid {
			return nil
		}
	}
	return ctx.Err()
}

func connect(ctx context.Context, servers string) (*client.Client, error) {
	return client.Connect(ctx, servers, client.WithLogger(slog.New(slog.DiscardHandler)))
}

// work registers a worker and waits until it stands. A worker registers when it can
// work, and not before: readers send it jobs from that moment.
func work(ctx context.Context, c *client.Client, id, address string) (*nodes.GroupMember, error) {
	me, err := nodes.NewGroupMember(c, group, id, []byte(address), nodes.TakeOver()) // no other process has this id
	if err != nil {
		return nil, err
	}
	return me, me.Start(ctx)
}

// dispatch tells of every change of the workers until ctx ends. A real dispatcher
// would give its jobs to those of the newest list.
func dispatch(ctx context.Context, out io.Writer, g *nodes.GroupMember) {
	for workers, err := range g.MemberChanges(ctx) {
		if err != nil {
			_, _ = fmt.Fprintln(out, "may be old:", text(workers), err) // go on with that list
			continue
		}
		_, _ = fmt.Fprintln(out, "workers:", text(workers))
	}
}

func text(workers nodes.Members) string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(workers)) {
		all = append(all, id+" at "+string(workers[id]))
	}
	return strings.Join(all, ", ")
}
