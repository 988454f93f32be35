package fence

import (
	"context"
	"errors"
	"fmt"
)

// Hold is what this package needs of a lock that is held. *recipes.Hold is
// one.
type Hold interface {
	// Context ends when the hold ends, with the reason as its cause.
	Context() context.Context
	// FencingToken grows with every hold of the lock.
	FencingToken() int64
	// Err is nil while the lock is held.
	Err() error
	// Exclusive reports whether the lock gives one hold at a time. It is false
	// for readers and for permits of a semaphore, which cannot be fenced.
	Exclusive() bool
}

// Lock is a lock whose Do takes it, runs a function and releases it, such as
// *recipes.InterProcessMutex.
type Lock[H Hold] interface {
	// Do waits until the lock is held, runs fn and releases the lock. fn's
	// context ends when the hold or ctx does. The error joins fn's and that of
	// the release.
	Do(ctx context.Context, fn func(ctx context.Context, hold H) error) error
}

// Checker is the resource's side. It knows the newest token of each resource
// and refuses older ones. [Database], *[Gate] and [Remote] are Checkers.
type Checker interface {
	// Do raises the token of the resource and then runs fn: from the moment in
	// which fn begins, every older token is refused. fn's context carries the
	// token.
	//
	// The error is fn's. If fn did not run, it is a [*StaleError] where a newer
	// token has been seen, or says why the token could not be raised.
	Do(ctx context.Context, resource string, token int64, fn func(ctx context.Context) error) error
}

var (
	errNoChecker  = errors.New("fence: the Checker is nil; pass a fence.Database, a *fence.Gate or a fence.Remote")
	errNoFunction = errors.New("fence: the function is nil; pass the work to do with the token")
)

// Do takes the lock, raises its token at the resource, runs fn, and releases
// the lock. The order matters: no write of an older holder is accepted after
// fn has begun, so what fn reads stays true until fn itself writes. fn may
// take its time, and writes as the Checker says: with a [Database] by
// [Database.Tx].
//
// fn's context carries the token. It ends when the lock is lost or ctx ends.
// fn must return then; the lock's Do releases the lock when it has, and decides
// how long that may take.
//
// If the lock was not obtained, or its token could not be raised, fn did not
// run. A hold that is not exclusive is refused with [ErrShared]. Otherwise the
// error is fn's, joined with that of the release, which says if the lock was
// lost before fn returned.
//
// If at or fn is nil, Do returns an error and does not take the lock.
func Do[H Hold](ctx context.Context, lock Lock[H], at Checker, resource string, fn func(ctx context.Context) error) error {
	if at == nil {
		return errNoChecker
	}
	if fn == nil {
		return errNoFunction
	}
	return lock.Do(ctx, func(ctx context.Context, hold H) error {
		return Under(ctx, hold, at, resource, fn)
	})
}

// Under is [Do] for a hold that the caller has already and releases. Any ctx will
// do: fn's context has the values of ctx, and ends when ctx or the hold does.
func Under(ctx context.Context, hold Hold, at Checker, resource string, fn func(ctx context.Context) error) error {
	if at == nil {
		return errNoChecker
	}
	if fn == nil {
		return errNoFunction
	}
	if err := exclusive(hold, resource); err != nil {
		return err
	}
	if err := valid(resource, hold.FencingToken()); err != nil { // whatever at is
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(hold.Context(), func() { cancel(context.Cause(hold.Context())) })
	defer stop()
	return at.Do(under(ctx, hold, resource, nil), resource, hold.FencingToken(), func(ctx context.Context) error {
		if err := find(ctx, resource).ended(ctx); err != nil {
			return fmt.Errorf("fence: not begun: %w", err)
		}
		return fn(ctx)
	})
}

// under returns a context that carries the token of hold.
func under(ctx context.Context, hold Hold, resource string, raised any) context.Context {
	return context.WithValue(ctx, bearerKey{}, &bearer{
		resource: resource, token: hold.FencingToken(), raised: raised, held: hold.Err, outer: carried(ctx),
	})
}

// exclusive refuses a hold that others may have beside it.
func exclusive(hold Hold, resource string) error {
	if hold.Exclusive() {
		return nil
	}
	return fmt.Errorf("fence: %w: several readers or permits are held at once, and %q would refuse all but the newest; take a mutex or the write lock", ErrShared, resource)
}
