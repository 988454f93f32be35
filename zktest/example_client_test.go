package zktest_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/zktest"
)

// connectExample connects go-zookeeper to a server as the client of a name.
func connectExample(srv *zktest.Server, name string) *zk.Conn {
	link := srv.Client(name)
	conn, _, err := zk.Connect(link.Servers(), 10*time.Second,
		zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
	if err != nil {
		log.Panic(err)
	}
	return conn
}

// In a test, zktest.NewServer(t) replaces Start and Close. Here the session of one
// client ends, and its node with it.
func ExampleServer() {
	srv, err := zktest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	conn := connectExample(srv, "a")
	defer conn.Close()
	if _, err := conn.Create("/worker", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		log.Print(err)
		return
	}
	fmt.Println(srv.Children("/"))
	fmt.Println(srv.Client("a").ExpireSession())
	fmt.Println(srv.Children("/"))
	// Output:
	// [worker zookeeper]
	// 1
	// [zookeeper]
}

// A rule tells when its request has come, so that a test need not sleep.
func ExampleRule_Wait() {
	srv, err := zktest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	asked := srv.BeforeApply(zktest.Match{Op: zktest.OpCreate, Path: "/orders"}, func(context.Context, zktest.Request) {})
	conn := connectExample(srv, "a")
	defer conn.Close()
	go func() { _, _ = conn.Create("/orders", nil, 0, zk.WorldACL(zk.PermAll)) }()
	fmt.Println(asked.Wait(ctx, 1), asked.Fired())
	// Output: <nil> 1
}

// Any client dials in memory.
func ExampleClientLink_DialContext() {
	srv, err := zktest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	conn, err := srv.Client("a").DialContext(context.Background(), "tcp", "zk:2181") // both are ignored
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(conn.RemoteAddr())
	fmt.Println(conn.Close())
	// Output:
	// zktest
	// <nil>
}

// A client that stands still, as in a long garbage collection.
func ExampleClientLink_Gate() {
	srv, err := zktest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	ctx := context.Background()
	link := srv.Client("a")
	link.Pause()
	worked := make(chan error)
	go func() { worked <- link.Gate(ctx) }() // a goroutine of that client stands still, too
	select {
	case <-worked:
		fmt.Println("it did not stand still")
	default:
		fmt.Println("paused")
	}
	link.Resume()
	fmt.Println(<-worked)
	// Output:
	// paused
	// <nil>
}

func ExampleEnsemble_AwaitLeader() {
	e, err := zktest.StartEnsemble(3)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	old, err := e.AwaitLeader(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	if err := e.ChangeLeader(old.ID()%e.Size() + 1); err != nil { // the next member
		log.Print(err)
		return
	}
	leader, err := e.AwaitLeader(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(leader.ID() != old.ID(), leader.Serving())
	// Output: true true
}

func ExampleParseVersion() {
	fmt.Println(zktest.ParseVersion("Zookeeper version: 3.8.4-1, built on 2024-02-12")) // a server's answer to srvr
	_, err := zktest.ParseVersion("3.8")
	fmt.Println(err)
	// Output:
	// 3.8.6 <nil>
	// zktest: no release number in "3.8"; it has three parts, like 3.9.5
}
