package main

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// Servers of ZooKeeper 3.9.0 to 3.9.2 read the byte for read-only servers, and hang up without it.
func TestLoginQuestionIsWholeHandshake(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test is over
	asked := make(chan int, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			asked <- -1
			return
		}
		size := make([]byte, 4)
		_, _ = io.ReadFull(conn, size)
		asked <- int(binary.BigEndian.Uint32(size))
		_ = conn.Close()
	}()
	if _, err := new(target).logins(t.Context(), l.Addr().String()); err == nil {
		t.Error("the server has hung up")
	}
	if n := <-asked; n != 45 {
		t.Errorf("a handshake of %d bytes, want 45", n)
	}
}

// A server that cannot be asked does not hide that another wants a login.
func TestLoginFindingKeepsFailure(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	_ = l.Close()
	wants := server(t, zktest.WithSASLUser("ops", "s3cret"), zktest.WithRequiredAuth()).Addr()
	for _, servers := range []string{wants + "," + dead, dead + "," + wants} {
		c, err := client.Connect(t.Context(), servers, client.WithLazyConnect())
		if err != nil {
			t.Fatal(err)
		}
		if f := new(target).loginFinding(t.Context(), c); f.Result != fail {
			t.Errorf("%s: %+v", servers, f)
		}
		_ = c.Close()
	}
}
