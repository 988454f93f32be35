package ui

import "slices"

// part is what is read of a node.
type part int

const (
	theData part = iota // with the stat
	theChildren
)

// want is a part of a node that is to be read.
type want struct {
	path string
	what part
}

// urgency orders wants: names of children come first, then nodes that are first in a line.
type urgency int

const (
	first urgency = iota
	soon
	later
	urgencies
)

// reading decides what is read next. It has no clock and does no I/O.
//
//	state of a want | what it means
//	unwanted        | what is known is good, or nobody asks
//	wanted          | it is in a line
//	asked           | it is read right now
//	asked, wanted   | it is read right now, and has changed since
//
//	event    | from          | to
//	want     | unwanted      | wanted
//	want     | asked         | asked, wanted: the answer may be from before the change
//	forget   | wanted        | unwanted: the node is gone
//	take     | wanted        | asked
//	answered | asked         | unwanted
//	failed   | asked         | wanted
//	restart  | any           | unwanted
type reading struct {
	lines  [urgencies][]want
	wanted map[want]bool
	asked  []want
}

func newReading() reading { return reading{wanted: map[want]bool{}} }

// want puts a part of a node into a line, unless it is in one.
func (r *reading) want(w want, u urgency) {
	if !r.wanted[w] {
		r.wanted[w] = true
		r.lines[u] = append(r.lines[u], w)
	}
}

// forget takes a node out of its lines.
func (r *reading) forget(path string) {
	delete(r.wanted, want{path, theData})
	delete(r.wanted, want{path, theChildren})
}

// left is how many parts wait to be read.
func (r *reading) left() int { return len(r.wanted) + len(r.asked) }

// lists reports whether the children of a node wait to be read.
func (r *reading) lists() bool {
	for w := range r.wanted {
		if w.what == theChildren {
			return true
		}
	}
	return slices.ContainsFunc(r.asked, func(w want) bool { return w.what == theChildren })
}

// take returns at most most wants, which are then asked.
func (r *reading) take(most int) []want {
	r.asked = r.asked[:0]
	for u := range r.lines {
		i := 0
		for ; i < len(r.lines[u]) && len(r.asked) < most; i++ {
			if w := r.lines[u][i]; r.wanted[w] { // else it was forgotten, or has been taken from another line
				delete(r.wanted, w)
				r.asked = append(r.asked, w)
			}
		}
		if r.lines[u] = r.lines[u][i:]; len(r.lines[u]) == 0 {
			r.lines[u] = nil
		}
	}
	return r.asked
}

// answered says that what was asked is known.
func (r *reading) answered() { r.asked = nil }

// failed puts what was asked back.
func (r *reading) failed() {
	asked := r.asked
	r.asked = nil
	for _, w := range asked {
		r.want(w, soon)
	}
}
