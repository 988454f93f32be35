package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// lockInternals is what the locks with one queue have in common (Curator's
// LockInternals). The locks differ in the tag of their nodes and in who ahead
// of them blocks.
type lockInternals struct {
	settings

	c      *client.Client
	path   string
	queue  *seqqueue.Queue
	tag    string          // of the own nodes
	blocks seqqueue.Blocks // rule(tag)
	key    heldKey
	// beside is the hold that another lock's hold gives to those whose context
	// descends from it, or its refusal; nil if it has none to say.
	beside func(context.Context) (*Hold, error)
}

// heldKey finds a hold in a context. Locks of one client on one path are the
// same lock, in whatever namespace they are named.
type heldKey struct {
	root *client.Client
	path string // on the server
	tag  string
	on   any // heldOn(path), made once
}

func newHeldKey(c *client.Client, full, tag string) heldKey {
	return heldKey{inner.Root(c), full, tag, heldOn(full)}
}

// What an acquire is called in errors.
const (
	acquiring = "acquire"
	trying    = "try to acquire"
)

// The tags that stand before the numbers.
const (
	lockTag   = "lock-"    // InterProcessMutex, LeaderSelector, go-zookeeper's Lock
	readTag   = "__READ__" // InterProcessReadWriteLock
	writeTag  = "__WRIT__"
	kazooLock = "__lock__" // kazoo's Lock and WriteLock
	kazooRead = "__rlock__"
)

// rule says who blocks a contender with the given tag: readers do not block
// each other, everybody else blocks and is blocked.
func rule(tag string) seqqueue.Blocks {
	if isRead(tag) {
		return func(ahead seqqueue.Node) bool { return !isRead(ahead.Tag) }
	}
	return seqqueue.Everybody
}

func isRead(tag string) bool { return tag == readTag || tag == kazooRead }

