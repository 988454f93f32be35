package client_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// A holding with more nodes than fit into one heartbeat is not lost for that:
// each has its turn.
func TestHeartbeatsTakeTurnsInOneHolding(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		s := r.session(c)
		const many, most = 2000, 65
		paths := make([]string, many)
		for i := range paths {
			path, err := s.Create(r.ctx, "/n", nil, client.Ephemeral(), client.Sequential())
			r.check(err)
			paths[i] = path
		}
		h := r.holdAs(s, paths...)
		var longest atomic.Int64
		r.srv.OnRequest(func(q zktest.Request) {
			if q.Op == zktest.OpMulti {
				longest.Store(max(longest.Load(), int64(len(q.Paths))))
			}
		})
		time.Sleep(3 * sessionTimeout)
		r.check(h.Err())
		if n := longest.Load(); n == 0 || n > most {
			t.Errorf("%d nodes in one heartbeat", n)
		}
		r.check(h.Confirm(r.ctx))
		r.check(r.srv.Delete(paths[many-1]))
		wantErr(t, r.loss(h), zk.ErrNoNode)
	})
}
