package zktest_test

import (
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/zktest"
)

// A create whose reply is lost has happened all the same.
func Example() {
	srv, err := zktest.Start(zktest.WithTick(100 * time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	lost := srv.LoseReply(zktest.Match{Op: zktest.OpCreate, Path: "/orders"})

	conn, _, err := zk.Connect([]string{srv.Addr()}, time.Second, zk.WithLogger(zktest.Logger{}))
	if err != nil {
		log.Print(err)
		return
	}
	defer conn.Close()
	_, err = conn.Create("/orders", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println("client:", err)
	_, exists := srv.Node("/orders")
	fmt.Println("server:", exists, "after", lost.Fired(), "lost reply")
	// Output:
	// client: zk: connection closed
	// server: true after 1 lost reply
}

// One call gives go-zookeeper all it needs to connect in memory.
func ExampleOptions() {
	srv, err := zktest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	link := srv.Client("a")
	conn, _, err := zk.Connect(link.Servers(), 10*time.Second,
		zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
	if err != nil {
		log.Print(err)
		return
	}
	defer conn.Close()
	fmt.Println(conn.Create("/orders", nil, 0, zk.WorldACL(zk.PermAll)))
	// Output: /orders <nil>
}

// A client of an ensemble finds its members through its link. Here the member
// it talks to is cut off, and goes on answering from the past.
func ExampleEnsemble() {
	e, err := zktest.StartEnsemble(3)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	link := e.Client("a")
	conn, _, err := zk.Connect([]string{"127.0.0.1:2181"}, 10*time.Second, // the first member
		zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
	if err != nil {
		log.Print(err)
		return
	}
	defer conn.Close()
	exists, _, err := conn.Exists("/orders")
	fmt.Println(exists, err)
	e.Isolate(1)
	if err := e.Leader().Create("/orders", nil); err != nil {
		log.Print(err)
		return
	}
	exists, _, err = conn.Exists("/orders")
	fmt.Println(exists, err)
	e.Heal()
	// Output:
	// false <nil>
	// false <nil>
}
