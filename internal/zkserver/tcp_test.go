package zkserver_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// TestFaultsOverTCP checks that a socket is disturbed as a link is.
func TestFaultsOverTCP(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	c := rawSession(t, srv.Addr())
	link := srv.Client(zktest.TCPClient)
	link.Partition()
	if _, err := c.send(1, create("/held")); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := c.receive(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("partitioned: %v", err)
	}
	if _, ok := srv.Node("/held"); ok {
		t.Error("the request has passed the partition")
	}
	link.Heal()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if a, err := c.receive(); err != nil || a.err != 0 {
		t.Errorf("healed: %+v, %v", a, err)
	}
	srv.DropAfter(zktest.Match{Client: zktest.TCPClient, Op: zktest.OpPing})
	must(t, c, 11, nil, 0)
	if _, err := c.receive(); kindOfError(err) != "closed" {
		t.Errorf("dropped: %v", err)
	}
}

// TestFloodIsHeldBack lets a client ask for far more than it reads: the server
// stops reading it, serves others, and goes on when the client reads.
func TestFloodIsHeldBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		greedy, modest := memory(t, srv.Client("a")), memory(t, srv.Client("b"))
		must(t, modest, 1, body("/big", make([]byte, 1_000_000), openACL, int32(0)), 0)
		const requests = 100
		for range requests {
			if _, err := greedy.send(4, body("/big", false)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if n := srv.Count(zktest.OpGetData); n > 12 {
			t.Errorf("%d answers of a megabyte wait for the client", n)
		}
		must(t, modest, 3, body("/big", false), 0)
		for i := range int32(requests) {
			if a, err := greedy.receive(); err != nil || a.xid != i+1 || len(a.body) < 1_000_000 {
				t.Fatalf("answer %d: xid %d of %d bytes, %v", i, a.xid, len(a.body), err)
			}
		}
	})
}
