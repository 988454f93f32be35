package simulation

import (
	"slices"
	"time"
)

// overlaps: the witness never meets, or knows of, more believers than the lock allows.
func overlaps(f *facts) (errs []error) {
	for _, m := range f.Visits {
		inside := slices.DeleteFunc(slices.Clone(m.In), func(g *Hold) bool { return f.excused(g, m.At) })
		if !f.excused(m.Entered, m.At) && crowd(m.Entered, inside) != nil {
			errs = append(errs, broken(ErrOverlap, "at %v, inside: %v, entered: %v", m.At, inside, m.Entered))
		}
	}
	return errs
}

// beliefs: the contexts of holds have ended when the next one is granted that may
// not be beside them.
func beliefs(f *facts) (errs []error) {
	for _, line := range f.grants() {
		for i, next := range line {
			if f.excused(next, next.Granted) {
				continue
			}
			before := slices.DeleteFunc(slices.Clone(line[:i]), func(g *Hold) bool {
				return handedOver(g, next) || f.excused(g, next.Granted)
			})
			if others := crowd(next, before); others != nil {
				errs = append(errs, broken(ErrBelief, "%v, then %v", others, next))
			}
		}
	}
	return errs
}

// lateLosses: the context of a hold has ended when its node is gone, for another
// contender may be granted then.
func lateLosses(f *facts) (errs []error) {
	for _, g := range f.Holds {
		end := g.ContextEnded
		if end == Never {
			end = f.Finished
		}
		for _, n := range f.nodesOf(g) {
			if n.Gone == Never || endedBy(g.ContextEnded, f.stopped(n.Gone)) {
				continue
			}
			if at := f.forced(g); at == Never || at > n.Gone || end > max(at, g.Granted)+f.hearing() {
				errs = append(errs, broken(ErrLateLoss, "node gone at %v: %v", n.Gone, g))
			}
		}
	}
	return errs
}

// deadlines: no other client takes the node of a hold before the latest deadline
// that the hold ever named. Its client may: by a release, also in its next
// session, or by closing its session.
func deadlines(f *facts) (errs []error) {
	for _, g := range f.Holds {
		for _, n := range f.nodesOf(g) {
			released := n.Given || n.Inherited && g.Leaving > 0 && endedBy(g.Leaving, n.Gone)
			if released || !endedBy(n.Gone, g.Deadline) || f.forced(g) != Never || f.closed(g.Client, n.Gone) || f.stopped(n.Gone) != n.Gone {
				continue
			}
			errs = append(errs, broken(ErrDeadline, "node gone at %v, deadline %v: %v", n.Gone, g.Deadline, g))
		}
	}
	return errs
}

func compare(a, b time.Duration) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// handedOver reports whether the context of a hold had ended when next was granted. A
// client hands over at one instant, in an order that only the witness sees.
func handedOver(g, next *Hold) bool {
	return endedBy(g.ContextEnded, next.Granted) || g.Client == next.Client && g.ContextEnded == next.Granted
}
