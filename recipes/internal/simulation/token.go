package simulation

import (
	"cmp"
	"errors"
	"slices"

	"github.com/docent-go/docent/recipes"
)

// tokenOrder: tokens grow in the order of the grants, among holds that exclude
// each other. A hold whose node had been taken by force before it was granted may
// come late.
func tokenOrder(f *facts) (errs []error) {
	for _, line := range f.grants() {
		var newest, newestAlone *Hold
		for _, g := range line {
			before := newestAlone // what it may not be older than
			if g.alone() {
				before = newest
			}
			if before != nil && g.Token <= before.Token && g.From != before {
				if !f.excused(g, g.Granted) {
					errs = append(errs, broken(ErrTokenOrder, "%v after %v", g, before))
				}
				continue
			}
			newest = newer(newest, g)
			if g.alone() {
				newestAlone = g
			}
		}
	}
	return errs
}

func newer(a, b *Hold) *Hold {
	if a != nil && a.Token > b.Token {
		return a
	}
	return b
}

// turns: no contender is granted while an older one stands. An older one of the
// same session may stand if it is through: its client hands a lock over before it
// deletes the node. This makes a fenced resource safe, whatever holders believe.
// When a token is granted, no smaller one will be.
func turns(f *facts) (errs []error) {
	for _, g := range f.Holds {
		ahead := slices.DeleteFunc(slices.Clone(g.Ahead), func(path string) bool { return f.through(path, g) })
		if len(ahead) > 0 && !g.Nested {
			errs = append(errs, broken(ErrOutOfTurn, "%v stood before %v", ahead, g))
		}
	}
	for _, n := range f.Nodes {
		if !n.Placed {
			continue
		}
		ahead := slices.DeleteFunc(slices.Clone(n.Ahead), func(path string) bool { return f.ofSession(path, n.Session) })
		if len(ahead) > 0 {
			errs = append(errs, broken(ErrOutOfTurn, "%v stood before the permit %s", ahead, n.Path))
		}
	}
	for _, g := range f.Holds {
		n := f.nodes[g.Path]
		if n == nil || n.Role != RolePermit || n.Placed {
			continue
		}
		for _, path := range n.Ahead { // nodes that left before the grant need not have been seen
			if o := f.nodes[path]; o != nil && !endedBy(o.Gone, g.Granted+1) {
				errs = append(errs, broken(ErrOutOfTurn, "%s stood before %v, which had no place in the queue", path, g))
			}
		}
	}
	return errs
}

// ofSession reports whether a session has made the node at path. A waiter of the same client
// may still stand: its client serves the one behind when it gives up.
func (f *facts) ofSession(path string, session int64) bool {
	n := f.nodes[path]
	return n != nil && n.Session == session && session != 0
}

// through reports whether the node at path is of the session of g, and each hold on that
// node had ended when g was granted.
func (f *facts) through(path string, g *Hold) bool {
	n, own := f.nodes[path], f.nodes[g.Path]
	if n == nil || own == nil || n.Session != own.Session || n.Session == 0 {
		return false
	}
	return !slices.ContainsFunc(f.Holds, func(o *Hold) bool { return o.Path == path && !handedOver(o, g) })
}

// tokenOrigin: a token is the id of the transaction that made the node, or, of a
// reader in a writer's place, the writer's.
func tokenOrigin(f *facts) (errs []error) {
	for _, g := range f.Holds {
		n := f.nodes[g.Path]
		if n == nil || n.Lock != g.Lock || g.From == nil && n.Czxid != g.Token || g.From != nil && g.From.Token != g.Token {
			errs = append(errs, broken(ErrTokenForged, "%v", g))
		}
	}
	return errs
}

// guards: what holders write with Guard comes in the order of their tokens, of holders that
// exclude each other.
func guards(f *facts) (errs []error) {
	newest := map[string]Write{}
	for _, w := range slices.SortedFunc(slices.Values(f.Writes), func(a, b Write) int { return cmp.Compare(a.Zxid, b.Zxid) }) {
		if last, written := newest[w.Hold.Lock]; written && w.Hold.Token < last.Hold.Token {
			errs = append(errs, broken(ErrGuard, "%v wrote after %v", w.Hold, last.Hold))
		}
		if w.Hold.alone() {
			newest[w.Hold.Lock] = w
		}
	}
	return errs
}

// reentries: re-entering a hold that lives takes no time and no new node. It succeeds, or
// is refused if it can never be granted. To refuse permits beside permits takes the time
// of an answer. If force has struck the hold and its actor does not know yet, its permits
// are free. The servers may give them to the actor again.
func reentries(f *facts) (errs []error) {
	for _, a := range f.Attempts {
		if a.Outer == nil {
			continue
		}
		late, lives := a.Ended > a.Begun+prompt, !endedBy(a.Outer.ContextEnded, a.Begun+1)
		if a.Asks {
			late, lives = a.Ended > a.Outer.ContextEnded+prompt, !endedBy(a.Outer.ContextEnded, a.Ended+1)
		}
		switch {
		case a.Hopeless:
			refused := errors.Is(a.Err, recipes.ErrWouldDeadlock) || errors.Is(a.Err, recipes.ErrTooManyPermits)
			struck := f.forced(a.Outer)
			again := a.Hold != nil && a.Asks && struck != Never && struck < a.Hold.Granted
			if a.Hold != nil && !again || late || lives && a.Hold == nil && !refused {
				errs = append(errs, broken(ErrReentry, "%v beside %v", a, a.Outer))
			}
		case late, a.Hold == nil && lives:
			errs = append(errs, broken(ErrReentry, "%v in %v", a, a.Outer))
		case a.Hold != nil && (a.Hold.Token != a.Outer.Token || a.Hold.Path != a.Outer.Path):
			errs = append(errs, broken(ErrReentry, "%v in %v", a.Hold, a.Outer))
		}
	}
	return errs
}
