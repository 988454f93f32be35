package good

import (
	"context"
	"errors"

	"github.com/docent-go/docent/recipes"
)

// What follows asks twice for what does not change in between.

func early(ctx context.Context, lock *recipes.InterProcessMutex, first bool) error {
	released := false
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	if first {
		hold.Close()
		released = true
	}
	if !released {
		hold.Close()
	}
	return nil
}

func declared(ctx context.Context, lock *recipes.InterProcessMutex, first bool) (err error) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	var released bool
	if first {
		released, err = true, hold.Close()
	}
	if released {
		return err
	}
	return hold.Close()
}

func parameter(ctx context.Context, rw *recipes.InterProcessReadWriteLock, write bool) (err error) {
	var r *recipes.Hold
	var w *recipes.WriteHold
	if write {
		w, err = rw.WriteLock().Acquire(ctx)
	} else {
		r, err = rw.ReadLock().Acquire(ctx)
	}
	if err != nil {
		return err
	}
	err = sell(1)
	if !write {
		return errors.Join(err, r.Close())
	}
	return errors.Join(err, w.Close())
}

type service struct {
	lock *recipes.InterProcessMutex
	mode string
}

func (s *service) optional(ctx context.Context) error {
	var hold *recipes.Hold
	if s.lock != nil {
		var err error
		if hold, err = s.lock.Acquire(ctx); err != nil {
			return err
		}
	}
	err := sell(1)
	if nil == s.lock {
		return err
	}
	return errors.Join(err, hold.Close())
}

func (s *service) switched(ctx context.Context, jobs []int64) (err error) {
	var hold *recipes.Hold
	switch s.mode {
	case "none", "":
	case "locked":
		if hold, err = s.lock.Acquire(ctx); err != nil {
			return err
		}
	}
	for _, job := range jobs {
		err = errors.Join(err, sell(job))
	}
	if s.mode == "locked" {
		hold.Close()
	}
	return err
}

var verbose, locked bool // flags

func number(ctx context.Context, lock *recipes.InterProcessMutex, jobs []int64) (err error) {
	var holds [2]*recipes.Hold
	if len(jobs) > 1 && locked {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		if 1 < len(jobs) && locked {
			defer hold.Close()
		}
	}
	return errors.Join(err, holds[0].Close())
}

func states(ctx context.Context, lock *recipes.InterProcessMutex, ticks <-chan int64) {
	const (
		idle = iota
		leading
	)
	state := idle
	var hold *recipes.Hold
	for range ticks {
		switch state {
		case idle:
			var err error
			if hold, err = lock.TryAcquire(ctx); err != nil {
				continue
			}
			state = leading
		case leading:
			hold.Close()
			state = idle
		}
	}
	if state == leading {
		hold.Close()
	}
}

func listed(ctx context.Context, lock *recipes.InterProcessMutex) error {
	var failures []error
	hold, err := lock.Acquire(ctx)
	if err != nil {
		failures = append(failures, err)
	}
	if len(failures) > 0 {
		return errors.Join(failures...)
	}
	return hold.Close()
}
