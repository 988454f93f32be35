package lease_test

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// A holder that was killed is succeeded in time.
func TestCrashedHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10*time.Minute)
	x := extentOf()
	leader, followers := w.ready()
	waiter, done := w.connect(leader.Addr(), 20*tick)
	defer done()
	took := make([][]time.Duration, len(x.timeouts))
	for range x.rounds {
		w.together(len(x.timeouts), func(i int) {
			timeout := x.timeouts[i]
			p := w.start(followers[i%2].Addr(), timeout, 2*x.holders)
			next := p.followers(func(dir string) grant { return w.next(waiter, dir) })
			w.pass(timeout / 3) // into the rhythm
			killed := time.Now()
			p.signal(syscall.SIGKILL)
			for _, c := range next {
				took[i] = append(took[i], w.granted(c, timeout+time.Minute).at.Sub(killed))
			}
		})
	}
	for i, timeout := range x.timeouts {
		d := took[i]
		slices.Sort(d)
		bound := timeout + tick*3/2 + time.Second
		w.Logf("T=%-4v %d runs: taken over after %v to %v, median %v; bound %v", timeout, len(d), ms(d[0]), ms(d[len(d)-1]), ms(d[len(d)/2]), bound)
		if last(d) > bound {
			w.Errorf("T=%v: taken over after %v, want %v at most", timeout, last(d), bound)
		}
	}
}
