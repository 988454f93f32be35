// Package grpcdocent_test makes gRPC calls to instances of a service while a real ensemble is broken.
package grpcdocent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/discovery"
)

// serversEnv makes the test binary a process with an instance; its value is the servers of ZooKeeper.
const serversEnv = "DOCENT_INSTANCE_OF"

// sessionTimeout is that of all clients.
const sessionTimeout = 6 * time.Second

func TestMain(m *testing.M) {
	if servers := os.Getenv(serversEnv); servers != "" {
		if err := process(context.Background(), servers); err != nil {
			fmt.Fprintln(os.Stderr, "instance:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// process is an instance until its input ends. It says where the instance is.
func process(ctx context.Context, servers string) error {
	i, err := newInstance(ctx, servers, "process")
	if err != nil {
		return err
	}
	fmt.Println(i.at)
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, i.close(ctx))
}

// instance is one of orders: a gRPC server, registered by a client of its own.
type instance struct {
	at     string // host:port
	server *grpc.Server
	served chan error
	c      *client.Client
	reg    *discovery.Registration
}

func connect(ctx context.Context, servers string) (*client.Client, *discovery.ServiceDiscovery, error) {
	c, err := client.Connect(ctx, servers, client.WithSessionTimeout(sessionTimeout), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, nil, err
	}
	d, err := discovery.New(c, "/services", discovery.CuratorMap())
	return c, d, err
}

func newInstance(ctx context.Context, servers, id string) (*instance, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	i := &instance{at: l.Addr().String(), server: grpc.NewServer(), served: make(chan error, 1)}
	grpc_health_v1.RegisterHealthServer(i.server, health.NewServer())
	go func() { i.served <- i.server.Serve(l) }()
	var d *discovery.ServiceDiscovery
	if i.c, d, err = connect(ctx, servers); err != nil {
		return nil, err
	}
	at, _ := l.Addr().(*net.TCPAddr)
	i.reg, err = d.Register(ctx, discovery.ServiceInstance{Service: "orders", ID: id, Address: at.IP.String(), Port: at.Port})
	return i, err
}

// close ends the instance as a program does: callers hear of it, and then it serves what it has begun.
func (i *instance) close(ctx context.Context) error {
	err := i.reg.CloseContext(ctx)
	i.server.GracefulStop()
	return errors.Join(err, <-i.served, i.c.CloseContext(ctx))
}
