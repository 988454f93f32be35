package ui

import (
	"cmp"
	"slices"
	"time"

	"github.com/docent-go/docent/recipes"
)

// wait says that a party waits for another one. A party is a session, or a node that no
// session owns.
type wait struct {
	waiter, holder string
	lock           string // empty if the holder runs in the waiter's command
	since          time.Time
	circle         bool // the holder waits, by whatever way, for the waiter
}

// Bounds of the graph.
const (
	mostWaits    = 20_000
	mostCompared = 3_000_000 // contenders with those ahead of them
)

// party is who waits or holds.
func (c *contender) party() string {
	if c.session == 0 {
		return c.path
	}
	return hex(c.session)
}

// campaigns reports whether a contender is of an election, and nothing is known to stand
// still for it.
func (c *contender) campaigns(kind string) bool {
	return (kind == kindLatch || recipes.Contender{Path: c.path}.Campaigns()) && c.owner.outer == ""
}

// A party that waits for a hold of its own is a circle only if it has done so for selfAfter, as
// in `docent deadlocks`: before, another goroutine of the process may well hold.
const selfAfter = time.Minute

// itself reports whether w waits for h, of the same party, for long.
func itself(w, h *contender, now time.Time) bool {
	return w.read && now.Sub(w.since) >= selfAfter && now.Sub(h.held.from) >= selfAfter
}

// waitsOf are the waits between parties that have several contenders, or run in the
// command of another one, and those of others that are part of a circle. Other waits are in none, and
// their locks show them. An election's candidates wait in the background, so their waits do
// not count. whole is unset if there is too much to compare.
func waitsOf(locks map[string]*lock, now time.Time) (all []wait, whole bool) {
	lines := map[string]int{} // of a party: how many contenders it has
	outer := map[string]bool{}
	for _, l := range locks {
		for i := range l.queue {
			c := &l.queue[i]
			lines[c.party()]++
			if c.owner.outer != "" {
				outer[c.owner.outer] = true
			}
		}
	}
	several := func(party string, inner bool) bool { return lines[party] > 1 || outer[party] || inner }
	g := graph{now: now, left: mostCompared, linked: map[string]bool{}, commands: map[[2]string]bool{}}
	for _, path := range sortedKeys(locks) {
		for i := range locks[path].queue {
			c := &locks[path].queue[i]
			g.linked[c.party()] = g.linked[c.party()] || several(c.party(), c.owner.outer != "")
			if o := c.owner.outer; o != "" && lines[o] > 0 {
				g.command(o, c.party())
			}
		}
	}
	for _, path := range sortedKeys(locks) {
		g.line(locks[path])
	}
	mark(g.all)
	return slices.DeleteFunc(g.all, func(w wait) bool {
		return !w.circle && (!g.linked[w.waiter] || !g.linked[w.holder])
	}), g.left > 0
}

// graph collects waits.
type graph struct {
	now      time.Time
	left     int             // comparisons
	linked   map[string]bool // parties that have to do with several contenders
	commands map[[2]string]bool
	all      []wait
}

func (g *graph) command(outer, inner string) {
	if both := [2]string{outer, inner}; !g.commands[both] {
		g.commands[both] = true
		g.all = append(g.all, wait{waiter: outer, holder: inner})
	}
}

// line adds the waits in the line of a lock: for each party that waits and each that it waits
// for, the oldest.
func (g *graph) line(l *lock) {
	parties := make([]string, len(l.queue))
	linked := make([]bool, len(l.queue))
	some := false
	for i := range l.queue {
		parties[i] = l.queue[i].party()
		linked[i] = g.linked[parties[i]]
		some = some || linked[i]
	}
	if !some {
		return
	}
	told := map[[2]string]bool{}
	for i := l.holds; i < len(l.queue); i++ {
		w := &l.queue[i]
		if w.campaigns(l.kind) {
			continue
		}
		for j := range i {
			if g.left--; g.left < 0 || len(g.all) >= mostWaits {
				g.left = 0
				return
			}
			h := &l.queue[j]
			both, own := [2]string{parties[i], parties[j]}, parties[i] == parties[j]
			if !linked[i] && !linked[j] || told[both] || h.mode == "read" && w.mode == "read" || own && !h.holds {
				continue
			}
			told[both] = true
			if !own || itself(w, h, g.now) {
				g.all = append(g.all, wait{waiter: both[0], holder: both[1], lock: l.path, since: w.since})
			}
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// mark finds the waits in circles: those within a strongly connected part of the graph.
func mark(all []wait) {
	next := map[string][]string{}
	for _, w := range all {
		next[w.waiter] = append(next[w.waiter], w.holder)
	}
	t := tarjan{next: next, index: map[string]int{}, low: map[string]int{}, part: map[string]int{}}
	for _, w := range all {
		if t.index[w.waiter] == 0 {
			t.visit(w.waiter)
		}
	}
	for i, w := range all {
		all[i].circle = t.part[w.waiter] == t.part[w.holder]
	}
	slices.SortStableFunc(all, func(a, b wait) int {
		if a.circle != b.circle {
			if a.circle {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.since.UnixMilli(), b.since.UnixMilli())
	})
}

// tarjan finds strongly connected parts, without recursion: a chain of waits may be long.
type tarjan struct {
	next             map[string][]string
	index, low, part map[string]int
	stack            []string
	count, parts     int
}

func (t *tarjan) visit(root string) {
	type frame struct {
		at string
		i  int
	}
	enter := func(at string) frame {
		t.count++
		t.index[at], t.low[at] = t.count, t.count
		t.stack = append(t.stack, at)
		return frame{at, 0}
	}
	calls := []frame{enter(root)}
	for len(calls) > 0 {
		f := &calls[len(calls)-1]
		if f.i < len(t.next[f.at]) {
			to := t.next[f.at][f.i]
			f.i++
			switch {
			case t.index[to] == 0:
				calls = append(calls, enter(to))
			case t.part[to] == 0:
				t.low[f.at] = min(t.low[f.at], t.index[to])
			}
			continue
		}
		at := f.at
		calls = calls[:len(calls)-1]
		if len(calls) > 0 {
			up := calls[len(calls)-1].at
			t.low[up] = min(t.low[up], t.low[at])
		}
		if t.low[at] != t.index[at] {
			continue
		}
		t.parts++
		for {
			last := t.stack[len(t.stack)-1]
			t.stack = t.stack[:len(t.stack)-1]
			t.part[last] = t.parts
			if last == at {
				break
			}
		}
	}
}
