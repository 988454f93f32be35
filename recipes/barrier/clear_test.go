package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

// A member removes the ready node that a crash has left, and the answer to one of its two
// writes is lost. Others have opened the next round when it is connected again. It leaves
// their ready node as it is.
func TestClearAnswerLost(t *testing.T) {
	t.Parallel()
	for nth := 1; nth <= 2; nth++ {
		bubble(t, func(r *rig) {
			rounds := barrier.WithRounds()
			a, b, c := r.double(r.Connect("a"), 2, rounds), r.double(r.Connect("b"), 2, rounds), r.double(r.Connect("c"), 2, rounds)
			r.Check(r.Srv.Create("/job", nil))
			r.Check(r.Srv.Create(path, nil))
			r.Check(r.Srv.Create(ready, nil))
			rule := r.Srv.BeforeReply(zktest.Match{Client: "a", Path: ready, Op: zktest.OpMulti, Nth: nth}, func(context.Context, zktest.Request) {
				r.Srv.Client("a").Refuse()
				r.Srv.Client("a").Cut()
			})
			one := r.enter(r.Ctx, a)
			time.Sleep(time.Second)
			ms := r.inside(r.enter(r.Ctx, b), r.enter(r.Ctx, c))
			if nth == 2 { // a member that comes late gives the new node the version of the old one
				ms = append(ms, r.inside(r.enter(r.Ctx, r.double(r.Connect("d"), 2)))...)
			}
			before, _ := r.Srv.Node(ready)
			r.Srv.Client("a").Accept()
			waiting(r, one)
			if now, there := r.Srv.Node(ready); !there || now.Stat.Czxid != before.Stat.Czxid || string(now.Data) != string(before.Data) {
				r.Errorf("the ready node of an open round has become %+v, %q; it had %q", now.Stat, now.Data, before.Data)
			}
			if rule.Fired() != 1 {
				r.Error("nothing was tested")
			}
			for _, m := range ms {
				r.Check(m.Close())
			}
			_ = r.inside(one, r.enter(r.Ctx, b))
		})
	}
}
