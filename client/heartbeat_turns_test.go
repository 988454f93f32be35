package client_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// A holding with more nodes than fit into one heartbeat is not lost for that:
// each has its turn.
func TestHeartbeatsTakeTurnsInOneHolding(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		const many, most = 2000, 65
		paths := make([]string, many)
		for i := range paths {
			path, err := s.Create(r.Ctx, "/n", nil, client.Ephemeral(), client.Sequential())
			r.Check(err)
			paths[i] = path
		}
		h := r.holdAs(s, paths...)
		var longest atomic.Int64
		r.Srv.OnRequest(func(q zktest.Request) {
			if q.Op == zktest.OpMulti {
				longest.Store(max(longest.Load(), int64(len(q.Paths))))
			}
		})
		time.Sleep(3 * testrig.SessionTimeout)
		r.Check(h.Err())
		if n := longest.Load(); n == 0 || n > most {
			t.Errorf("%d nodes in one heartbeat", n)
		}
		r.Check(h.Confirm(r.Ctx))
		r.Check(r.Srv.Delete(paths[many-1]))
		testrig.WantErr(t, r.loss(h), zk.ErrNoNode)
	})
}
