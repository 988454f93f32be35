package barrier

import (
	"math/bits"
	"slices"
)

// A machine of three members of a double barrier and a server. The server's nodes are the
// reference: who stood when a round was opened is noted beside the product's rules.
const (
	three  = 3
	places = 8 // of names: those of members, those that they have given up, and these two

	readyPlace = 6
	deadPlace  = 7 // of all names that no node has any more
)

var names = [places]string{"0", "1", "2", "3", "4", "5", "ready", "dead"}

// set is a set of places.
type set uint8

func of(i int) set           { return 1 << i }
func (s set) has(i int) bool { return s>>i&1 != 0 }
func (s set) count() int     { return bits.OnesCount8(uint8(s)) }
func (s set) lowest() int    { return bits.TrailingZeros8(uint8(s)) }

func (s set) each() (all []int) {
	for i := range places {
		if s.has(i) {
			all = append(all, i)
		}
	}
	return all
}

func (s set) names() (all []string) {
	for _, i := range s.each() {
		all = append(all, names[i])
	}
	return all
}

// moved is the set with one place for another.
func (s set) moved(from, to int) set {
	if s.has(from) {
		return s&^of(from) | of(to)
	}
	return s
}

// writes is how often one ready node is written at most. Two members that clear it could
// write it in turns for ever.
const writes = 4

// found is the ready node, as the server has it or as a member has read it.
type found struct {
	opened  int64
	named   set
	version int8
}

func (f found) round() round { return round{opened: f.opened, names: f.named.names()} }

// party is one member.
type party struct {
	at      phase
	rule    entering
	ready   found // as read
	listed  set   // as listed, less those that were looked at
	watched set   // places, and ready
	fired   set
	whom    int8
	seen    int64 // czxid of the node of whom
	begin   int64 // of its Leave
	wait    set   // others that Leave waits for
	gone    bool
	round   int64 // that it works in
	lost    bool  // its session has ended, and it does not know
	old     bool  // its node is of a session that it has given up
	enters  int8  // how often it may yet enter
	// The reference.
	belongs int64 // the newest round that was opened while its node stood in this Enter
	early   bool  // it was let in by a round that it does not belong to
	renewed bool  // it is in another session than the first; for a planted bug
	joined  bool  // its node stood while a round was open with another member
	counted bool  // it stood, and no fault has come since
}

type world struct {
	node   [places]int64
	late   set  // nodes that say that they are late
	forced bool // an operator has deleted ready
	ready  found
	stood  set // when ready was made, and who has come in since
	p      [three]party
	faults int8
}

// capped reports whether the ready node was written too often.
func (w *world) capped() bool { return w.ready.version >= writes }

// zxids are all that a world has.
func (w *world) zxids(f func(*int64)) {
	for i := range w.node {
		f(&w.node[i])
	}
	f(&w.ready.opened)
	for i := range w.p {
		p := &w.p[i]
		for _, z := range []*int64{&p.rule.czxid, &p.ready.opened, &p.seen, &p.begin, &p.round, &p.belongs} {
			f(z)
		}
	}
}

// zxid is newer than all.
func (w *world) zxid() (newest int64) {
	w.zxids(func(z *int64) { newest = max(newest, *z) })
	return newest + 1
}

// newest is the last change that the directory shows.
func (w *world) newest() int64 { return max(slices.Max(w.node[:]), w.ready.opened) }

// tidy numbers the zxids anew, so that states are few.
func (w *world) tidy() {
	used := []int64{0}
	w.zxids(func(z *int64) { used = append(used, *z) })
	slices.Sort(used)
	used = slices.Compact(used)
	w.zxids(func(z *int64) {
		i, _ := slices.BinarySearch(used, *z)
		*z = int64(i)
	})
}

// fire makes the events of a place.
func (w *world) fire(place int) {
	for i := range w.p {
		w.p[i].fired |= w.p[i].watched & of(place)
	}
}

func (w *world) standing() (s set) {
	for i, z := range w.node {
		if z != 0 {
			s |= of(i)
		}
	}
	return s
}

func (w *world) make(i int) { w.node[i] = w.zxid(); w.fire(i) }

func (w *world) remove(i int) {
	if w.node[i] != 0 {
		w.node[i] = 0
		w.late &^= of(i)
		w.fire(i)
	}
}

// open makes the ready node, and notes who stands.
func (w *world) open(named set) {
	w.ready = found{opened: w.zxid(), named: named}
	w.stood |= w.standing()
	w.fire(readyPlace)
	for i := range w.p {
		p := &w.p[i]
		if p.entersNow() && w.node[i] != 0 {
			p.belongs, p.counted = w.ready.opened, !p.lost && !p.old
		}
	}
}

func (w *world) close() { w.ready, w.stood = found{}, 0; w.fire(readyPlace) }

// rename gives a member another name: its old one is given up, or its node is gone.
func (w *world) rename(i int, gone bool) {
	if !gone && w.node[i] == 0 {
		return // the name that was given up before may stand yet
	}
	move := func(s *set) {
		if gone {
			*s &^= of(i)
		} else {
			*s = (*s &^ of(i+three)).moved(i, i+three)
		}
	}
	move(&w.stood)
	move(&w.late)
	move(&w.ready.named)
	for j := range w.p {
		p := &w.p[j]
		move(&p.ready.named)
		if j == i {
			continue
		}
		to := i + three
		if gone {
			to = deadPlace
		}
		p.wait, p.listed = p.wait.moved(i, to), p.listed.moved(i, to)
		if !gone {
			p.watched, p.fired = p.watched.moved(i, to), p.fired.moved(i, to)
			if int(p.whom) == i {
				p.whom = int8(to)
			}
		}
	}
	if !gone {
		w.node[i+three], w.node[i] = w.node[i], 0
	}
}

func (p *party) watch(place int) { p.watched |= of(place) }
func (p *party) unwatch()        { p.watched, p.fired = 0, 0 }

// entersNow reports whether a member is in Enter, and leavesNow whether in Leave.
func (p *party) entersNow() bool {
	return p.at >= readsReady && p.at <= passes || p.at >= javaReady && p.at <= javaAwait
}
func (p *party) leavesNow() bool { return p.at >= leaveReads && p.at <= tidyDelete }

// forget clears what the next request does not depend on.
func (p *party) forget() {
	switch p.at {
	case lists, scans, watchesEnd, clearsSet, clearsDelete, withdraws, registers, passes, leaveLists, leaveBoth, tidySet, tidyDelete, javaCreate:
	default:
		p.ready = found{}
	}
	switch p.at {
	case scans, opens, javaOpen, leaveWatches, leaveWatchesReady, leaveReadsOther:
	default:
		p.listed = 0
	}
	switch p.at {
	case withdraws, leaveWatches, leaveWatchesReady, leaveReadsOther:
	default:
		p.whom = 0
	}
	if p.at != leaveWatchesReady && p.at != leaveReadsOther {
		p.seen = 0
	}
}
