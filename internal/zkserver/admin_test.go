package zkserver_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	// Every server has been closed: nothing of the package may run on. A goroutine that a
	// server has waited for may still have its last instruction before it.
	left := running()
	for end := time.Now().Add(time.Second); left != "" && time.Now().Before(end); left = running() {
		runtime.Gosched()
	}
	if left != "" {
		fmt.Fprintf(os.Stderr, "goroutines outlive their servers:\n%s", left)
		code = max(code, 1)
	}
	os.Exit(code)
}

// running lists all goroutines if one of them is in the engine or in zktest.
func running() string {
	var b strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		panic(err)
	}
	for _, pkg := range []string{"docent/zktest.", "docent/internal/zkserver."} {
		if strings.Contains(b.String(), pkg+"(*") {
			return b.String()
		}
	}
	return ""
}

func TestAdmin(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		must(t, c, 3, body("/a/b/c", true), -101)
		if err := srv.Create("/a/b/c", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if ev, err := c.receive(); err != nil || shownEvents("", []answer{ev}) != "created /a/b/c" {
			t.Errorf("event %+v, %v", ev, err)
		}
		var oe *zktest.OpError
		if err := srv.Create("/a/b", nil); !errors.As(err, &oe) || oe.Code != zktest.CodeNodeExists {
			t.Errorf("Create of a node that is there: %v", err)
		}
		if err := srv.Create("/a/../b", nil); !errors.As(err, &oe) || oe.Code != zktest.CodeBadArguments {
			t.Errorf("Create of a bad path: %v", err)
		}
		if err := srv.SetData("/a", []byte("y")); err != nil {
			t.Error(err)
		}
		if err := srv.SetData("/none", nil); !errors.As(err, &oe) || oe.Code != zktest.CodeNoNode {
			t.Errorf("SetData of no node: %v", err)
		}
		if n, ok := srv.Node("/a"); !ok || string(n.Data) != "y" || n.Stat.Version != 1 || n.Stat.NumChildren != 1 {
			t.Errorf("Node = %+v, %v", n, ok)
		}
		if got := fmt.Sprint(srv.Children("/a"), srv.Children("/none")); got != "[b] []" {
			t.Errorf("Children = %s", got)
		}
		if err := srv.Delete("/a"); err != nil || len(srv.Tree()) != 1 {
			t.Errorf("Delete: %v, tree %v", err, srv.Tree())
		}
		if err := srv.Delete("/a"); !errors.As(err, &oe) || oe.Code != zktest.CodeNoNode {
			t.Errorf("Delete of no node: %v", err)
		}
	})
}

func TestInspection(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		var seen []string
		srv.OnRequest(func(r zktest.Request) { seen = append(seen, fmt.Sprint(r.Client, " ", r.Op, " ", r.Path, r.Result)) })
		a, b := memory(t, srv.Client("a")), memory(t, srv.Client("b"))
		must(t, a, 1, body("/e", []byte{}, openACL, int32(3)), 0)
		must(t, b, 4, body("/e0000000000", true), 0)
		must(t, b, 8, body("/", true), 0)
		must(t, b, 106, body("/r", int32(1)), 0)
		ses := srv.Sessions()
		if len(ses) != 2 || ses[0].Client != "a" || fmt.Sprint(ses[0].Ephemerals) != "[/e0000000000]" ||
			ses[0].Timeout != 20*time.Second || ses[0].ExpiresIn <= 0 || !ses[0].Connected {
			t.Errorf("Sessions = %+v", ses)
		}
		if n := srv.WatchCount(); n != 3 || len(srv.Watches()) != 3 {
			t.Errorf("WatchCount = %d, Watches %+v", n, srv.Watches())
		}
		if w := srv.Watches()[0]; w.Path != "/" || !w.Children || w.Client != "b" || w.Persistent || w.Recursive {
			t.Errorf("first watch %+v", w)
		}
		if srv.Count(zktest.OpGetData) != 1 || srv.Counts()[zktest.OpConnect] != 2 || srv.ConnCount() != 2 {
			t.Errorf("Counts = %v, connections %d", srv.Counts(), srv.ConnCount())
		}
		if got := fmt.Sprint(seen); got != "[a connect  b connect  a create /e/e0000000000 b getData /e0000000000 "+
			"b getChildren / b addWatch /r]" {
			t.Errorf("observed %s", got)
		}
		if log := srv.Log(); len(log) != 6 || log[2].Zxid != srv.Zxid() || !strings.Contains(log[2].String(), "create /e -> /e0000000000") {
			t.Errorf("Log = %v", log)
		}
		_ = b.Close()
		time.Sleep(time.Second)
		if n := srv.WatchCount(); n != 0 {
			t.Errorf("WatchCount = %d after the connection ended", n)
		}
		must(t, a, 2, body("/e0000000000", int32(-1)), 0)
		srv.ResetCounts()
		if len(srv.Counts()) != 0 || srv.EventCount() != 0 {
			t.Error("counts remain after ResetCounts")
		}
		if !strings.Contains(srv.Dump(), "node / ") {
			t.Errorf("Dump = %s", srv.Dump())
		}
	})
}

func TestListenTwice(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t, zktest.WithListen("127.0.0.1:0"))
	if _, err := srv.Listen("127.0.0.1:0"); err == nil {
		t.Error("a second Listen succeeds")
	}
	addr := srv.Addr()
	srv.Refuse()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return // the reset was as fast as the dial
	}
	defer func() { _ = c.Close() }()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil || kindOfError(err) == "timeout" {
		t.Errorf("a refused client: %v", err)
	}
}
