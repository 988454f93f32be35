package zkserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/zktest"
)

// word asks a four-letter word.
func word(tb testing.TB, addr, w string) string {
	tb.Helper()
	c := dialRaw(tb, addr)
	if _, err := c.Write([]byte(w)); err != nil {
		tb.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		tb.Fatal(err)
	}
	return string(answer)
}

// TestMembersOverTCP runs an unmodified client against the members' sockets.
func TestMembersOverTCP(t *testing.T) {
	t.Parallel()
	e := zktest.NewEnsemble(t, 3, zktest.WithTick(100*time.Millisecond), zktest.WithListen("127.0.0.1:0"))
	var addrs []string
	for i := 1; i <= e.Size(); i++ {
		addrs = append(addrs, e.Server(i).Addr())
	}
	c, _, err := zk.Connect(addrs, time.Second, zk.WithLogger(zktest.Logger{}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	for i, mode := range []string{"Mode: follower", "Mode: follower", "Mode: leader"} {
		if got := word(t, addrs[i], "srvr"); !strings.Contains(got, mode) {
			t.Errorf("member %d says %q, want %q", i+1, got, mode)
		}
	}
	for _, i := range []int{1, 2} {
		e.Server(i).Stop()
	}
	for e.Server(3).Serving() {
		runtime.Gosched()
	}
	if got := word(t, addrs[2], "ruok"); got != "imok" {
		t.Errorf("a member without a quorum answers ruok with %q", got)
	}
	if got := word(t, addrs[2], "srvr"); !strings.Contains(got, "not currently serving") {
		t.Errorf("a member without a quorum says %q", got)
	}
	if _, err := zktest.StartEnsemble(0); err == nil {
		t.Error("an ensemble of no servers was started")
	}
	if _, err := zktest.StartEnsemble(3, zktest.WithListen(addrs[2])); err == nil {
		t.Error("an ensemble listens on an address that is taken")
	}
	for _, o := range []zktest.Option{zktest.WithSyncLimit(0), zktest.WithElectionTime(0)} {
		if _, err := zktest.StartEnsemble(3, o); err == nil {
			t.Error("an impossible option was taken")
		}
	}
}

// TestEnsembleLink checks what one client's link does to its ways to members.
func TestEnsembleLink(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		link := e.Client("a")
		if link != e.Client("a") || link.Name() != "a" || len(link.Servers()) != 3 {
			t.Errorf("link %q to %v", link.Name(), link.Servers())
		}
		for address, member := range map[string]string{"zk2:2181": "zk2", "127.0.0.3:2181": "zk3", "zk1": "zk1"} {
			nc, err := link.DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			c := &raw{Conn: nc}
			if err := c.handshake(0, 30_000, 0, nil16()); err != nil || e.Server(int(c.session>>56)).Host() != member {
				t.Errorf("%s led to session %#x, %v", address, uint64(c.session), err)
			}
		}
		var unknown *net.DNSError
		for _, address := range []string{"zk4:2181", "zk0", "example.org:2181", ""} {
			if _, err := link.Dial("tcp", address, time.Second); !errors.As(err, &unknown) {
				t.Errorf("dial %q: %v, want no such host", address, err)
			}
		}
		if n := link.Cut(); n != 3 {
			t.Errorf("Cut = %d, want 3", n)
		}
		link.Refuse()
		if _, err := link.Dial("tcp", "zk2", time.Second); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v", err)
		}
		link.Accept()
		c := memory(t, link.To(2))
		for _, disturb := range []struct{ start, end func() }{
			{link.Partition, link.Heal},
			{link.PartitionReplies, link.Heal},
			{link.PartitionRequests, link.Heal},
			{link.Freeze, link.Thaw},
			{link.Pause, link.Resume},
		} {
			disturb.start()
			if _, err := c.send(3, exists("/")); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(2*time.Second, disturb.end)
			start := time.Now()
			if a, err := c.receive(); err != nil || a.err != 0 || time.Since(start) < 2*time.Second {
				t.Errorf("answer %+v, %v after %v", a, err, time.Since(start))
			}
		}
		link.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := link.Gate(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("gate: %v", err)
		}
		link.Resume()
		if err := link.Gate(t.Context()); err != nil {
			t.Errorf("gate: %v", err)
		}
		link.SetLatency(time.Second, time.Second)
		start := time.Now()
		must(t, c, 3, exists("/"), 0)
		if took := time.Since(start); took < 2*time.Second || took > 2*time.Second+10*time.Microsecond {
			t.Errorf("a round trip of %v", took)
		}
	})
}
