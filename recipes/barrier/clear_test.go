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
			a, b, c := r.double(r.connect("a"), 2, rounds), r.double(r.connect("b"), 2, rounds), r.double(r.connect("c"), 2, rounds)
			r.check(r.srv.Create("/job", nil))
			r.check(r.srv.Create(path, nil))
			r.check(r.srv.Create(ready, nil))
			rule := r.srv.BeforeReply(zktest.Match{Client: "a", Path: ready, Op: zktest.OpMulti, Nth: nth}, func(context.Context, zktest.Request) {
				r.srv.Client("a").Refuse()
				r.srv.Client("a").Cut()
			})
			one := r.enter(r.ctx, a)
			time.Sleep(time.Second)
			ms := r.inside(r.enter(r.ctx, b), r.enter(r.ctx, c))
			if nth == 2 { // a member that comes late gives the new node the version of the old one
				ms = append(ms, r.inside(r.enter(r.ctx, r.double(r.connect("d"), 2)))...)
			}
			before, _ := r.srv.Node(ready)
			r.srv.Client("a").Accept()
			waiting(r, one)
			if now, there := r.srv.Node(ready); !there || now.Stat.Czxid != before.Stat.Czxid || string(now.Data) != string(before.Data) {
				r.Errorf("the ready node of an open round has become %+v, %q; it had %q", now.Stat, now.Data, before.Data)
			}
			if rule.Fired() != 1 {
				r.Error("nothing was tested")
			}
			for _, m := range ms {
				r.check(m.Close())
			}
			_ = r.inside(one, r.enter(r.ctx, b))
		})
	}
}
