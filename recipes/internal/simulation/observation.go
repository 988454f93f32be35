package simulation

import (
	"slices"
	"time"
)

// Saw records what an observer has seen.
func (h *History) Saw(s Sight) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Sights = append(h.Sights, &s)
}

// seeing is how long an observer may take, in peace, to see the leader.
const seeing = 100 * time.Millisecond

// sightOrder: what an observer sees is true, and terms only grow.
func sightOrder(f *facts) (errs []error) {
	made := map[int64]*Node{}
	for _, n := range f.Nodes {
		made[n.Czxid] = n
	}
	newest := map[string]*Sight{}
	for _, s := range f.Sights {
		if s.Term == 0 {
			continue
		}
		n := made[s.Term]
		if n == nil || n.Made > s.At {
			errs = append(errs, broken(ErrSightForged, "%+v", *s))
			continue
		}
		if n.Session == 0 { // an operator's, which comes before all
			continue
		}
		if last := newest[s.Observer]; last != nil && last.Term > s.Term {
			errs = append(errs, broken(ErrSightBack, "%+v after %+v", *s, *last))
		}
		newest[s.Observer] = s
	}
	return errs
}

// reign is a time in which one node was the first in line, or none was.
type reign struct {
	term     int64
	from, to time.Duration
}

// number is by what the nodes of a line are ordered.
func number(path string) string { return path[max(0, len(path)-10):] }

// reigns returns which node was the first in the line of an election, and when.
// From the last change on it is the node that is left, or none.
func (f *facts) reigns(lock string) (all []reign) {
	var line []*Node
	times := []time.Duration{0}
	for _, n := range f.Nodes {
		if n.Lock != lock {
			continue
		}
		line, times = append(line, n), append(times, n.Made)
		if n.Gone != Never {
			times = append(times, n.Gone)
		}
	}
	slices.Sort(times)
	for _, at := range slices.Compact(times) {
		var first *Node
		for _, n := range line {
			stands := n.Made <= at && !endedBy(n.Gone, at+1)
			if stands && (first == nil || number(n.Path) < number(first.Path)) {
				first = n
			}
		}
		now := reign{from: at, to: f.Finished}
		if first != nil {
			now.term = first.Czxid
		}
		if last := len(all) - 1; last >= 0 {
			if all[last].term == now.term {
				continue
			}
			all[last].to = at
		}
		all = append(all, now)
	}
	return all
}

// unseen: in peace, an observer sees every leader that stays, and that no leader
// is left.
func unseen(f *facts) (errs []error) {
	by := map[string][]*Sight{}
	for _, s := range f.Sights {
		by[s.Observer] = append(by[s.Observer], s)
	}
	reigns := map[string][]reign{}
	for _, sights := range by {
		lock := sights[0].Lock
		if reigns[lock] == nil {
			reigns[lock] = f.reigns(lock)
		}
		for _, r := range reigns[lock] {
			due := max(r.from, f.Calm) + seeing
			if due >= r.to {
				continue
			}
			if s := at(sights, due); s != nil && !s.Ended && (s.Term != r.term || s.InDoubt) {
				errs = append(errs, broken(ErrUnseen, "term %#x from %v to %v: at %v the observer knew %+v", r.term, r.from, r.to, due, *s))
			}
		}
	}
	return errs
}

// at returns the last of some sights at a time.
func at(sights []*Sight, t time.Duration) (last *Sight) {
	for _, s := range sights {
		if s.At <= t {
			last = s
		}
	}
	return last
}
