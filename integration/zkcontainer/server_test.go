package zkcontainer_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// A server keeps its address and its data over every kind of end.
func TestAddressAndDataStay(t *testing.T) {
	ctx := limited(t, 3*time.Minute)
	c := zkcontainer.Start(t, image(), zkcontainer.WithHost("127.0.0.1"))
	addr := c.Addr()
	conn, _ := dial(ctx, t, 10*time.Second, addr)
	if _, err := conn.Create("/kept", []byte("x"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct {
		name string
		f    func() error
	}{
		{"kill and start", func() error {
			check(t, c.Kill(ctx))
			return c.Start(ctx)
		}},
		{"stop and start", func() error {
			check(t, c.Stop(ctx, nil))
			check(t, c.Stop(ctx, nil))
			return c.Start(ctx)
		}},
		{"restart", func() error { return c.Restart(ctx) }},
		{"pause and unpause", func() error {
			check(t, c.Pause(ctx))
			if role, err := c.Role(limited(t, time.Second)); err == nil {
				t.Errorf("a paused server is %s", role)
			}
			check(t, c.Unpause(ctx))
			return c.Unpause(ctx)
		}},
	} {
		check(t, change.f())
		must(c.AwaitRole(ctx, zkcontainer.Standalone))(t)
		again, _ := dial(ctx, t, 10*time.Second, addr)
		if data, _, err := again.Get("/kept"); err != nil || string(data) != "x" || c.Addr() != addr {
			t.Fatalf("after %s: %q, %v, at %s and before at %s", change.name, data, err, c.Addr(), addr)
		}
		if mapped := must(c.MappedPort(ctx, "2181/tcp"))(t); addr != "127.0.0.1:"+mapped.Port() {
			t.Fatalf("after %s: the engine says port %s, the address is %s", change.name, mapped.Port(), addr)
		}
	}
}
