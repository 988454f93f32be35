// Package good releases what it holds, or hands it on.
package good

import (
	"context"
	"errors"
	"log"
	"os"

	"github.com/docent-go/docent/recipes"
)

func sell(token int64) error { return nil }

func deferred(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	return sell(hold.FencingToken())
}

func checked(ctx context.Context, lock *recipes.InterProcessMutex) (err error) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release(ctx)) }()
	return sell(hold.FencingToken())
}

func returned(ctx context.Context, lock *recipes.InterProcessMutex) (*recipes.Hold, error) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	log.Print(hold)
	return hold, nil
}

func named(ctx context.Context, lock *recipes.InterProcessMutex) (hold *recipes.Hold, err error) {
	hold, err = lock.Acquire(ctx)
	return
}

type worker struct{ hold *recipes.Hold }

func (w *worker) stored(ctx context.Context, lock *recipes.InterProcessMutex) (err error) {
	w.hold, err = lock.Acquire(ctx)
	return err
}

func (w *worker) kept(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	w.hold = hold
	return nil
}

func passed(ctx context.Context, latch *recipes.LeaderLatch, serve func(*recipes.Hold) error) error {
	term, err := latch.Campaign(ctx)
	if err != nil {
		return err
	}
	return serve(term.Hold)
}

func embedded(ctx context.Context, latch *recipes.LeaderLatch) error {
	term, err := latch.Campaign(ctx)
	if err != nil {
		return err
	}
	return term.Hold.Close()
}

func beside(ctx context.Context, lock *recipes.InterProcessMutex, done <-chan struct{}) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	go func() { <-done; hold.Close() }()
	return nil
}

func busy(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.TryAcquire(ctx)
	var b *recipes.BusyError
	busy := errors.Is(err, recipes.ErrBusy)
	switch {
	case busy, errors.As(err, &b):
		return nil
	case err != nil:
		return err
	}
	return hold.Close()
}

func retried(ctx context.Context, lock *recipes.InterProcessMutex) error {
	for range 3 {
		hold, err := lock.TryAcquire(ctx)
		if !errors.Is(err, recipes.ErrBusy) && err != nil {
			return err
		}
		if err == nil {
			return errors.Join(sell(hold.FencingToken()), hold.Close())
		}
	}
	return recipes.ErrBusy
}

func until(ctx context.Context, lock *recipes.InterProcessMutex) error {
	var hold *recipes.Hold
	for {
		var err error
		if hold, err = lock.TryAcquire(ctx); err == nil {
			break
		}
	}
	defer hold.Close()
	return sell(hold.FencingToken())
}

func isBusy(err error) bool { return errors.Is(err, recipes.ErrBusy) }

func predicate(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.TryAcquire(ctx)
	if isBusy(err) {
		return nil
	}
	if hold == nil {
		return err
	}
	return hold.Close()
}

func tagged(ctx context.Context, lock *recipes.InterProcessMutex) {
	switch hold, err := lock.TryAcquire(ctx); err {
	case nil:
		hold.Close()
	default:
		log.Print(err)
	}
}

func handedOver(ctx context.Context, latch *recipes.LeaderLatch) error {
	term, err := latch.Campaign(ctx)
	if err != nil {
		return err
	}
	return term.HandOver(ctx, "worker-8")
}

func ends(ctx context.Context, lock *recipes.InterProcessMutex) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	<-hold.Context().Done()
	os.Exit(1)
}

func held(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	_, err = lock.TryAcquire(ctx) // is refused
	return err
}

func method(ctx context.Context, lock *recipes.InterProcessMutex, at func(func() error)) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	at(hold.Close)
	return nil
}

//docentvet:ignore the lock is for the life of the process
func meant(ctx context.Context, lock *recipes.InterProcessMutex) { _, _ = lock.Acquire(ctx) }
