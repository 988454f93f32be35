package simulation

import "time"

// units and of are the share of a hold, of what there is: a hold that is alone
// has one of one.
func (g *Hold) units() int { return max(g.Units, 1) }
func (g *Hold) of() int    { return max(g.Of, 1) }

// alone reports whether a hold excludes every other.
func (g *Hold) alone() bool { return g.units() == g.of() }

// conflicts reports whether two holds may not be held at once. A reader that
// takes a writer's place is no conflict for that writer.
func (g *Hold) conflicts(other *Hold) bool {
	return g.From != other && other.From != g && g.units()+other.units() > g.of()
}

// crowd returns the holds inside if newcomer is one too many beside them, and
// else none. The writer whose place newcomer takes does not count.
func crowd(newcomer *Hold, inside []*Hold) []*Hold {
	sum := newcomer.units()
	var others []*Hold
	for _, g := range inside {
		if newcomer.From != g {
			sum += g.units()
			others = append(others, g)
		}
	}
	if sum <= newcomer.of() {
		return nil
	}
	return others
}

// whole: a caller that asked for several permits, or several locks, has all of
// them, and shares none.
func whole(f *facts) (errs []error) {
	whose := map[*Node]string{}
	for _, g := range f.Holds {
		n := f.nodes[g.Path]
		if n == nil || n.Role != RolePermit {
			continue
		}
		all := f.nodesOf(g)
		if len(all) != g.units() {
			errs = append(errs, broken(ErrHalf, "%d permits for %d: %v", len(all), g.units(), g))
		}
		for _, o := range all {
			if other, shared := whose[o]; shared && other != g.Path {
				errs = append(errs, broken(ErrHalf, "%v shares %s with the hold on %s", g, o.Path, other))
			}
			whose[o] = g.Path
		}
	}
	for _, a := range f.Attempts {
		if a.Hold != nil && len(a.Locks) > 0 && len(a.Holds) != len(a.Locks) {
			errs = append(errs, broken(ErrHalf, "%d locks for %d: %v", len(a.Holds), len(a.Locks), a))
		}
	}
	return errs
}

// permits: when permits are granted, no more granted permits stand than there
// are, by the server's log. A permit that is not granted, and soon withdrawn,
// does not count: no holder believes in it.
func permits(f *facts) (errs []error) {
	for _, line := range f.grants() {
		for i, g := range line {
			var out []*Node
			for _, o := range line[:i+1] {
				for _, n := range f.nodesOf(o) {
					if n.Role == RolePermit && n.Session != 0 && !endedBy(n.Gone, g.Granted+1) {
						out = append(out, n)
					}
				}
			}
			if of := f.nodes[g.Path]; of != nil && of.Role == RolePermit && len(out) > of.Of && f.forced(g) == Never {
				errs = append(errs, broken(ErrPermits, "%d of %d with %v", len(out), of.Of, g))
			}
		}
	}
	return errs
}

// withdrawn is how soon a permit is gone that is not granted, in peace.
const withdrawn = time.Second

// kept: what no hold ever stood on is gone soon after everything was healed. The
// last waiter had until then.
func kept(f *facts) (errs []error) {
	held := map[string]bool{}
	for _, g := range f.Holds {
		for _, n := range f.nodesOf(g) {
			held[n.Path] = true
		}
	}
	bound := f.Calm - f.Healed
	for _, n := range f.Nodes {
		if n.Role == RolePermit && !n.Placed && !held[n.Path] && n.Made > f.Calm && (n.Gone == Never || n.Gone > n.Made+withdrawn) {
			errs = append(errs, broken(ErrKept, "a permit that was not granted, made at %v, gone at %v: %s", n.Made, n.Gone, n.Path))
		}
		late := n.Gone == Never || n.Gone > max(n.Made, f.Calm)+bound
		if late && !held[n.Path] && n.Session != 0 {
			errs = append(errs, broken(ErrKept, "made at %v, gone at %v: %s", n.Made, n.Gone, n.Path))
		}
	}
	return errs
}

// downgrades: a reader that took a writer's place was there before the writer had
// gone. No hold that excludes the reader was granted in between.
func downgrades(f *facts) (errs []error) {
	lines := f.grants()
	for _, r := range f.Holds {
		w := r.From
		if w == nil || f.forced(w) != Never || f.forced(r) != Never {
			continue // the operator let others in
		}
		reads, writes := f.nodes[r.Path], f.nodes[w.Path]
		if reads != nil && writes != nil && endedBy(writes.Gone, reads.Made) {
			errs = append(errs, broken(ErrDowngrade, "node gone at %v, read at %v: %v", writes.Gone, reads.Made, r))
		}
		for _, g := range lines[r.Lock] {
			if g != w && f.forced(g) == Never && g.conflicts(r) && w.Granted <= g.Granted && g.Granted <= r.Granted {
				errs = append(errs, broken(ErrDowngrade, "%v in between of %v and %v", g, w, r))
			}
		}
	}
	return errs
}
