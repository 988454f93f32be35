package simulation

// tokenOrder: tokens grow in the order of the grants. A hold whose node had
// been taken by force before it was granted may come late.
func tokenOrder(f *facts) (errs []error) {
	for _, line := range f.grants() {
		var newest *Hold
		for _, g := range line {
			switch {
			case newest == nil || g.Token > newest.Token:
				newest = g
			case !f.excused(g, g.Granted):
				errs = append(errs, broken(ErrTokenOrder, "%v after %v", g, newest))
			}
		}
	}
	return errs
}

// turns: nobody is granted while an older contender stands. Whoever believes
// what, this is what makes a fenced resource safe: when a token is granted, no
// smaller one will be.
func turns(f *facts) (errs []error) {
	for _, g := range f.Holds {
		if len(g.Ahead) > 0 && !g.Nested {
			errs = append(errs, broken(ErrOutOfTurn, "%v stood before %v", g.Ahead, g))
		}
	}
	return errs
}

// tokenOrigin: a token is the id of the transaction that made the node.
func tokenOrigin(f *facts) (errs []error) {
	for _, g := range f.Holds {
		if n := f.nodes[g.Path]; n == nil || n.Czxid != g.Token || n.Lock != g.Lock {
			errs = append(errs, broken(ErrTokenForged, "%v", g))
		}
	}
	return errs
}

// reentries: re-entering a hold that lives takes no time, no new node, and
// succeeds.
func reentries(f *facts) (errs []error) {
	for _, a := range f.Attempts {
		if a.Outer == nil {
			continue
		}
		lives := !endedBy(a.Outer.ContextEnded, a.Begun+1)
		switch {
		case a.Ended > a.Begun+prompt, a.Hold == nil && lives:
			errs = append(errs, broken(ErrReentry, "%v in %v", a, a.Outer))
		case a.Hold != nil && (a.Hold.Token != a.Outer.Token || a.Hold.Path != a.Outer.Path):
			errs = append(errs, broken(ErrReentry, "%v in %v", a.Hold, a.Outer))
		}
	}
	return errs
}
