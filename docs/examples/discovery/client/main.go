// Command client calls the instances of the service orders in turn, until SIGTERM.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/grpcdocent"
)

func main() {
	servers := flag.String("servers", "localhost:2181", "connect string of ZooKeeper")
	every := flag.Duration("every", time.Second, "how often to call")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *servers, *every, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // the deferred stop was called
	}
}

func run(ctx context.Context, servers string, every time.Duration, out io.Writer) error {
	c, err := client.Connect(ctx, servers, client.WithLazyConnect()) // it may start before ZooKeeper
	if err != nil {
		return err
	}
	defer c.Close()
	d, err := discovery.New(c, "/services", discovery.CuratorMap())
	if err != nil {
		return err
	}
	builder, err := grpcdocent.NewBuilder(d)
	if err != nil {
		return err
	}
	defer builder.Close()
	conn, err := grpc.NewClient("zk:///orders",
		grpc.WithResolvers(builder), // without it gRPC asks DNS
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()

	orders := grpc_health_v1.NewHealthClient(conn)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		var from peer.Peer
		_, err := orders.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Peer(&from))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			_, _ = fmt.Fprintln(out, "failed:", err)
		default:
			_, _ = fmt.Fprintln(out, "answered by", from.Addr)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}
