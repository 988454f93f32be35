package zkserver_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/zktest"
)

// connect opens a session of go-zookeeper through a link.
func connect(t *testing.T, link *zktest.ClientLink, timeout time.Duration) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	return connectThrough(t, link, link.Servers(), timeout)
}

// connectThrough opens a session to some of a link's servers.
func connectThrough(t *testing.T, link zktest.Link, servers []string, timeout time.Duration) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	opts := zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)
	opts = append(opts, zk.WithMaxBufferSize(1<<16), zk.WithMaxConnBufferSize(1<<16))
	c, events, err := zk.Connect(servers, timeout, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for ev := range events {
		if ev.State == zk.StateHasSession {
			break
		}
	}
	return c, events
}

func TestBasicOverTCP(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t, zktest.WithTick(100*time.Millisecond))
	c, _, err := zk.Connect([]string{srv.Addr()}, time.Second, zk.WithLogger(zktest.Logger{}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Create("/a", []byte("x"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/a/n0000000000", "/a/n0000000001"} {
		got, err := c.Create("/a/n", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil || got != want {
			t.Fatalf("Create = %q, %v, want %q", got, err, want)
		}
	}
	kids, st, err := c.Children("/a")
	slices.Sort(kids)
	if err != nil || !slices.Equal(kids, []string{"n0000000000", "n0000000001"}) || st.Cversion != 2 {
		t.Fatalf("Children = %v, %+v, %v", kids, st, err)
	}
	if err := c.Delete("/a", -1); !errors.Is(err, zk.ErrNotEmpty) {
		t.Fatalf("Delete = %v, want %v", err, zk.ErrNotEmpty)
	}
	if ok, err := zk.FLWRuok([]string{srv.Addr()}, time.Second), error(nil); !ok[0] {
		t.Fatalf("FLWRuok = %v, %v", ok, err)
	}
}

func TestExpiryInVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithTick(3*time.Second),
			zktest.WithSessionTimeouts(time.Second, 2*time.Minute),
			zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		a, _ := connect(t, srv.Client("a"), time.Minute)
		b, _ := connect(t, srv.Client("b"), time.Minute)
		if _, err := a.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		_, _, gone, err := b.GetW("/e")
		if err != nil {
			t.Fatal(err)
		}
		srv.Client("a").Partition()
		start := time.Now()
		if ev := <-gone; ev.Type != zk.EventNodeDeleted {
			t.Fatalf("event %v, want a deletion", ev)
		}
		if took := time.Since(start); took < 40*time.Second || took > 64*time.Second {
			t.Errorf("expired after %v", took)
		}
		srv.Client("a").Heal()
	})
}
