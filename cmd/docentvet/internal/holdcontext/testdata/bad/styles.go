package bad

import (
	"context"
	"errors"

	"github.com/docent-go/docent/recipes"
)

func closure(ctx context.Context, lock *recipes.InterProcessMutex) (err error) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release(ctx)) }()
	return sell(ctx, 1) // want `ctx does not end when hold is lost`
}

func loops(ctx context.Context, lock *recipes.InterProcessMutex, jobs []int64) error {
	for _, job := range jobs {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		if err := sell(ctx, job); err != nil { // want `ctx does not end when hold is lost`
			hold.Close()
			continue
		}
		hold.Close()
	}
	return nil
}

func field(ctx context.Context, lock *recipes.InterProcessMutex, s *struct{ err error }) {
	var hold *recipes.Hold
	if hold, s.err = lock.Acquire(ctx); s.err != nil {
		return
	}
	defer hold.Close()
	s.err = sell(ctx, 1) // want `ctx does not end when hold is lost`
}

func besides(ctx context.Context, lock *recipes.InterProcessMutex, done chan<- error) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return
	}
	go sell(ctx, 1) // want `ctx does not end when hold is lost`
	select {
	case done <- sell(ctx, 2): // want `ctx does not end when hold is lost`
	default:
	}
	hold.Close()
}
