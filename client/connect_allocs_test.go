package client_test

import (
	"runtime"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// The memory of a session is little more than go-zookeeper's two buffers of 1.5 MiB, of
// which most is never touched. A third one, thrown away at once, would be reused and
// touched: 600 KiB of resident memory for each session of a process with many.
func TestMemoryOfASession(t *testing.T) { //nolint:paralleltest // measures the memory of the process
	const sessions, most = 10, 3300 << 10
	srv := zktest.NewServer(t, zktest.WithLogSize(0))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range sessions {
		c, err := client.Connect(t.Context(), "zk", client.WithDialer(srv.Client("docent").DialContext), testrig.Quiet())
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseContext(t.Context()) //nolint:errcheck // the test is over
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / sessions; got > most {
		t.Errorf("a session allocates %d KiB, want %d at most", got>>10, most>>10)
	}
}

// Larger requests still fit.
func TestMemoryForLargerRequests(t *testing.T) {
	t.Parallel()
	const large = 3 << 20
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithMaxRequest(large))
		if _, err := c.Conn().Create("/large", make([]byte, large-1000), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Error(err)
		}
	}, zktest.WithMaxFrame(large))
}
