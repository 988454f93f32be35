package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
)

// silence is a fault of one server that resets no connection.
type silence struct {
	name   string
	strike func(*harness.Node, context.Context) error
}

// The holders hear nothing from their server any more, or it nothing from
// them. Two followers are struck at the same time, since the waiters need
// neither.
func TestSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20*time.Minute)
	x := extentOf()
	var seen table
	for range x.others() {
		leader, followers := w.ready()
		w.silence(&seen, x, leader.Addr(), map[*harness.Node]silence{
			followers[0]: {"follower frozen", (*harness.Node).Pause},
			followers[1]: {"silent drop both ways", (*harness.Node).CutClients},
		})
		leader, followers = w.ready()
		w.silence(&seen, x, leader.Addr(), map[*harness.Node]silence{
			followers[0]: {"silent drop of requests", (*harness.Node).CutFromClients},
			followers[1]: {"silent drop of answers", (*harness.Node).CutToClients},
		})
		leader, followers = w.ready()
		w.silence(&seen, x, addrs(followers...), map[*harness.Node]silence{
			leader: {"leader frozen", (*harness.Node).Pause},
		})
	}
	seen.safe(w)
}

// silence plays one round; spared is where the waiters are.
func (w *world) silence(into *table, x extent, spared string, faults map[*harness.Node]silence) {
	w.Helper()
	waiter, done := w.connect(spared, 20*tick)
	defer done()
	var sides []side
	for n, f := range faults {
		sides = append(sides, side{f.name, n.Addr(), client.LeasePolicy{}, x.holders, false})
	}
	all := w.duels(waiter, x.timeouts, sides...)
	defer over(all)
	w.age(all)
	for n, f := range faults {
		w.check(f.strike(n, w.ctx))
	}
	w.judge(into, all)
	w.healed()
}
