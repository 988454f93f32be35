package zkserver_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
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

// TestStopClosesThePort checks that a stopped process has no port, and has the same one
// when it runs again.
func TestStopClosesThePort(t *testing.T) {
	t.Parallel()
	ensemble := zktest.NewEnsemble(t, 3, zktest.WithElectionTime(time.Millisecond))
	for name, srv := range map[string]interface {
		Stop()
		Resume()
		Addr() string
		Refuse()
		Accept()
	}{"server": zktest.NewServer(t), "member": ensemble.Server(1)} {
		addr := srv.Addr()
		ask := func() string {
			c, err := net.DialTimeout("tcp", addr, 10*time.Second)
			if err != nil {
				return kindOfError(err)
			}
			defer func() { _ = c.Close() }()
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = c.Write([]byte("ruok"))
			answer, _ := io.ReadAll(c)
			return string(answer)
		}
		for range 20 {
			if got := ask(); got != "imok" {
				t.Fatalf("%s: a server that runs: %s", name, got)
			}
			srv.Stop()
			srv.Stop()
			if c, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatalf("%s: a server that is stopped: %v, %v", name, c, err)
			}
			if got := srv.Addr(); got != addr {
				t.Fatalf("%s: the address is %s and was %s", name, got, addr)
			}
			srv.Resume()
			srv.Resume()
		}
		srv.Refuse()
		if got := ask(); got == "imok" {
			t.Errorf("%s: a server that refuses: %s", name, got)
		}
		srv.Accept()
		if got := ask(); got != "imok" {
			t.Errorf("%s: a server that accepts: %s", name, got)
		}
	}
}

// TestPortOfAStoppedServer checks that a stopped server can be given a port, which it has
// when it runs, and that it waits for a port that another process has taken.
func TestPortOfAStoppedServer(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	srv.Stop()
	addr := srv.Addr()
	other, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatalf("the port of a stopped server is taken: %v", err)
	}
	srv.Resume()
	_ = other.Close()
	for begun := time.Now(); ; {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Since(begun) > 30*time.Second {
			t.Fatal(err)
		}
	}
}
