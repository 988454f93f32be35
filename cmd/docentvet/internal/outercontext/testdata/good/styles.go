package good

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
)

func merge(a, b context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancel(a)
	context.AfterFunc(b, cancel)
	return both, cancel
}

func merged(ctx context.Context, lock *recipes.InterProcessMutex) error {
	return lock.Do(ctx, func(held context.Context, hold *recipes.Hold) error {
		work, cancel := merge(held, ctx)
		defer cancel()
		return sell(work, hold.FencingToken())
	})
}

func serve(ctx context.Context, hold *recipes.Hold) error { return sell(hold.Context(), 1) }

func passed(ctx context.Context, lock *recipes.InterProcessMutex) error {
	return lock.Do(ctx, func(_ context.Context, hold *recipes.Hold) error { return serve(ctx, hold) })
}

func assigned(ctx context.Context, lock *recipes.InterProcessMutex) error {
	return lock.Do(ctx, func(held context.Context, hold *recipes.Hold) error {
		ctx = held
		return sell(ctx, hold.FencingToken())
	})
}

type logger struct{}

func (logger) Warn(context.Context, string) {}

func logged(ctx context.Context, lock *recipes.InterProcessMutex, l logger) error {
	return lock.Do(ctx, func(held context.Context, hold *recipes.Hold) error {
		l.Warn(ctx, "held")
		stop := context.AfterFunc(ctx, func() { l.Warn(ctx, "told to stop") })
		defer stop()
		return sell(held, hold.FencingToken())
	})
}

func ends(ctx context.Context, latch *recipes.LeaderLatch, ticks <-chan time.Time) error {
	return latch.Run(ctx, func(leading context.Context, term *recipes.Term) error {
		for leading.Err() == nil && ctx.Err() == nil {
			select {
			case <-ticks:
			case <-leading.Done():
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
}

func derived(ctx context.Context, lock *recipes.InterProcessMutex) error {
	return lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return sell(ctx, hold.FencingToken())
	})
}

func grouped(ctx context.Context, lock *recipes.InterProcessMutex, group interface{ Go(func() error) }) {
	group.Go(func() error {
		return lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error { return sell(ctx, hold.FencingToken()) })
	})
	group.Go(func() error { return sell(ctx, 0) })
}

func generic[H recipes.AnyHold](ctx context.Context, lock interface {
	Do(ctx context.Context, fn func(ctx context.Context, hold H) error) error
}) error {
	return lock.Do(ctx, func(held context.Context, hold H) error { return sell(held, hold.FencingToken()) })
}

// released works after the Do.
func released(ctx context.Context, lock *recipes.InterProcessMutex) error {
	var token int64
	err := lock.Do(ctx, func(_ context.Context, hold *recipes.Hold) error {
		token = hold.FencingToken()
		return nil
	})
	if err != nil {
		return err
	}
	return sell(ctx, token)
}

type runner struct{ ctx, stopping context.Context }

func (runner) Do(ctx context.Context, _ string, fn func(context.Context, int) error) error {
	return fn(ctx, 0)
}

func (runner) Under(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

// Do is no fence's.
func Do(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

func unlocked(ctx context.Context, r runner) error {
	if err := Do(ctx, func(context.Context) error { return sell(ctx, 0) }); err != nil {
		return err
	}
	if err := r.Under(ctx, func(context.Context) error { return sell(ctx, 0) }); err != nil {
		return err
	}
	return r.Do(ctx, "", func(context.Context, int) error { return sell(ctx, 0) })
}

func fields(r, other runner, lock *recipes.InterProcessMutex) error {
	return lock.Do(r.ctx, func(held context.Context, hold *recipes.Hold) error {
		if err := sell(other.ctx, 0); err != nil {
			return err
		}
		return sell(r.stopping, hold.FencingToken())
	})
}

type conn interface{ Close(context.Context) error }

type tx interface {
	Commit(context.Context) error
	Rollback(context.Context) error
}

// What was begun has to be undone after a loss, too.
func undone(ctx context.Context, lock *recipes.InterProcessMutex, open func(context.Context) (conn, tx, error)) error {
	return lock.Do(ctx, func(held context.Context, hold *recipes.Hold) error {
		c, tx, err := open(held)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close(ctx) }()
		defer tx.Rollback(ctx)
		if err := sell(held, hold.FencingToken()); err != nil {
			return err
		}
		return tx.Commit(held)
	})
}

// The context of the function around ends with the same hold.
func again(ctx context.Context, lock *recipes.InterProcessMutex, at fence.Database, gate *fence.Gate) error {
	return lock.Do(ctx, func(held context.Context, hold *recipes.Hold) error {
		return errors.Join(
			fence.Under(held, hold, at, "stock", func(fenced context.Context) error {
				return errors.Join(sell(held, 1), at.Tx(fenced, "stock", func(_ context.Context, tx *sql.Tx) error {
					_, err := tx.ExecContext(fenced, "UPDATE stock")
					return err
				}))
			}),
			gate.Do(held, "stock", hold.FencingToken(), func(context.Context) error { return sell(held, 1) }),
			lock.Do(held, func(context.Context, *recipes.Hold) error { return sell(held, 1) }),
		)
	})
}

// The function is called when the lock is released.
func afterwards(ctx context.Context, lock *recipes.InterProcessMutex) error {
	var later []func() error
	var last func() error
	err := lock.Do(ctx, func(held context.Context, hold *recipes.Hold) error {
		later = append(later, func() error { return sell(ctx, 1) })
		last = func() error { return sell(ctx, 2) }
		return sell(held, hold.FencingToken())
	})
	for _, one := range append(later, last) {
		err = errors.Join(err, one())
	}
	return err
}

// The work ends with the hold, and so does the wait for it.
func waited(ctx context.Context, latch *recipes.LeaderLatch) error {
	return latch.Run(ctx, func(leading context.Context, term *recipes.Term) error {
		done := make(chan error, 1)
		go func() { done <- sell(leading, term.FencingToken()) }()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return errors.Join(ctx.Err(), <-done)
		}
	})
}
