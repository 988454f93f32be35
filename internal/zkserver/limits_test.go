package zkserver_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

func TestChangeLeader(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memoryConn(t, srv.Client("a"))
		if err := c.handshake(0, 4000, 0, nil16()); err != nil {
			t.Fatal(err)
		}
		must(t, c, 1, ephemeral("/e"), 0)
		srv.HoldLog()
		if _, err := c.send(1, create("/in-flight")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		srv.ChangeLeader()
		srv.ReleaseLog()
		// The answer was on its way when the connection was closed.
		if a, err := c.receive(); err != nil || a.err != 0 {
			t.Errorf("write in flight: %+v, %v", a, err)
		}
		if _, err := c.receive(); kindOfError(err) != "closed" {
			t.Errorf("after the election: %v", err)
		}
		time.Sleep(3 * time.Second)
		d := memoryConn(t, srv.Client("a"))
		if err := d.handshake(0, 4000, c.session, c.password); err != nil {
			t.Fatalf("reattach within the renewed timeout: %v", err)
		}
		must(t, d, 3, body("/e", false), 0)
		if a := must(t, d, 1, create("/x"), 0); a.zxid != 1<<32+1 {
			t.Errorf("zxid %#x, want the first of the next epoch", a.zxid)
		}
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.SetMaxConns(1)
		c := memory(t, srv.Client("a"))
		d := memoryConn(t, srv.Client("a"))
		if err := d.handshake(0, 9000, 0, nil16()); kindOfError(err) != "closed" {
			t.Errorf("one connection too many: %v", err)
		}
		memory(t, srv.Client("b"))
		must(t, c, 3, body("/", false), 0)
		srv.SetMaxConns(0)
		srv.SetSessionTimeouts(time.Second, 5*time.Second)
		e := memoryConn(t, srv.Client("a"))
		if err := e.handshake(0, 30_000, c.session, c.password); err != nil || e.timeout != 5000 {
			t.Errorf("reattach: %v, timeout %d, want the shorter one", err, e.timeout)
		}
	})
}
