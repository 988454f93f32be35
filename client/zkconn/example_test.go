package zkconn_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/client/zkconn"
	"github.com/docent-go/docent/zktest"
)

// connected is a client of a server in this process.
func connected(ctx context.Context) (*client.Client, func()) {
	srv, err := zktest.Start()
	if err != nil {
		panic(err)
	}
	c, err := client.Connect(ctx, "zk:2181",
		client.WithDialer(srv.Client("example").DialContext), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	return c, func() {
		_ = c.Close()
		_ = srv.Close()
	}
}

// Code that takes an interface of zk.Conn gets the client's adapter.
func ExampleNew() {
	ctx := context.Background()
	c, stop := connected(ctx)
	defer stop()

	conn, _ := zkconn.New(ctx, c)
	defer conn.Close() // c stays open
	_, _, err := conn.Get("/none")
	fmt.Println(err == zk.ErrNoNode) //nolint:errorlint // as such code does
	// Output: true
}

// Code that takes a *zk.Conn runs once in each session.
func ExamplePerSession() {
	ctx := context.Background()
	c, stop := connected(ctx)
	defer stop()

	err := zkconn.PerSession(ctx, c, func(ctx context.Context, conn *zk.Conn) error {
		_, err := conn.Create("/instance", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		// A real program waits for ctx here: the session is over then, and this runs again.
		return err
	})
	fmt.Println(err)
	// Output: <nil>
}
