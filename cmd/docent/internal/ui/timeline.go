package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// What has happened to a lock.
const (
	didBegin   = "watched"  // from here on it is watched
	didQueue   = "queued"   // a contender stands in line
	didHold    = "holds"    // a contender holds
	didRelease = "left"     // a holder's node is gone: it released, was evicted or lost its session
	didEnd     = "ended"    // a holder's node is gone with all others of its session
	didEvict   = "evicted"  // a node was deleted from a page
	didGiveUp  = "gave up"  // a waiter's node is gone
	didAsk     = "asked"    // somebody has asked a contender to release
	didPass    = "passed"   // contenders came and went between two looks
	didVanish  = "vanished" // the lock has no contenders any more
)

// happening is an event in the timeline of a lock. It happened after from and at the latest
// by.
type happening struct {
	from, by time.Time
	what     string
	who      string // of whom, as a person reads it
	node     string
	session  int64
	token    int64 // of a holder
	n        int   // how many: nodes, or others who did the same
	held     span  // of a holder that is gone
}

const (
	mostHappenings = 64     // of a lock
	leastKept      = 8      // of a lock, when there are many locks
	allHappenings  = 40_000 // of all locks together
	mostAtOnce     = 6      // of one kind, at one look
)

// timelines are what has happened to the locks. Old happenings give way to new ones.
type timelines struct {
	of map[string][]happening
}

func (t *timelines) add(path string, news ...happening) {
	if len(news) == 0 {
		return
	}
	if t.of == nil {
		t.of = map[string][]happening{}
	}
	if len(t.of) > allHappenings/leastKept {
		t.forget()
	}
	most := max(leastKept, min(mostHappenings, allHappenings/(len(t.of)+1)))
	all := slices.Concat(t.of[path], news)
	if len(all) > most {
		all = slices.Clone(all[len(all)-most:])
	}
	t.of[path] = all
}

// forget drops the timelines in which nothing has happened for the longest time, half of all.
func (t *timelines) forget() {
	var ends []time.Time
	for _, all := range t.of {
		ends = append(ends, all[len(all)-1].by)
	}
	slices.SortFunc(ends, time.Time.Compare)
	middle := ends[len(ends)/2]
	for path, all := range t.of {
		if !all[len(all)-1].by.After(middle) {
			delete(t.of, path)
		}
	}
}

// difference says what has happened between two looks at a lock, of which either may be nil.
// ended reports how many nodes of a session were gone at the same look, if none is left of it.
func difference(before, after *lock, from, by time.Time, ended func(session int64) int) []happening {
	d := differ{from: from, by: by}
	switch {
	case before == nil && after == nil:
		return nil
	case before == nil:
		d.began(after)
		return d.all
	}
	now := map[string]*contender{}
	if after != nil {
		for i := range after.queue {
			now[after.queue[i].path] = &after.queue[i]
		}
	}
	was := map[string]*contender{}
	for i := range before.queue {
		c := &before.queue[i]
		was[c.path] = c
		if now[c.path] == nil {
			d.gone(c, ended)
		}
	}
	if after == nil {
		d.note(happening{what: didVanish})
		return d.all
	}
	for i := range after.queue {
		c := &after.queue[i]
		d.changed(was[c.path], c)
	}
	return d.all
}

type differ struct {
	from, by time.Time
	all      []happening
	counted  map[string]int // by what has happened
}

// note adds a happening, or counts it to the last one of its kind if there are many.
func (d *differ) note(h happening) {
	if d.counted == nil {
		d.counted = map[string]int{}
	}
	d.counted[h.what]++
	if d.counted[h.what] > mostAtOnce {
		for i := len(d.all) - 1; i >= 0; i-- {
			if d.all[i].what == h.what {
				d.all[i].n++
				return
			}
		}
	}
	h.from, h.by = d.from, d.by
	d.all = append(d.all, h)
}

func (d *differ) began(l *lock) {
	d.note(happening{what: didBegin, n: l.waiters()})
	for i := range l.queue {
		if c := &l.queue[i]; c.holds {
			d.note(of(c, didHold))
			if last := &d.all[len(d.all)-1]; !c.held.by.IsZero() {
				last.from, last.by = c.held.from, c.held.by
			}
		}
	}
}

func of(c *contender, what string) happening {
	h := happening{what: what, who: c.who(), node: c.name, session: c.session}
	if c.holds {
		h.token, h.held = c.token, c.held
	}
	return h
}

func (d *differ) gone(c *contender, ended func(int64) int) {
	what := didGiveUp
	h := of(c, what)
	if c.holds {
		h.what = didRelease
		if n := ended(c.session); n > 1 {
			h.what, h.n = didEnd, n
		}
	}
	d.note(h)
}

func (d *differ) changed(was, c *contender) {
	switch {
	case was == nil && c.holds:
		d.note(of(c, didHold))
	case was == nil:
		d.note(of(c, didQueue))
	case !was.holds && c.holds:
		d.note(of(c, didHold))
	}
	if c.asked && (was == nil || !was.asked && was.read) {
		d.note(of(c, didAsk))
	}
}

// who names a contender's process, as far as its node tells.
func (c *contender) who() string { return whoIs(c.owner, c.session, c.name) }

func whoIs(o owner, session int64, name string) string {
	s, at := o.client, o.host
	if o.hostname != "" {
		at = strings.TrimSpace(o.hostname + " " + at)
	}
	if at != "" {
		if s != "" {
			s += " on "
		}
		s += at
	}
	if o.pid != "" {
		s += " pid " + o.pid
	}
	switch {
	case s != "":
		return shown(s, mostName)
	case session != 0:
		return "session " + hex(session)
	}
	return shown(name, mostName)
}

// mostName is how much of a name of others a picture shows, in bytes.
const mostName = 200

func hex(session int64) string { return fmt.Sprintf("%#x", uint64(session)) } //nolint:gosec // bits, not a quantity
