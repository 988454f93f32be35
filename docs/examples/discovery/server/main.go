// Command server is a gRPC server that registers itself under the name orders. It ends on SIGTERM:
// it deregisters first, and then answers the calls that it has.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/discovery"
)

func main() {
	servers := flag.String("servers", "localhost:2181", "connect string of ZooKeeper")
	listen := flag.String("listen", "127.0.0.1:0", "where to serve: the address that clients call")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *servers, *listen, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // the deferred stop was called
	}
}

func run(ctx context.Context, servers, listen string, out io.Writer) error {
	c, err := client.Connect(ctx, servers)
	if err != nil {
		return err
	}
	defer c.Close()
	d, err := discovery.New(c, "/services", discovery.CuratorMap())
	if err != nil {
		return err
	}

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(s, health.NewServer()) // stands for the service
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	defer s.Stop()

	at := listener.Addr().(*net.TCPAddr) //nolint:errcheck,forcetypeassert // it listens on tcp
	me, err := d.Register(ctx, discovery.ServiceInstance{Service: "orders", Address: at.IP.String(), Port: at.Port})
	if err != nil {
		return err
	}
	defer me.Close()
	i := me.Instance()
	_, _ = fmt.Fprintln(out, "registered at", i.HostPort())

	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	if err := me.Close(); err != nil { // clients hear of it and call others
		return err
	}
	s.GracefulStop()
	_, _ = fmt.Fprintln(out, "deregistered", i.HostPort())
	return nil
}
