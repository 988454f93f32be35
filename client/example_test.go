package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// The server runs in this process; a real one only has another address.
func ExampleConnect() {
	srv, err := zktest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	c, err := client.Connect(ctx, srv.Addr(), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.CloseContext(ctx) }()
	path, err := c.Create(ctx, "/jobs/job-", []byte("hello"), client.Sequential(), client.WithParents())
	if err != nil {
		fmt.Println(err)
		return
	}
	data, _, err := c.Get(ctx, path)
	fmt.Printf("%s: %s, %v\n", path, data, err)
	// Output: /jobs/job-0000000000: hello, <nil>
}

// A user of the servers' DigestLoginModule. Nothing that formats or logs it shows the password.
func ExampleDigestMD5() {
	mechanism := client.DigestMD5("billing", "secret") // for client.WithSASL
	fmt.Println(mechanism)
	// Output: DIGEST-MD5 user "billing"
}

// A password in a file that is replaced: the next connection uses the new one.
func ExampleDigestMD5From() {
	mechanism := client.DigestMD5From(func(context.Context) (user, password string, err error) {
		secret, err := os.ReadFile("/run/secrets/zookeeper")
		return "billing", string(secret), err
	}) // for client.WithSASL
	fmt.Println(mechanism.Name())
	// Output: DIGEST-MD5
}

// What a call that failed calls for.
func ExampleSafeToRetry() {
	c, stop := connected() // any *client.Client
	defer stop()
	create := func(path string) string {
		_, err := c.Create(context.Background(), path, nil)
		switch {
		case err == nil:
			return "made"
		case errors.Is(err, client.ErrNodeExists):
			return "another process was first"
		case client.SafeToRetry(err):
			return "nothing has happened, try later"
		case client.UnknownOutcome(err):
			return "it may have happened, look it up"
		default:
			return err.Error()
		}
	}
	fmt.Println(create("/jobs"))
	fmt.Println(create("/jobs"))
	fmt.Println(create("/none/job"))
	// Output:
	// made
	// another process was first
	// client: create /none/job: zk: node does not exist (the parent: make it first, or pass client.WithParents)
}

// Make it or overwrite it, and take everything away.
func ExampleClient_CreateOrSet() {
	c, stop := connected()
	defer stop()
	ctx := context.Background()
	for _, data := range []string{"first", "second"} {
		stat, err := c.CreateOrSet(ctx, "/config/prod/limit", []byte(data), client.WithPersistentParents())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("version", stat.Version)
	}
	err := c.DeleteAll(ctx, "/config")
	found, _, _ := c.Exists(ctx, "/config")
	fmt.Println(err, found)
	// Output:
	// version 0
	// version 1
	// <nil> false
}

// connected is a client of a server in this process; stop ends both.
func connected() (c *client.Client, stop func()) {
	srv, err := zktest.Start()
	if err != nil {
		panic(err)
	}
	c, err = client.Connect(context.Background(), srv.Addr(), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	return c, func() { _, _ = c.Close(), srv.Close() }
}
