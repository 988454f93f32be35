package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// A kind of lock, by the names of the nodes in its directory.
const (
	kindMutex     = "mutex"
	kindReadWrite = "read/write"
	kindSemaphore = "semaphore"
	kindLatch     = "latch"
)

// lock is a path on which contenders stand, or stood.
type lock struct {
	path  string
	kind  string
	queue func(context.Context) ([]recipes.Contender, error)
	ask   func(context.Context, recipes.Contender) error
}

// lockAt returns the lock on a path, by the names of its children. ok is false if no
// name is that of a contender.
func lockAt(ctx context.Context, c *client.Client, at string) (l lock, ok bool, err error) {
	children, _, err := c.Children(ctx, at)
	if errors.Is(err, client.ErrNoNode) {
		return lock{}, false, nil
	}
	if err != nil {
		return lock{}, false, err
	}
	return lockOf(ctx, c, at, children)
}

// lockOf is lockAt for children that are known.
func lockOf(ctx context.Context, c *client.Client, at string, children []string) (l lock, ok bool, err error) {
	semaphore, err := isSemaphore(ctx, c, at, children)
	switch {
	case err != nil:
		return lock{}, false, err
	case semaphore:
		s, err := recipes.NewInterProcessSemaphoreV2(c, at, 1) // a queue is listed whatever the count
		if err != nil {
			return lock{}, false, err
		}
		return lock{at, kindSemaphore, s.Queue, s.RequestRelease}, true, nil
	case slices.ContainsFunc(children, func(n string) bool { return numbered(n, "__READ__") || numbered(n, "__WRIT__") }):
		l, err := recipes.NewInterProcessReadWriteLock(c, at)
		if err != nil {
			return lock{}, false, err
		}
		return lock{at, kindReadWrite, l.Queue, l.RequestRelease}, true, nil
	case slices.ContainsFunc(children, func(n string) bool { return numbered(n, "-lock-") || numbered(n, "lock-") }):
		m, err := recipes.NewInterProcessMutex(c, at)
		if err != nil {
			return lock{}, false, err
		}
		return lock{at, kindMutex, m.Queue, m.RequestRelease}, true, nil
	case slices.ContainsFunc(children, func(n string) bool { return numbered(n, "-latch-") }):
		e, err := recipes.NewLeaderLatch(c, at)
		if err != nil {
			return lock{}, false, err
		}
		return lock{at, kindLatch, participants(e), askNoLeader}, true, nil
	}
	return lock{}, false, nil
}

// isSemaphore reports whether a semaphore is at a path with these children. While permits are
// held and no contender waits, servers sweep the empty directory of the queue. Then the
// semaphore is told by its leases.
func isSemaphore(ctx context.Context, c *client.Client, at string, children []string) (bool, error) {
	switch {
	case !slices.Contains(children, "leases"):
		return false, nil
	case slices.Contains(children, "locks"):
		return true, nil
	}
	leases, _, err := c.Children(ctx, path.Join(at, "leases"))
	if errors.Is(err, client.ErrNoNode) || errors.Is(err, client.ErrNoAuth) {
		return false, nil
	}
	return slices.ContainsFunc(leases, func(n string) bool { return numbered(n, "lease-") }), err
}

// participants lists those of an election. The first leads.
func participants(e *recipes.LeaderLatch) func(context.Context) ([]recipes.Contender, error) {
	return func(ctx context.Context) ([]recipes.Contender, error) {
		all, err := e.Participants(ctx)
		line := make([]recipes.Contender, len(all))
		for i, p := range all {
			line[i] = p.Contender
		}
		return line, err
	}
}

// askNoLeader refuses to write into a participant's node, which has the participant's
// id. A change of the data uses up the watch by which Curator's latch waits.
func askNoLeader(_ context.Context, who recipes.Contender) error {
	return fmt.Errorf("%s is of an election, where no participant hears of a request; stop its process, or let its program hand over", who.Path)
}

// numbered reports whether name ends with tag and a sequence number.
func numbered(name, tag string) bool {
	i := strings.LastIndex(name, tag)
	if i < 0 {
		return false
	}
	number := name[i+len(tag):]
	return len(number) == 10 && strings.Trim(number, "0123456789") == ""
}

// mustLock is lockAt for a path that the caller has named: it is an error if no lock is
// there.
func mustLock(ctx context.Context, c *client.Client, at string) (lock, error) {
	l, ok, err := lockAt(ctx, c, at)
	if err != nil {
		return lock{}, err
	}
	if !ok {
		exists, _, err := c.Exists(ctx, at)
		if err != nil {
			return lock{}, err
		}
		if !exists {
			return lock{}, fmt.Errorf("%s does not exist: the path is wrong, or no contender has used the lock since it was free for a while (docent ls %s)", at, path.Dir(at))
		}
		return lock{}, fmt.Errorf("no contender of a lock is at %s: the lock is free, or locks are below it (docent ls %s)", at, at)
	}
	return l, nil
}

// walk calls f for every lock at or below dir, in the order of their paths, at most
// depth levels down. It does not look below a lock. It calls unread for a directory that
// it may not list.
func walk(ctx context.Context, c *client.Client, dir string, depth int, f func(lock) error, unread func(dir string)) error {
	children, _, err := c.Children(ctx, dir)
	switch {
	case errors.Is(err, client.ErrNoNode):
		return nil // it has gone meanwhile
	case errors.Is(err, client.ErrNoAuth):
		unread(dir)
		return nil
	case err != nil:
		return err
	}
	l, ok, err := lockOf(ctx, c, dir, children)
	switch {
	case err != nil:
		return err
	case ok:
		return f(l)
	case depth == 0:
		return nil
	}
	slices.Sort(children)
	for _, child := range children {
		if dir == "/" && child == "zookeeper" {
			continue // the servers' own
		}
		if err := walk(ctx, c, path.Join(dir, child), depth-1, f, unread); err != nil {
			return err
		}
	}
	return nil
}
