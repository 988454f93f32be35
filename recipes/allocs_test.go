package recipes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// moreAllocations is how many more allocations than go-zookeeper's own lock the
// mutex may make to take a free lock and release it. It is negative if the mutex
// makes fewer. Both locks send the same three requests to the same server. So
// what the server and go-zookeeper allocate for them is not in the difference. It is -34 or
// -35: the averages are cut to whole numbers.
const moreAllocations = -33

// leastAllocs is how often f allocates. Heartbeats of the process allocate too, and on a loaded
// machine more of them come within the runs of f. So the least of some rounds counts.
func leastAllocs(f func()) float64 {
	least := testing.AllocsPerRun(100, f)
	for range 4 {
		least = min(least, testing.AllocsPerRun(100, f))
	}
	return least
}

func TestAllocationsOfAFreeLock(t *testing.T) { //nolint:paralleltest // counts the allocations of the process
	srv := zktest.NewServer(t, zktest.WithLogSize(0))
	link := srv.Client("docent")
	c := testrig.Connect(t.Context(), t, "zk", link.DialContext)
	m, err := recipes.NewInterProcessMutex(c, "/docent")
	if err != nil {
		t.Fatal(err)
	}
	own := leastAllocs(func() {
		h, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})

	link = srv.Client("go-zookeeper")
	conn, _, err := zk.Connect(link.Servers(), testrig.SessionTimeout, zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	l := zk.NewLock(conn, "/peer", zk.WorldACL(zk.PermAll))
	peer := leastAllocs(func() {
		if err := l.Lock(); err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("allocations of a cycle: %v, of go-zookeeper's lock %v, both with the server's", own, peer)
	if more := own - peer; more > moreAllocations {
		t.Errorf("a cycle allocates %v times more often than go-zookeeper's lock, want %d at most", more, moreAllocations)
	}
}

// An acquire without an observer allocates nothing for hooks.
func TestAllocationsWithoutHooks(t *testing.T) { //nolint:paralleltest // counts the allocations of the process
	srv := zktest.NewServer(t, zktest.WithLogSize(0))
	link := srv.Client("docent")
	for name, tt := range map[string]struct {
		observer client.Observer
		free     bool
	}{
		"no hooks":        {client.Observer{}, true},
		"hooks of others": {client.Observer{Heartbeat: func(client.HeartbeatInfo) {}, Dial: func(client.DialInfo) {}}, true},
		"the hook of locks": {client.Observer{Lock: func(ctx context.Context, _ client.LockInfo) (context.Context, client.LockHooks) {
			return ctx, client.LockHooks{}
		}}, false},
	} {
		c := testrig.Connect(t.Context(), t, "zk", link.DialContext, client.WithObserver(tt.observer))
		m, err := recipes.NewInterProcessMutex(c, "/docent")
		if err != nil {
			t.Fatal(err)
		}
		h, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := testing.AllocsPerRun(100, func() { recipes.Observed(t.Context(), c, h) })
		if (got == 0) != tt.free {
			t.Errorf("%s: %v allocations", name, got)
		}
		if err := errors.Join(h.Close(), c.Close()); err != nil {
			t.Error(err)
		}
	}
}
