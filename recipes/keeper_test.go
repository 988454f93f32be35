package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// onKeeper is bubble with a ClickHouse Keeper that knows containers.
func onKeeper(t *testing.T, f func(ctx context.Context, srv *zktest.Server, connect func(name string) *client.Client)) {
	t.Helper()
	bubbleWith(t, func(r *rig) {
		f(r.Ctx, r.Srv, func(name string) *client.Client { return r.Connect(name) })
	}, zktest.WithProfile(zktest.ClickHouseKeeper))
}

// A container among the leases is no lease and has no session, although Keeper
// shows an owner of it.
func TestContainerAmongLeases(t *testing.T) {
	t.Parallel()
	onKeeper(t, func(ctx context.Context, srv *zktest.Server, connect func(string) *client.Client) {
		const name = "/pool/leases/_c_0c708091-6d54-4320-8594-f6fdb71d5f95-lease-0000000001"
		link := srv.Client("operator")
		conn, _, err := zk.Connect(link.Servers(), 10*time.Second, zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, path := range []string{"/pool", "/pool/leases", name} {
			if _, err := conn.CreateContainer(path, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		if n, _ := srv.Node(name); n.Stat.EphemeralOwner >= 0 {
			t.Fatalf("owner %x", n.Stat.EphemeralOwner)
		}
		s, err := recipes.NewInterProcessSemaphoreV2(connect("a"), "/pool", 1)
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.TryAcquire(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.Queue(ctx)
		if err != nil || len(all) != 1 || all[0].Path != l.Path() {
			t.Errorf("holders %v, %v", all, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A holder hears of a lost connection at once. The next waiter gets the lock when
// the holder has released it, long before the session would have expired.
func TestMutexOnKeeper(t *testing.T) {
	t.Parallel()
	onKeeper(t, func(ctx context.Context, srv *zktest.Server, connect func(string) *client.Client) {
		take := func(c *client.Client) (*recipes.Hold, error) {
			m, err := recipes.NewInterProcessMutex(c, "/locks/a")
			if err != nil {
				return nil, err
			}
			return m.Acquire(ctx)
		}
		first, err := take(connect("a"))
		if err != nil {
			t.Fatal(err)
		}
		b := connect("b")
		begun := time.Now()
		srv.CutAll()
		<-first.Context().Done()
		testrig.WantErr(t, context.Cause(first.Context()), recipes.ErrLost, client.ErrSessionLost)
		testrig.WantErr(t, first.Close(), recipes.ErrLost)
		next, err := take(b)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("granted after %v", took)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	})
}
