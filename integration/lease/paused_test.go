package lease_test

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/fence"
)

// wakeUp bounds the time from when a stopped process goes on until the timer
// behind a hold's context has run, on a busy machine.
const wakeUp = time.Second

// A process that is stopped for a part of its session keeps its holds. A process
// that is stopped for longer finds them lost when it goes on. If it asks its
// holds, it never takes a lost one for good. A resource that checks tokens
// refuses what the process had begun to write.
func TestPausedHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10*time.Minute)
	x := extentOf()
	leader, followers := w.ready()
	waiter, done := w.connect(leader.Addr(), 20*tick)
	defer done()
	w.together(len(x.timeouts), func(i int) {
		for range x.others() {
			w.pause(waiter, followers[0].Addr(), x.timeouts[i], 2*x.holders)
		}
	})
}

// bearable is a pause that every lease outlives, even if it begins when a
// heartbeat was just about to be sent.
func bearable(timeout time.Duration) time.Duration {
	if timeout < easy {
		return timeout / 20
	}
	return timeout / 6
}

func (w *world) pause(waiter *client.Client, server string, timeout time.Duration, locks int) {
	p := w.start(server, timeout, locks)
	next := p.followers(func(dir string) grant { return w.next(waiter, dir) })

	p.signal(syscall.SIGSTOP)
	w.pass(bearable(timeout))
	p.signal(syscall.SIGCONT)
	w.pass(timeout / 2)
	p.tell(sayBelief)
	lost := 0
	for heard := 0; heard < locks; {
		switch p.hear().Kind {
		case ended:
			lost++
		case belief:
			heard++
		}
	}
	if lost > 0 {
		w.Errorf("T=%v: %d of %d holds were lost by a pause of %v", timeout, lost, locks, bearable(timeout))
		return
	}

	p.signal(syscall.SIGSTOP)
	var gate fence.Gate
	grants := make([]grant, locks)
	for i, c := range next {
		grants[i] = w.granted(c, timeout+time.Minute)
		w.check(gate.Check(p.locks[i], grants[i].hold.FencingToken()))
	}
	w.pass(tick / 2)
	woken := time.Now()
	p.signal(syscall.SIGCONT)
	var asked, looked []time.Duration
	for range locks {
		e := p.await(ended)
		if after := e.At.Sub(woken); asks(e.Lock) {
			asked = append(asked, after)
		} else {
			looked = append(looked, after)
		}
		// It was about to write when it was stopped, and does so now.
		if err := gate.Check(p.locks[e.Lock], p.tokens[e.Lock]); !errors.Is(err, fence.ErrStale) {
			w.Errorf("T=%v: a late write was not refused: %v", timeout, err)
		}
	}
	p.tell(sayBelief)
	var deceived []time.Duration
	for range locks {
		e := p.await(belief)
		late := e.At.Sub(grants[e.Lock].at)
		switch {
		case late > 0 && asks(e.Lock):
			w.Errorf("T=%v: Err was nil %v after the next one held", timeout, late)
		case late > 0:
			deceived = append(deceived, e.At.Sub(woken))
		}
	}
	slices.Sort(asked)
	slices.Sort(looked)
	slices.Sort(deceived)
	w.Logf("T=%v: kept for a pause of %v; stopped past its session the context ended %v to %v after waking for holders that ask Err, %v to %v for the others; of the others %d took it for good after waking, the last %v later",
		timeout, bearable(timeout), ms(asked[0]), ms(asked[len(asked)-1]), ms(looked[0]), ms(looked[len(looked)-1]),
		len(deceived), ms(last(deceived)))
	if d := max(asked[len(asked)-1], looked[len(looked)-1]); d > wakeUp {
		w.Errorf("T=%v: %v after waking a context was not done", timeout, d)
	}
}

func last(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return d[len(d)-1]
}

// next waits for a lock that a process holds.
func (w *world) next(c *client.Client, dir string) grant {
	h, err := w.mutex(c, dir).Acquire(w.ctx)
	return grant{at: time.Now(), hold: h, err: err}
}
