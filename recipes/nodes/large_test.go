package nodes_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// The servers take less than the client: they hang up on the request that makes the node. All
// that the client holds is without a connection then, so that must be rare. Data that fits is
// written at once.
func TestServersHangUpOnTheNode(t *testing.T) {
	t.Parallel()
	for _, tt := range modes() {
		bubble(t, func(r *rig) {
			var dials atomic.Int32
			c := r.Connect("a", client.WithObserver(client.Observer{Dial: func(client.DialInfo) { dials.Add(1) }}))
			n, err := nodes.NewPersistentNode(c, tt.mode, nodePath, make([]byte, 20<<10), lazily(tt.opts...)...)
			r.Check(err)
			r.Check(n.Start(r.Ctx))
			time.Sleep(20 * time.Minute)
			if got := dials.Load(); got < 3 || got > 20 {
				r.Errorf("%v: %d connections in 20 minutes", tt.mode, got)
			}
			r.Check(n.Set(r.Within(10*time.Second), []byte("two")))
			r.wantOurs(c, n, "two")
			before := dials.Load()
			testrig.WantErr(t, n.Set(r.Within(20*time.Minute), make([]byte, 20<<10)), context.DeadlineExceeded)
			if got := dials.Load() - before; got > 20 {
				r.Errorf("%v: %d connections in 20 minutes of Set", tt.mode, got)
			}
			r.Check(n.CloseContext(r.Within(time.Minute)))
			r.closed(n)
		}, zktest.WithMaxFrame(8<<10))
	}
}
