package simulation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// contextErrors: the error of a context means that this one has ended.
func contextErrors(f *facts) (errs []error) {
	for _, a := range f.Attempts {
		ctx := errors.Is(a.Err, context.Canceled) || errors.Is(a.Err, context.DeadlineExceeded)
		if ctx && a.ContextEnded == Never {
			errs = append(errs, broken(ErrFalseContext, "%v", a))
		}
	}
	return errs
}

// lossErrors: a lost session was lost, and while the call lasted unless it
// concerns a hold from before.
func lossErrors(f *facts) (errs []error) {
	for _, a := range f.Attempts {
		if errors.Is(a.Err, client.ErrSessionLost) && !f.lost(a) {
			errs = append(errs, broken(ErrFalseLoss, "%v", a))
		}
	}
	for _, g := range f.Holds {
		if n := f.nodes[g.Path]; n != nil && errors.Is(g.ReleaseErr, client.ErrSessionLost) && !f.lostSession(n.Session) {
			errs = append(errs, broken(ErrFalseLoss, "release: %v: %v", g, g.ReleaseErr))
		}
	}
	return errs
}

func (f *facts) lost(a *Attempt) bool {
	for _, l := range f.Losses {
		if l.Client == a.Client && l.At <= a.Ended && (l.At >= a.Begun || a.Outer != nil || a.From != nil) {
			return true
		}
	}
	return false
}

func (f *facts) lostSession(id int64) bool {
	for _, l := range f.Losses {
		if l.Session == id {
			return true
		}
	}
	return false
}

// causes: the context of a hold whose session was lost says so, also when the
// holder releases it in the same moment.
func causes(f *facts) (errs []error) {
	for _, g := range f.Holds {
		n := f.nodes[g.Path]
		if n == nil || !errors.Is(g.Cause, recipes.ErrReleased) {
			continue
		}
		for _, l := range f.Losses {
			if l.Session == n.Session && l.At <= g.ContextEnded {
				errs = append(errs, broken(ErrFalseCause, "session lost at %v: %v: %v", l.At, g, g.Cause))
			}
		}
	}
	return errs
}

// closedErrors: only a closed client says that it is.
func closedErrors(f *facts) (errs []error) {
	for _, a := range f.Attempts {
		if errors.Is(a.Err, client.ErrClosed) && !f.closed(a.Client, a.Ended) {
			errs = append(errs, broken(ErrFalseClosed, "%v", a))
		}
	}
	for _, g := range f.Holds {
		if errors.Is(g.ReleaseErr, client.ErrClosed) && !f.closed(g.Client, g.Released) {
			errs = append(errs, broken(ErrFalseClosed, "release: %v: %v", g, g.ReleaseErr))
		}
	}
	return errs
}

func (f *facts) closed(client string, by time.Duration) bool {
	for _, c := range f.Closings {
		if c.Client == client && c.Begun <= by {
			return true
		}
	}
	return false
}

// deletionErrors: if an error says that another client deleted a node, that
// client did, or a leader that handed over.
func deletionErrors(f *facts) (errs []error) {
	for _, a := range f.Attempts {
		if errors.Is(a.Err, recipes.ErrNodeDeleted) && !f.deleted(a) {
			errs = append(errs, broken(ErrFalseDeletion, "%v", a))
		}
	}
	for _, g := range f.Holds {
		if errors.Is(g.ReleaseErr, recipes.ErrNodeDeleted) && f.forced(g) == Never && !f.forcedAround(g) {
			errs = append(errs, broken(ErrFalseDeletion, "release: %v: %v", g, g.ReleaseErr))
		}
	}
	return errs
}

// forcedAround: the release of an inner hold may say that the node of the hold around
// it was deleted. The error names the lock of that one.
func (f *facts) forcedAround(g *Hold) bool {
	for _, o := range f.Holds {
		named := strings.Contains(g.ReleaseErr.Error(), "with the outer hold of "+strings.TrimPrefix(o.Lock, o.In)+":")
		if named && o.Actor == g.Actor && f.forced(o) != Never {
			return true
		}
	}
	return false
}

func (f *facts) deleted(a *Attempt) bool {
	return slices.ContainsFunc(slices.Concat(f.Forces, f.Moves), func(force Force) bool {
		n := f.nodes[force.Path]
		return n != nil && a.wants(n.Lock) && force.At <= a.Ended
	})
}

