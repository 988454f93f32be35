package bad

import (
	"context"
	"errors"

	"github.com/docent-go/docent/recipes"
)

func contrary(ctx context.Context, lock *recipes.InterProcessMutex, write bool) error {
	var hold *recipes.Hold
	if write {
		var err error
		if hold, err = lock.Acquire(ctx); err != nil { // want `hold is neither`
			return err
		}
	}
	if !write {
		return hold.Close()
	}
	return nil
}

// What is asked changes in between.

func changed(ctx context.Context, lock *recipes.InterProcessMutex, write bool, more func() bool) error {
	var hold *recipes.Hold
	if write {
		var err error
		if hold, err = lock.Acquire(ctx); err != nil { // want `hold is neither`
			return err
		}
	}
	write = more()
	if write {
		return hold.Close()
	}
	return nil
}

func elsewhere(ctx context.Context, lock *recipes.InterProcessMutex, start func(func())) error {
	stopped := false
	start(func() { stopped = true })
	if stopped {
		return nil
	}
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return err
	}
	if stopped {
		return errors.New("stopped")
	}
	return hold.Close()
}

func filled(ctx context.Context, lock *recipes.InterProcessMutex, fill func(*int)) error {
	n := 0
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return err
	}
	if fill(&n); n == 0 {
		return hold.Close()
	}
	return nil
}

type service struct {
	lock   *recipes.InterProcessMutex
	closed bool
}

func (s *service) Close() { s.closed = true }

func (s *service) checked(ctx context.Context) error {
	if s.closed {
		return errors.New("closed")
	}
	hold, err := s.lock.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return err
	}
	if s.closed {
		return errors.New("closed")
	}
	return hold.Close()
}

func counted(ctx context.Context, lock *recipes.InterProcessMutex, jobs []int64) error {
	n := 0
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return err
	}
	for range jobs {
		n++
	}
	if n > 0 {
		return errors.New("jobs")
	}
	return hold.Close()
}
