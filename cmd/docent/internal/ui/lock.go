package ui

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// span is since when something lasts: at the earliest since from, at the latest since by.
// A zero by says that nothing is known.
type span struct{ from, by time.Time }

// contender is a node that holds a lock or waits for it.
type contender struct {
	place

	path    string
	mode    string
	holds   bool
	owner   owner
	data    string
	read    bool
	hidden  bool
	asked   bool
	session int64
	token   int64     // czxid
	since   time.Time // its node was made
	told    span      // since when it holds, by the nodes and the servers' clock
	seen    span      // the same by what was seen and the clock of this host
	held    span      // both together
}

// lock is a path on which contenders stand.
type lock struct {
	path  string
	kind  string
	queue []contender // in order, holders first
	holds int         // how many of them hold
}

// kindOf tells what lock is at a node by the names of its children, "" for none. The rules are those of
// `docent ls`.
func kindOf(n *node) string {
	kind := ""
	for name := range n.children {
		switch {
		case name == "leases" && isSemaphore(n):
			return kindSemaphore
		case kind == kindReadWrite:
		default:
			if _, ok := inLine(name, tagRead, tagWrite); ok {
				kind = kindReadWrite
			} else if _, ok := tagged(name, tagLock); ok {
				kind = kindMutex
			} else if _, ok := tagged(name, "-"+tagLatch); ok && kind == "" {
				kind = kindLatch
			}
		}
	}
	return kind
}

// waitsForPermits reports whether a node is the directory of those who wait for a semaphore.
func (n *node) waitsForPermits() bool {
	return n.name == "locks" && n.parent != nil && kindOf(n.parent) == kindSemaphore
}

func isSemaphore(n *node) bool {
	if n.children["locks"] != nil {
		return true
	}
	for name := range n.children["leases"].children {
		if _, ok := tagged(name, tagLease); ok {
			return true
		}
	}
	return false
}

// lockAt reads the queue of the lock at a node. before is what it was when the tree was
// looked at last, at the time looked, or nil; now is when the tree was read. changed is the newest
// change of the children of the node, 0 if that is not known.
func lockAt(path string, n *node, changed int64, before *lock, looked, now time.Time) *lock {
	l := &lock{path: path, kind: kindOf(n)}
	switch l.kind {
	case "":
		return nil
	case kindSemaphore:
		l.semaphore(n)
	case kindLatch:
		l.line(path, n, changed, tagLatch)
	default:
		l.line(path, n, changed, tagLock, tagRead, tagWrite, tagBare)
	}
	slices.SortStableFunc(l.queue, func(a, b contender) int { return cmp.Compare(rank(a), rank(b)) })
	l.remember(before, looked, now)
	return l
}

// rank puts holders first.
func rank(c contender) int {
	if c.holds {
		return 0
	}
	return 1
}

// semaphore has leases, which hold permits, and a queue of those who wait for one.
func (l *lock) semaphore(n *node) {
	if leases := n.children["leases"]; leases != nil {
		for _, p := range places(leases, tagLease) {
			if !protected(p.name) {
				continue
			}
			c := contenderOf(join(join(l.path, "leases"), p.name), p, leases.children[p.name])
			if c.session == 0 && c.read {
				continue // no lease, whatever its name
			}
			c.holds, c.told = true, span{c.since, c.since}
			switch {
			case !c.read:
				c.told = span{}
			case libraryOf(c.name) != "Docent":
				c.told.by = time.Time{} // Curator makes its lease first and waits then
			}
			l.add(c)
		}
	}
	if queue := n.children["locks"]; queue != nil {
		for _, p := range places(queue, tagLock, tagBare) {
			c := contenderOf(join(join(l.path, "locks"), p.name), p, queue.children[p.name])
			c.mode = "lease"
			l.add(c)
		}
	}
}

func (l *lock) add(c contender) {
	l.queue = append(l.queue, c)
	if c.holds {
		l.holds++
	}
}

