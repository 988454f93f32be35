package main

import (
	"context"
	"errors"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

const (
	lockPath = "/jobs/report/lock"
	donePath = "/jobs/report/done" // has a node for each night whose work is done
)

// job is work that is to be done once a night, by one of several machines.
type job struct {
	c    *client.Client
	lock *recipes.InterProcessMutex
	work func(ctx context.Context, token int64, night string) (report []byte, err error)
}

func newJob(ctx context.Context, c *client.Client, work func(context.Context, int64, string) ([]byte, error)) (*job, error) {
	_, err := c.Create(ctx, donePath, nil, client.WithPersistentParents())
	if err != nil && !errors.Is(err, client.ErrNodeExists) {
		return nil, err
	}
	lock, err := recipes.NewInterProcessMutex(c, lockPath)
	return &job{c, lock, work}, err
}

// run returns nil when the work of the night is done, by this machine or by another.
// It waits while another machine works, and takes over if that one dies.
func (j *job) run(ctx context.Context, night string) error {
	for {
		err := j.lock.Do(ctx, func(ctx context.Context, hold *recipes.Hold) error {
			done, _, err := j.c.Exists(ctx, donePath+"/"+night)
			if err != nil || done {
				return err
			}
			report, err := j.work(ctx, hold.FencingToken(), night)
			if err != nil {
				return err
			}
			_, err = hold.Guard(ctx, client.CreateOp(donePath+"/"+night, report)) // only while the lock is held
			return err
		})
		again := errors.Is(err, recipes.ErrLost) || errors.Is(err, client.ErrSessionLost) || client.UnknownOutcome(err)
		if !again || ctx.Err() != nil {
			return err
		}
	}
}
