package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// lockInternals is what the locks with one queue have in common (Curator's
// LockInternals). The locks differ in the tag of their nodes and in the contenders
// ahead that block them.
type lockInternals struct {
	settings

	c      *client.Client
	path   string
	queue  *seqqueue.Queue
	tag    string          // of the nodes that an acquire makes
	blocks seqqueue.Blocks // rule(tag)
	key    heldKey
	// otherHalf is asked by reenter if ctx descends from no hold of this lock: what the
	// other half of a read/write lock gives or refuses. It is nil for a mutex.
	otherHalf func(context.Context) (h *Hold, ok bool, err error)
}

// newLockInternals checks the path of a lock whose own nodes have tag. Nodes
// with one of others stand in the same line, and so do nodes that are named by a number
// alone, as in Curator's locks.
func newLockInternals(c *client.Client, path string, s settings, tag string, others ...string) (*lockInternals, error) {
	full, err := lockPath(c, path)
	if err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	tags := seqqueue.Tags{Contenders: append([]string{tag, seqqueue.Bare}, others...), Foreign: known, Site: semaphoreSite}
	if s.kazoo { // what is a contender is not foreign
		tags.Contenders = append(tags.Contenders, kazooLock, kazooRead)
	}
	return &lockInternals{
		settings: s,
		c:        c, path: path,
		queue: seqqueue.New(c, path, tags),
		tag:   tag, blocks: rule(tag),
		key: newHeldKey(c, full, tag),
	}, nil
}

// newChained is newLockInternals for a lock whose holds are the nodes of its queue. They
// hand over to each other in the process, unless kazoo contends, whose nodes have other
// rules.
func newChained(c *client.Client, path string, s settings, tag string, others ...string) (*lockInternals, error) {
	l, err := newLockInternals(c, path, s, tag, others...)
	if err != nil {
		return nil, err
	}
	most := cmp.Or(s.most, seqqueue.MostMembers)
	shared := ""
	if tag != lockTag {
		shared = readTag
	}
	if s.kazoo {
		l.queue.Windowed(l.key.path, shared, most)
	} else {
		l.queue.Chained(l.key.path, shared, most)
	}
	return l, nil
}

// lockPath checks the path of a lock and maps it to the server's.
func lockPath(c *client.Client, path string) (string, error) {
	if c == nil {
		return "", errors.New("recipes: the client is nil; make one with client.Connect")
	}
	if path == "/" {
		return "", errors.New("recipes: the lock path is \"/\"; give the lock a directory of its own, like \"/locks/orders\"")
	}
	full, err := inner.ServerPath(c, path)
	if err != nil {
		return "", fmt.Errorf("recipes: lock path: %w", err)
	}
	return full, nil
}

func (l *lockInternals) fail(op string, err error) error {
	return &LockError{Op: op, Path: l.path, Err: err}
}

// info describes an acquire of the lock.
func (l *lockInternals) info(try bool) client.LockInfo {
	recipe := "InterProcessReadWriteLock"
	if l.tag == lockTag {
		recipe = "InterProcessMutex"
	}
	return client.LockInfo{Recipe: recipe, Mode: modeOf(l.tag).String(), Path: l.path, Try: try}
}

// contenders lists the queue.
func (l *lockInternals) contenders(ctx context.Context) ([]Contender, error) {
	line, changed, err := l.queue.LineWithChange(ctx)
	if err != nil {
		return nil, l.fail("list", err)
	}
	all, err := contenders(ctx, l.c, l.queue, line, changed)
	if err != nil {
		return nil, l.fail("list", err)
	}
	l.tellWaiting(all)
	return all, nil
}

// tellWaiting says how many acquires of this client wait without a node, behind the newest one.
func (l *lockInternals) tellWaiting(all []Contender) {
	waiting, behind := l.queue.Waiting()
	for i := range all {
		if strings.HasSuffix(all[i].Path, "/"+behind) && behind != "" {
			all[i].WaitingBehind = waiting
		}
	}
}

// waited makes an error of the queue name the contender ahead.
func (l *lockInternals) waited(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var said *seqqueue.WaitError // allocated
	if !errors.As(err, &said) {
		return err
	}
	w := &WaitError{
		Ahead:      *contenderAt(l.c, said.Path, said.Node),
		SameClient: said.Own, Err: said.Err, ended: ctx.Err() != nil, hint: !l.noReentry,
	}
	w.Ahead.Unreadable = said.Hidden
	if said.Stat != nil {
		fill(&w.Ahead, said.Data, said.Stat)
	}
	w.Ahead.Holder = said.Only && !isRead(l.tag) // a reader's writer may itself wait for readers
	return w
}
