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
