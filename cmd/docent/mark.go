//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// checkMark refuses a --mark that could not say what it is to say of the lock at.
func (j *runJob) checkMark(at string) error {
	if j.mark == "" {
		return nil
	}
	if err := validPath(j.mark); err != nil {
		return fmt.Errorf("--mark: %w", err)
	}
	switch {
	case j.shared || j.permits > 0:
		return usageError("--mark needs a lock with one holder; leave out --shared and --permits")
	case j.mark == "/" || strings.HasPrefix(j.mark+"/", at+"/"):
		return usageError("--mark %s: take a node outside of the lock's directory %s, such as /marks/2026-03-01", j.mark, at)
	}
	return nil
}

// looked reports whether the mark stands, and says so with -v. A signal ends it.
func (j *job) looked(ctx context.Context, c *client.Client) (done bool, err error) {
	err = j.interruptible(ctx, func(ctx context.Context) (err error) {
		done, err = j.marked(ctx, c)
		return err
	})
	if err != nil {
		return false, ownFailure(err)
	}
	if done && j.to.verbose {
		say(j.io.err, "%s exists: the work is done, and the command does not run", j.mark)
	}
	return done, nil
}

// marked reports whether the mark stands, and makes its parents if it does not. The caller
// holds the lock.
func (j *job) marked(ctx context.Context, c *client.Client) (bool, error) {
	done, _, err := c.Exists(ctx, j.mark)
	if err != nil || done {
		return done, err
	}
	parent := path.Dir(j.mark)
	if there, _, err := c.Exists(ctx, parent); err != nil || there {
		return false, err
	}
	if _, err := c.Create(ctx, parent, nil, client.WithPersistentParents()); err != nil && !errors.Is(err, client.ErrNodeExists) {
		return false, err
	}
	return false, nil
}

// leaveMark makes the mark while hold lasts. A mark that another client has made
// meanwhile is as good. A signal that the command was sent does not end leaveMark: the work
// is done.
func (j *job) leaveMark(ctx context.Context, hold *recipes.Hold) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	data := fmt.Sprintf("%s pid=%d client=%s", host, os.Getpid(), j.to.name)
	_, err = hold.Guard(context.WithoutCancel(ctx), client.CreateOp(j.mark, []byte(data)))
	switch {
	case err == nil || errors.Is(err, client.ErrNodeExists):
		return nil
	case passing(err):
		return &exitError{exitLost, fmt.Errorf("the command has ended with 0, and the lock was lost before the mark %s was certain: %w", j.mark, err)}
	}
	return &exitError{exitOwn, fmt.Errorf("the command has ended with 0, but the mark %s could not be made, so the command will run again: %w", j.mark, err)}
}

// passing reports whether another turn may succeed where err ended this one.
func passing(err error) bool {
	var exit *exitError
	if errors.As(err, &exit) && exit.code != exitOwn {
		return exit.code == exitLost
	}
	return errors.Is(err, recipes.ErrLost) || errors.Is(err, client.ErrSessionLost) || client.UnknownOutcome(err)
}
