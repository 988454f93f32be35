package lease_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/internal/zoodefs"
)

// window is how long requests are counted.
const window = 20 * time.Second

// A holding session costs one transaction for each heartbeat, and none while
// nothing is held, or for holds that are shorter than the period.
func TestHeartbeatCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5*time.Minute)
	_, followers := w.ready()
	timeouts := []time.Duration{4 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second}
	w.together(len(timeouts), func(i int) { w.cost(followers[0], timeouts[i]) })
}

func (w *world) cost(node *harness.Node, timeout time.Duration) {
	const locks, short = 3, 300
	px := proxy.Start(w, node.Addr())
	c, done := w.connect(px.Addr(), timeout)
	defer done()
	beat := min(timeout/6, 5*time.Second)

	dir := w.directory()
	slow := 0 // cycles that may have lasted until a heartbeat was due
	began := time.Now()
	for range short {
		cycle := time.Now()
		h, err := w.mutex(c, dir).Acquire(w.ctx)
		if err == nil {
			err = h.Release(w.ctx)
		}
		w.check(err)
		if time.Since(cycle) > beat/4 {
			slow++
		}
	}
	took := time.Since(began)
	brief := px.Stats().Requests[zoodefs.OpMulti]
	px.ResetStats()
	<-time.After(2 * beat)
	idle := px.Stats().Requests[zoodefs.OpMulti]

	for range locks {
		_, err := w.mutex(c, w.directory()).Acquire(w.ctx)
		w.check(err)
	}
	w.watching(node, c, locks)
	px.ResetStats()
	<-time.After(window)
	seen := px.Stats()
	n := seen.Requests[zoodefs.OpMulti]
	all := 0
	for _, k := range seen.Requests {
		all += k
	}
	rate := func(n int) float64 { return float64(n) / window.Seconds() }
	w.Logf("T=%-4v %d holds of one session: %.2f heartbeats/s (one each %v would be %.2f/s), %.2f requests/s with pings; %d heartbeats in %d holds of %v (%d were slow), %d in %v without",
		timeout, locks, rate(n), ms(beat), 1/beat.Seconds(), rate(all), brief, short, ms(took/short), slow, idle, ms(2*beat))
	// The period may be halved while the lease is short of time.
	if least := int(window/beat) - 1; n < least || n > 2*least+2 {
		w.Errorf("T=%v: %d heartbeats in %v, want one each %v", timeout, n, window, beat)
	}
	if all > n+int(3*window/timeout)+2 {
		w.Errorf("T=%v: %d requests besides %d heartbeats: %v", timeout, all-n, n, seen.Requests)
	}
	if brief > slow || idle > 0 {
		w.Errorf("T=%v: %d heartbeats for short holds of which %d were slow, %d for none", timeout, brief, slow, idle)
	}
}

// watching waits until a client watches the nodes of its n holds: nothing more is asked
// for them after that.
func (w *world) watching(node *harness.Node, c *client.Client, n int) {
	w.Helper()
	session, err := c.Session(w.ctx)
	w.check(err)
	w.check(w.eventually(func() error {
		table, err := node.WatchesBySession(w.ctx)
		if err == nil && len(table[session.ID()]) < n {
			err = fmt.Errorf("%d watches of %d", len(table[session.ID()]), n)
		}
		return err
	}))
}
