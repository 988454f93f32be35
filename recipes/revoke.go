package recipes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// ErrOtherLock says that a contender is not one of the lock that was given it.
var ErrOtherLock = errors.New("a contender of another lock")

// RequestRelease asks the owner of a contender of this lock to release the lock or
// to give up waiting. It does so in Curator's protocol (Revoker.attemptRevoke): it
// replaces the data of the contender's node. Nothing is taken from the owner, which
// decides; see [Hold.Revoked]. A contender that is gone is no error. A contender of
// another lock, or of one in another namespace, is refused with [ErrOtherLock].
// Locks of Curator answer if they were made revocable. Locks of kazoo and
// go-zookeeper do not.
//
// After an error it is not known whether the owner will hear of it, unless the
// server refused the request, as with client.ErrNoAuth. Asking again does no harm.
func (m *InterProcessMutex) RequestRelease(ctx context.Context, contender Contender) error {
	return m.requestRelease(ctx, contender)
}

// RequestRelease asks a reader or a writer to release the lock, as
// [InterProcessMutex.RequestRelease].
func (l *InterProcessReadWriteLock) RequestRelease(ctx context.Context, contender Contender) error {
	return l.read.requestRelease(ctx, contender)
}

// RequestRelease asks a reader or a writer to release the lock, as
// [InterProcessMutex.RequestRelease].
func (l *ReadLock) RequestRelease(ctx context.Context, contender Contender) error {
	return l.requestRelease(ctx, contender)
}

// RequestRelease asks a reader or a writer to release the lock, as
// [InterProcessMutex.RequestRelease].
func (l *WriteLock) RequestRelease(ctx context.Context, contender Contender) error {
	return l.requestRelease(ctx, contender)
}

// RequestRelease asks the owner of a lease to release it, as
// [InterProcessMutex.RequestRelease]. A request to any node of a [Lease] is
// one to all of it. Curator's semaphores do not listen.
func (s *InterProcessSemaphoreV2) RequestRelease(ctx context.Context, contender Contender) error {
	return requestRelease(ctx, s.c, s.path, contender,
		directory{s.leases.dir, func(name string) bool { _, is := leaseNumber(name); return is }}, directory{s.gate.path, s.gate.queue.Contends})
}

// RequestRelease asks the holder to release the lock, as
// [InterProcessMutex.RequestRelease]. Curator's locks of this kind do not listen.
func (m *InterProcessSemaphoreMutex) RequestRelease(ctx context.Context, contender Contender) error {
	return m.semaphore.RequestRelease(ctx, contender)
}

func (l *lockInternals) requestRelease(ctx context.Context, contender Contender) error {
	return requestRelease(ctx, l.c, l.path, contender, directory{l.path, l.queue.Contends})
}

// directory is a directory of a lock, and how its contenders are named.
type directory struct {
	dir  string
	ours func(name string) bool
}

// requestRelease asks a contender in one of some directories of the lock at path.
func requestRelease(ctx context.Context, c *client.Client, path string, of Contender, dirs ...directory) error {
	node, err := nodeOf(c, of, dirs)
	if err == nil {
		_, err = c.Set(ctx, node, []byte(revocation), client.AnyVersion)
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return &LockError{Op: "request the release of", Path: path, Err: err}
	}
	return nil
}

// nodeOf returns the path for c of a contender's node, which must be in one of
// some directories and have a contender's name. What a client with another namespace has listed has other
// paths for c.
func nodeOf(c *client.Client, of Contender, dirs []directory) (string, error) {
	for _, r := range dirs {
		path, in := of.Path, r.dir
		if of.full != "" {
			path = of.full
			in, _ = inner.ServerPath(c, r.dir) // the lock was made with it
		}
		name, ok := strings.CutPrefix(path, in+"/")
		if ok && !strings.Contains(name, "/") && r.ours(name) {
			return r.dir + "/" + name, nil
		}
	}
	if of.Path == "" {
		return "", fmt.Errorf("%w: it names no node; take one that Queue has listed", ErrOtherLock)
	}
	return "", fmt.Errorf("%w: %s", ErrOtherLock, of.Path)
}

// Revoked is closed when the release of the lock is asked for, by
// [InterProcessMutex.RequestRelease] or Curator's Revoker. The lock is still held
// then. It may take 20 ms until a new hold hears of it, and requests that were
// written while it waited count.
func (h *Hold) Revoked() <-chan struct{} { return h.grant.request().Done() }

// OnRevoke runs f on a goroutine of its own when the release of the lock is asked
// for, at once if that has happened. f runs once at most, and not after the hold
// has ended. The returned function keeps f from being started and reports whether
// it did, like the function that [context.AfterFunc] returns.
func (h *Hold) OnRevoke(f func()) (stop func() bool) {
	over := h.context() // and not h, which may become garbage
	return context.AfterFunc(h.grant.request(), func() {
		if over.Err() == nil {
			f()
		}
	})
}
