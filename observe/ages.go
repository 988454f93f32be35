package observe

import (
	"sync"
	"time"
)

// ages knows since when each of several things goes on, and so how old the oldest is. A zero
// ages is ready. It is safe for concurrent use.
type ages struct {
	mu          sync.Mutex
	first, last *age // in the order in which they have begun
}

// age is a thing that goes on while it is in a list. A zero age is in none.
type age struct {
	since      time.Time
	in         *ages
	prev, next *age
}

// begin puts a, which is in no list, behind all others.
func (l *ages) begin(a *age) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*a = age{since: time.Now(), in: l, prev: l.last}
	if l.last == nil {
		l.first = a
	} else {
		l.last.next = a
	}
	l.last = a
}

// end takes a out of its list. A second call does nothing.
func (a *age) end() {
	l := a.in
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.prev == nil {
		l.first = a.next
	} else {
		a.prev.next = a.next
	}
	if a.next == nil {
		l.last = a.prev
	} else {
		a.next.prev = a.prev
	}
	*a = age{}
}

// oldest is the age of the oldest in seconds, 0 if there is none.
func (l *ages) oldest() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		return 0
	}
	return time.Since(l.first.since).Seconds()
}

// timeouts are the timeouts of sessions, by how many sessions have them.
type timeouts struct {
	mu  sync.Mutex
	all map[time.Duration]int
}

// moved takes a session from one timeout to another. 0 is no session.
func (t *timeouts) moved(from, to time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[time.Duration]int{}
	}
	if t.all[from]--; t.all[from] <= 0 {
		delete(t.all, from)
	}
	if to != 0 {
		t.all[to]++
	}
}

// shortest is the shortest timeout in seconds, 0 without a session.
func (t *timeouts) shortest() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var least time.Duration
	for d := range t.all {
		if least == 0 || d < least {
			least = d
		}
	}
	return least.Seconds()
}