// newLockInternals checks the path of a lock whose own nodes have tag. Nodes
// with one of others stand in the same line.
func newLockInternals(c *client.Client, path string, s settings, tag string, others ...string) (*lockInternals, error) {
	full, err := lockPath(c, path)
	if err != nil {
		return nil, err
	}
	tags := seqqueue.Tags{Contenders: append([]string{tag}, others...), Foreign: foreigners(tag)}
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

// acquire re-enters a hold of ctx, or waits in the queue.
func (l *lockInternals) acquire(ctx context.Context) (*Hold, error) {
	straight := func(context.Context) error { return nil }
	return l.enter(ctx, acquiring, straight, l.await)
}

// tryAcquire re-enters a hold of ctx, or takes the lock if nobody blocks it.
func (l *lockInternals) tryAcquire(ctx context.Context) (*Hold, error) {
	return l.enter(ctx, trying, l.free, l.try)
}

// free returns a BusyError if somebody would be ahead, and refuses if somebody
// is there who goes by other rules. It makes no node.
func (l *lockInternals) free(ctx context.Context) error {
	line, err := l.queue.Line(ctx)
	if err != nil {
		return err
	}
	for _, n := range line {
		if err := l.queue.Foreign(n); err != nil {
			return err
		}
	}
	return l.busy(ctx, line)
}

// try takes the turn of member if it has come.
func (l *lockInternals) try(ctx context.Context, member *seqqueue.Member) error {
	return l.first(ctx, member)
}

// first returns a BusyError unless member is the first.
func (l *lockInternals) first(ctx context.Context, member *seqqueue.Member) error {
	for {
		ahead, err := member.Ahead(ctx, l.blocks)
		if err != nil || ahead == nil {
			return err
		}
		line, err := l.queue.Line(ctx)
		if err != nil {
			return err
		}
		own := slices.Index(line, member.Node)
		if err := l.busy(ctx, line[:max(own, 0)]); err != nil {
			return err
		}
		// Those ahead have left meanwhile: look again.
	}
}

// busy returns a BusyError with the first of line that blocks and is still
// there.
func (l *lockInternals) busy(ctx context.Context, line []seqqueue.Node) error {
	for i, n := range line {
		if !l.blocks(n) {
			continue
		}
		holder, err := lookUp(ctx, l.c, l.queue.Path(n), n)
		if err != nil {
			return err
		}
		if holder != nil {
			// Those that block are gone, those that do not hold.
			holder.Holder = !slices.ContainsFunc(line[:i], func(o seqqueue.Node) bool { return o.Key < n.Key && !l.blocks(o) })
			return &BusyError{Holder: *holder}
		}
	}
	return nil
}

// enter re-enters a hold of ctx, or makes one that is observed.
func (l *lockInternals) enter(ctx context.Context, op string, before func(context.Context) error, await func(context.Context, *seqqueue.Member) error) (*Hold, error) {
	ctxerr.Require(ctx)
	if h, err := reenter(ctx, heldBy(ctx, l.key)); h != nil && err == nil {
		return h, nil
	}
	ctx, seen := observe(ctx, l.c, l.info(op == trying))
	h, err := l.join(ctx, seen, op, before, await)
	seen.given(ctx, h, err)
	return h, err
}

// info describes an acquire of the lock.
func (l *lockInternals) info(try bool) client.LockInfo {
	recipe := "InterProcessReadWriteLock"
	if l.tag == lockTag {
		recipe = "InterProcessMutex"
	}
	return client.LockInfo{Recipe: recipe, Mode: modeOf(l.tag).String(), Path: l.path, Try: try}
}

// join takes what another lock's hold gives; or, unless before objects, it joins the
// queue and waits by await.
func (l *lockInternals) join(ctx context.Context, seen *sight, op string, before func(context.Context) error, await func(context.Context, *seqqueue.Member) error) (*Hold, error) {
	if h, err := l.reenter(ctx); h != nil || err != nil {
		if err != nil {
			return nil, l.fail(op, err)
		}
		return h, nil
	}
	if err := before(ctx); err != nil {
		return nil, l.fail(op, err)
	}
	if err := met(ctx, l.c); err != nil {
		return nil, l.fail(op, err)
	}
	member, err := l.queue.Join(ctx, l.tag, l.nodeData(l.c), l.acl)
	if err != nil {
		return nil, l.fail(op, err)
	}
	seen.queued(l.path, member)
	if err := await(ctx, member); err != nil {
		member.LeaveInBackground()
		return nil, l.fail(op, err)
	}
	h, err := take(ctx, l.place(member))
	if err != nil {
		return nil, l.fail(op, err)
	}
	return h, nil
}

// await waits for the turn of member, unless it would never come.
func (l *lockInternals) await(ctx context.Context, member *seqqueue.Member) error {
	if err := l.deadlock(ctx, member); err != nil {
		return err
	}
	return member.Await(ctx, l.blocks)
}

// reenter returns one more hold of the lock if ctx descends from one, and nil
// if it does not.
func (l *lockInternals) reenter(ctx context.Context) (*Hold, error) {
	h, err := reenter(ctx, heldBy(ctx, l.key))
	if h == nil && err == nil && l.beside != nil {
		return l.beside(ctx)
	}
	return h, err
}

// place is where a member that was granted stands.
func (l *lockInternals) place(m *seqqueue.Member) place {
	return place{
		lock: l.path, key: l.key,
		c: l.c, session: m.Session, nodes: []string{m.Path}, token: m.Czxid,
		remove: m.Leave, drop: m.LeaveInBackground,
	}
}

// contenders lists the queue.
func (l *lockInternals) contenders(ctx context.Context) ([]Contender, error) {
	line, err := l.queue.Line(ctx)
	if err != nil {
		return nil, l.fail("list", err)
	}
	all, err := contenders(ctx, l.c, l.queue, line)
	if err != nil {
		return nil, l.fail("list", err)
	}
	return all, nil
}

// met waits for the first session of a lazy client.
func met(ctx context.Context, c *client.Client) error {
	if c.State() != client.Connecting {
		return nil
	}
	_, err := c.Session(ctx)
	return err
}
