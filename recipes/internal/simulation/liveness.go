package simulation

import (
	"errors"
	"time"

	"github.com/docent-go/docent/recipes"
)

// prompt is what a call may take that does not wait for the network: less
// than any request does.
const prompt = 20 * time.Microsecond

// stuck: every call comes back. Calls that waited when everything was healed come
// back until it is calm, later calls in the same time.
func stuck(f *facts) (errs []error) {
	bound := f.Calm - f.Healed
	for _, a := range f.Attempts {
		if a.Ended == Never || a.Ended > max(a.Begun, f.Healed)+bound {
			errs = append(errs, broken(ErrStuck, "%v", a))
		}
	}
	for _, g := range f.Holds {
		if g.Released == Never {
			errs = append(errs, broken(ErrStuck, "release of %v", g))
		}
	}
	return errs
}

// outlived: a call comes back when its context ends. What runs a function
// under the lock waits for that function. A release has one session timeout.
func outlived(f *facts) (errs []error) {
	for _, a := range f.Attempts {
		waited := !a.works() || a.Hold == nil
		if waited && a.ContextEnded != Never && a.Ended > a.ContextEnded+prompt {
			errs = append(errs, broken(ErrOutlived, "context ended at %v: %v", a.ContextEnded, a))
		}
	}
	for _, g := range f.Holds {
		if g.Released > g.Leaving+f.Timeout+prompt {
			errs = append(errs, broken(ErrOutlived, "release from %v to %v: %v", g.Leaving, g.Released, g))
		}
	}
	return errs
}

// closings: a client closes within the context it is given.
func closings(f *facts) (errs []error) {
	for _, c := range f.Closings {
		if c.Ended == Never || c.Ended > c.Begun+c.Within+prompt {
			errs = append(errs, broken(ErrOutlived, "close of %s from %v to %v, within %v: %v", c.Client, c.Begun, c.Ended, c.Within, c.Err))
		}
	}
	return errs
}

// refusals: in peace, a caller that has time gets the lock.
func refusals(f *facts) (errs []error) {
	for _, a := range f.Attempts {
		if a.Begun >= f.Calm && a.Err != nil && a.ContextEnded == Never && !a.tries() && !a.Hopeless && !errors.Is(a.Err, recipes.ErrForeignLock) {
			errs = append(errs, broken(ErrRefusal, "%v", a))
		}
	}
	return errs
}

// lossesInPeace: in peace, sessions live on.
func lossesInPeace(f *facts) (errs []error) {
	for _, l := range f.Losses {
		if l.At >= f.Calm {
			errs = append(errs, broken(ErrLossInPeace, "session %#x of %s at %v", l.Session, l.Client, l.At))
		}
	}
	return errs
}