// fewErrors: a semaphore that is said to have fewer permits than a call wanted had
// fewer at some moment of that call.
func fewErrors(f *facts) (errs []error) {
	for _, a := range f.Attempts {
		if errors.Is(a.Err, recipes.ErrTooManyPermits) && !f.few(a) {
			errs = append(errs, broken(ErrFalseFew, "%v", a))
		}
	}
	return errs
}

func (f *facts) few(a *Attempt) bool {
	for _, c := range f.Counts {
		if c.Lock == a.Lock && c.Permits < a.Units && c.Set <= a.Ended && !endedBy(c.Gone, a.Begun) {
			return true
		}
	}
	return false
}

// busyErrors: only a caller that does not want to wait hears of a contender in
// the way. The contender named stood there during the call, or before it if
// servers lag.
func busyErrors(f *facts) (errs []error) {
	for _, a := range f.Attempts {
		if !errors.Is(a.Err, recipes.ErrBusy) {
			continue
		}
		var busy *recipes.BusyError
		named := errors.As(a.Err, &busy)
		if !a.tries() || named && !f.stood(busy.Holder.Path, a) {
			errs = append(errs, broken(ErrFalseBusy, "%v", a))
		}
	}
	return errs
}

// foreignErrors: a lock that is said to be of another recipe has, or had, nodes of one.
func foreignErrors(f *facts) (errs []error) {
	for _, a := range f.Attempts {
		if errors.Is(a.Err, recipes.ErrForeignLock) && !f.strange(a) {
			errs = append(errs, broken(ErrFalseForeign, "%v", a))
		}
	}
	return errs
}

// strange reports whether a node of another recipe stood while a call lasted.
func (f *facts) strange(a *Attempt) bool {
	for _, n := range f.Nodes {
		if a.wants(n.Lock) && n.Recipe != a.Recipe && n.Made <= a.Ended && !endedBy(n.Gone, a.Begun) {
			return true
		}
	}
	return false
}

// answers: what calls say is so.
func answers(f *facts) (errs []error) {
	for _, wrong := range f.Wrong {
		errs = append(errs, broken(ErrFalseAnswer, "%s", wrong))
	}
	return errs
}

func (f *facts) stood(path string, a *Attempt) bool {
	for _, n := range f.Nodes { // a path can come again
		if n.Path == path && a.wants(n.Lock) && n.Made <= a.Ended && (f.Lagging || !endedBy(n.Gone, a.Begun)) {
			return true
		}
	}
	return false
}

// releases: when a release is said to be done, so is the node.
func releases(f *facts) (errs []error) {
	for _, g := range f.Holds {
		if g.Released == Never || g.Nested || g.Stays || g.ReleaseErr != nil {
			continue
		}
		for _, n := range f.nodesOf(g) {
			if n.Gone == Never || n.Gone > g.Released {
				errs = append(errs, broken(ErrFalseRelease, "node gone at %v: %v", n.Gone, g))
			}
		}
	}
	return errs
}

// unexplained: an error is of a kind that the documentation names. What is
// said to be unreachable was disturbed, so it is none in peace (see refusals).
func unexplained(f *facts) (errs []error) {
	for _, a := range f.Attempts {
		hopeless := a.Hopeless && errors.Is(a.Err, recipes.ErrWouldDeadlock)
		if a.Err != nil && !explained(a.Err) && !hopeless {
			errs = append(errs, broken(ErrUnexplained, "%v", a))
		}
	}
	for _, g := range f.Holds {
		if g.ReleaseErr != nil && !explained(g.ReleaseErr) {
			errs = append(errs, broken(ErrUnexplained, "release: %v: %v", g, g.ReleaseErr))
		}
	}
	return errs
}

func explained(err error) bool {
	var of *recipes.LockError
	if !errors.As(err, &of) {
		return false
	}
	for _, kind := range []error{
		context.Canceled, context.DeadlineExceeded, client.ErrSessionLost, client.ErrNotConnected, client.ErrClosed,
		recipes.ErrNodeDeleted, recipes.ErrBusy, recipes.ErrLost, recipes.ErrTooManyPermits, recipes.ErrForeignLock,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