// places are the contenders among the children of a node, in order.
func places(n *node, tags ...string) []place {
	var all []place
	for name := range n.children {
		if p, ok := inLine(name, tags...); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return all
}

// line is a queue in one directory: whoever nobody blocks holds.
func (l *lock) line(path string, n *node, changed int64, tags ...string) {
	excluded, shared := "", "" // the keys of the first contender that is no reader, and of the first of all
	all := places(n, tags...)
	times := timesOf(all, n)
	ahead, last := 0, "" // a downgraded read has the number of its write
	newest := int64(0)   // of the nodes ahead
	for _, p := range all {
		c := contenderOf(join(path, p.name), p, n.children[p.name])
		if p.tag == tagRead {
			c.holds = excluded == "" || excluded >= p.key // a downgraded read has the write's number
		} else {
			c.holds = shared == "" || shared >= p.key
			excluded = cmp.Or(excluded, p.key)
		}
		shared = cmp.Or(shared, p.key)
		if c.holds && c.read {
			c.told = heldBy(c, times, changed, ahead, newest)
		}
		if l.add(c); p.key != last {
			ahead, last = ahead+1, p.key
		}
		if newest = max(newest, c.token); !c.read {
			newest = math.MaxInt64 // nothing tells
		}
	}
}

// instant is when a transaction was, by the servers' clock.
type instant struct {
	zxid int64
	at   time.Time
}

// timesOf are the instants at which the nodes of contenders were made, in order.
func timesOf(all []place, n *node) []instant {
	times := make([]instant, 0, len(all))
	for _, p := range all {
		if c := n.children[p.name]; c.read {
			times = append(times, instant{c.stat.Czxid, time.UnixMilli(c.stat.Ctime)})
		}
	}
	slices.SortFunc(times, func(a, b instant) int { return cmp.Compare(a.zxid, b.zxid) })
	return times
}

// heldBy is since when a holder holds, as far as its directory tells. ahead is how many
// contenders are ahead of it, and newest the zxid of the newest of them. It holds at the latest since
// the last change of the directory's children, and that was at the latest when the next node that is
// known was made. If all that were ever ahead of a holder still are, it holds since its own node was
// made. The read node of a downgrade is younger than its number.
func heldBy(c contender, times []instant, changed int64, ahead int, newest int64) span {
	if c.token == changed || newest < c.token && fmt.Sprintf("%010d", ahead) == c.key {
		return span{c.since, c.since}
	}
	s := span{from: c.since}
	for _, t := range times {
		if t.zxid >= changed && changed > 0 {
			if !t.at.Before(c.since) { // else two servers have stamped them, whose clocks differ
				s.by = t.at
			}
			break
		}
	}
	return s
}

// contenderOf is what a node says of its contender.
func contenderOf(path string, p place, n *node) contender {
	c := contender{place: p, path: path, mode: modeOf(p.tag), read: n.read && !n.hidden, hidden: n.hidden}
	if c.read {
		c.data = n.data
		c.owner, c.asked = n.owner, n.asked
		c.session, c.token, c.since = n.session(), n.stat.Czxid, time.UnixMilli(n.stat.Ctime)
	}
	return c
}

func modeOf(tag string) string {
	switch tag {
	case tagRead:
		return "read"
	case tagWrite:
		return "write"
	case tagLease:
		return "lease"
	}
	return "exclusive"
}

// remember adds what was seen before: who was seen to hold holds since then at the latest, and
// who was seen to wait holds since then at the earliest.
func (l *lock) remember(before *lock, looked, now time.Time) {
	was := map[string]*contender{}
	if before != nil {
		for i := range before.queue {
			was[before.queue[i].path] = &before.queue[i]
		}
	}
	for i := range l.queue {
		c := &l.queue[i]
		if !c.holds {
			continue
		}
		switch old := was[c.path]; {
		case old == nil, old.read && (!c.read || old.token != c.token): // a number alone comes again in a new directory
		case old.holds:
			c.told, c.seen = c.told.narrow(old.told), old.seen
		default:
			c.seen.from = looked
		}
		if c.seen.by.IsZero() {
			c.seen.by = now
		}
		c.held = c.told.with(c.seen)
	}
}

// with is the span within what the nodes tell and what was seen. If they contradict each other by
// two hosts' clocks, it is what was seen.
func (s span) with(seen span) span {
	if !s.from.IsZero() && s.from.Equal(s.by) {
		return s
	}
	if both := seen.narrow(s); !both.from.After(both.by) {
		return both
	}
	return seen
}

// narrow is the span within both.
func (s span) narrow(o span) span {
	if o.from.After(s.from) {
		s.from = o.from
	}
	if !o.by.IsZero() && (s.by.IsZero() || o.by.Before(s.by)) {
		s.by = o.by
	}
	return s
}

// waiters is how many wait.
func (l *lock) waiters() int { return len(l.queue) - l.holds }

// oldestWait is the contender that waits longest, nil if none is known.
func (l *lock) oldestWait() *contender {
	var oldest *contender
	for i := range l.queue {
		if c := &l.queue[i]; !c.holds && c.read && (oldest == nil || c.since.Before(oldest.since)) {
			oldest = c
		}
	}
	return oldest
}

// holder is the first that holds, nil if none does.
func (l *lock) holder() *contender {
	if l.holds == 0 {
		return nil
	}
	return &l.queue[0]
}
