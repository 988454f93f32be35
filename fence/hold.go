package fence

import (
	"context"
	"errors"
)

// Hold is what this package needs of a lock that is held; *recipes.Hold is
// one.
type Hold interface {
	// Context ends when the hold does, with the reason as its cause.
	Context() context.Context
	// FencingToken grows with every hold of the lock.
	FencingToken() int64
	// Err is nil while the lock is held.
	Err() error
	// Close releases the lock.
	Close() error
}

// Lock is a lock whose holds are exclusive, such as
// *recipes.InterProcessMutex.
type Lock[H Hold] interface {
	// Acquire waits until the lock is held. ctx bounds the waiting only.
	Acquire(ctx context.Context) (H, error)
}

// bearer is what a context carries.
type bearer struct {
	token int64
	held  func() error // nil if only the token is known
}

type bearerKey struct{}

// WithToken returns a context that carries the token, for [Transport] and
// [Database.Tx]. It is for those who were handed a token, such as a service
// behind the one that holds the lock; with the hold itself use [Context]. The
// innermost token counts.
func WithToken(ctx context.Context, token int64) context.Context {
	return context.WithValue(ctx, bearerKey{}, bearer{token: token})
}

// Context returns the context of a hold, carrying its token. It ends with the
// hold.
func Context(h Hold) context.Context {
	return context.WithValue(h.Context(), bearerKey{}, bearer{h.FencingToken(), h.Err})
}

// Token returns the token that ctx carries, and whether there is one.
func Token(ctx context.Context) (token int64, ok bool) {
	b, ok := ctx.Value(bearerKey{}).(bearer)
	return b.token, ok
}

// held is nil while the lock may be relied upon, as far as is known here. It
// asks the hold, which looks at the clock, because a timer that ends a context
// may be late.
func held(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if b, ok := ctx.Value(bearerKey{}).(bearer); ok && b.held != nil {
		return b.held()
	}
	return nil
}

// Do runs fn while the lock is held. fn's context carries the token and ends
// when the lock is lost or ctx ends; fn must return then, and the lock is
// released when it has.
//
// If the lock was not obtained, fn is not run and the error is Acquire's.
// Otherwise it is fn's, joined with that of the release, which says if the
// lock was lost before fn returned. A panic of fn releases the lock. While no
// server is reachable the release may take as long as the lock's Close, whatever
// ctx says.
func Do[H Hold](ctx context.Context, lock Lock[H], fn func(ctx context.Context) error) (err error) {
	h, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return within(ctx, h, fn)
}

// within runs fn with a context that ends with the hold and with ctx.
func within(ctx context.Context, h Hold, fn func(context.Context) error) error {
	work := Context(h)
	if deadline, ok := ctx.Deadline(); ok { // for those who pass deadlines on
		var end context.CancelFunc
		work, end = context.WithDeadline(work, deadline)
		defer end()
	}
	work, cancel := context.WithCancelCause(work)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer stop()
	return fn(work)
}
