package zkserver_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// TestStallReply checks that the connection falls silent with the request
// applied, and that what was held comes when the link heals.
func TestStallReply(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		link := srv.Client("a")
		c := memory(t, link)
		srv.StallReply(zktest.Match{Op: zktest.OpCreate})
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, _, err := c.call(1, create("/a")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("stalled: %v", err)
		}
		if _, ok := srv.Node("/a"); !ok {
			t.Error("the request was not applied")
		}
		_ = c.SetReadDeadline(time.Time{})
		link.Heal()
		if a, err := c.receive(); err != nil || a.xid != 1 {
			t.Errorf("healed: %+v, %v", a, err)
		}
	})
}

func TestWholeServerPartition(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		srv.Partition()
		srv.Client("a").Partition() // outlasts the server's own
		if _, err := c.send(1, create("/a")); err != nil {
			t.Fatal(err)
		}
		if _, err := srv.Client("b").Dial("", "", time.Second); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("dial: %v", err)
		}
		srv.Heal()
		memory(t, srv.Client("b"))
		time.Sleep(time.Second)
		if _, ok := srv.Node("/a"); ok {
			t.Error("the client's own partition has ended with the server's")
		}
		srv.Client("a").Heal()
		if a, err := c.receive(); err != nil || a.err != 0 {
			t.Errorf("healed: %+v, %v", a, err)
		}
	})
}

func TestOneClientRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		link := srv.Client("a")
		link.Refuse()
		if _, err := link.Dial("", "", 0); !errors.Is(err, syscall.ECONNREFUSED) || link.Name() != "a" {
			t.Errorf("dial: %v", err)
		}
		memory(t, srv.Client("b"))
		link.Accept()
		memory(t, link)
	})
}

func TestRulesGo(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		first := srv.Fail(zktest.Match{Times: zktest.Always}, zktest.CodeSystemError)
		must(t, c, 3, body("/", false), -1)
		must(t, c, 3, body("/", false), -1)
		first.Remove()
		must(t, c, 3, body("/", false), 0)
		srv.Fail(zktest.Match{Times: zktest.Always}, zktest.CodeSystemError)
		srv.ClearRules()
		must(t, c, 3, body("/", false), 0)
		if n := first.Fired(); n != 2 {
			t.Errorf("Fired = %d, want 2", n)
		}
		only := srv.Fail(zktest.Match{
			Client: "a", Session: c.session, Op: zktest.OpExists,
			Where: func(r zktest.Request) bool { return r.Watch },
		}, zktest.Code(-12345))
		must(t, c, 3, body("/", false), 0)
		must(t, c, 3, body("/", true), -12345)
		if only.Fired() != 1 {
			t.Errorf("Fired = %d, want 1", only.Fired())
		}
	})
}

func TestSuperUser(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		must(t, c, 1, body("/p", []byte{}, []rawACL{{1, "digest", "u:" + digestOf("u:p")}}, int32(0)), 0)
		must(t, c, 4, body("/p", false), -102)
		must(t, c, 100, body(int32(0), "digest", []byte("admin:pw")), 0)
		must(t, c, 4, body("/p", false), 0)
		must(t, c, 7, body("/p", openACL, int32(-1)), 0)
		if log := srv.Log(); len(log) != 0 {
			t.Errorf("log of size 0 holds %v", log)
		}
	}, zktest.WithSuperDigest("admin:"+digestOf("admin:pw")), zktest.WithLogSize(0))
}
