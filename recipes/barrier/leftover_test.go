package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

// An Enter gives up while the answer to its create is lost. The next Enter of the same
// object talks to a server that does not know that node yet, and nobody else removes it. One
// process is not counted twice.
func TestLeftoverOnLaggingServer(t *testing.T) {
	t.Parallel()
	lagging(t, func(t *testing.T, e *zktest.Ensemble, leading, _ *client.Client) {
		link := e.Client("c")
		link.To(3).Refuse()
		c := testrig.Connect(t.Context(), t, "zk1:2181,zk3:2181", link.DialContext)
		b, err := barrier.NewDistributedDoubleBarrier(c, path, 3)
		if err != nil {
			t.Fatal(err)
		}
		other, err := barrier.NewDistributedDoubleBarrier(leading, path, 3)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		go func() { _, _ = other.Enter(ctx) }() // ends with ctx
		time.Sleep(5 * time.Second)             // the third server knows all but what follows

		link.To(1).Refuse()
		link.To(3).Accept()
		short, end := context.WithCancel(t.Context())
		defer end()
		lost := e.Server(1).BeforeReply(zktest.Match{Client: "c", Op: zktest.OpCreate, PathPrefix: path}, func(context.Context, zktest.Request) {
			end()
			link.Cut()
		})
		_, err = b.Enter(short)
		testrig.WantErr(t, err, context.Canceled)
		e.Server(3).Fail(zktest.Match{Client: "c", Op: zktest.OpDelete, PathPrefix: path, Times: zktest.Always}, zktest.CodeSystemError)
		if m, err := b.Enter(ctx); err == nil {
			t.Errorf("a round of three was opened by two: %v", e.Server(1).Tree())
			_ = m.Close()
		}
		if lost.Fired() != 1 {
			t.Error("nothing was tested")
		}
	})
}
