package main

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

type job func(ctx context.Context, token int64) error

// service works on one job after the other, on one machine at a time.
type service struct {
	lock  *recipes.InterProcessMutex
	jobs  <-chan job
	grace time.Duration // how long a job may go on after SIGTERM
}

// run serves while it holds the lock, and stands by while another machine does. At SIGTERM
// ctx ends: run returns, and the lock is free. If it stood by, its error is that of ctx.
func (s *service) run(ctx context.Context) error {
	for {
		hold, err := s.lock.Acquire(ctx)
		if err == nil {
			err = errors.Join(s.serve(ctx, hold), release(ctx, hold))
		}
		lost := errors.Is(err, recipes.ErrLost) || errors.Is(err, client.ErrSessionLost)
		if !lost || ctx.Err() != nil {
			return err
		}
	}
}

// serve returns when ctx ends or the lock is lost, and its job has returned.
func (s *service) serve(ctx context.Context, hold *recipes.Hold) error {
	work, stop := context.WithCancel(hold.Context()) // not of ctx: SIGTERM does not cut a job off
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(s.grace, stop) })() // but it may not go on for ever
	for ctx.Err() == nil {
		select {
		case job := <-s.jobs:
			if err := job(work, hold.FencingToken()); err != nil {
				return err
			}
		case <-work.Done():
			return context.Cause(work) // recipes.ErrLost
		case <-ctx.Done():
		}
	}
	return nil
}

// release has a context of its own, because ctx has ended.
func release(ctx context.Context, hold *recipes.Hold) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return hold.Release(ctx)
}
