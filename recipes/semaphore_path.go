// How a semaphore in constant use notices a lock of another kind on its path. It does not
// list the path, but has a watch on the children there.

package recipes

import (
	"context"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// hot is how soon a semaphore has to be used again for a guard on its path to be worth its
// request. If a guard has failed, no new one is set for that time either.
const hot = time.Second

// pathGuard is a watch on the children of a semaphore's path. When the watch was set, the
// path had no child of another lock. If the watch has not fired when the answer to a
// transaction arrives, no such child had come before that transaction. Then the path need
// not be listed behind the transaction. A lock that comes later sees the leases.
// seqqueue/chain.go says why. A server sends events of children and of data at the same place.
//
// One acquire at a time borrows the guard. Between acquires the watch is given up. So the
// client removes it from the server, unless the next acquire comes soon.
type pathGuard struct {
	mu       sync.Mutex   // guards the rest; never held across I/O
	out      bool         // an acquire has borrowed it
	guard    inside.Guard // that was given up, or nil
	of       int64        // the session of guard
	used     time.Time    // when an acquire gave it back last
	failedAt time.Time    // when a guard fired, or could not be set, last
}

// pathGuardUse is the part of one acquire in a pathGuard.
type pathGuardUse struct {
	has    bool         // the acquire has to give the guard back
	guard  inside.Guard // or nil
	of     int64        // the session of the acquire
	failed bool         // guard has fired, or could not be set

	next chan inside.Guard // brings the guard that is being set, or nil; nil if none is
}

// stands reports whether there is a guard.
func (u *pathGuardUse) stands() bool { return u.guard != nil }

// borrow returns the guard on the path of a semaphore for one acquire. The acquire has to
// give it back. If there is no guard in constant use, borrow begins to set one, which is for
// the next acquire.
func (g *pathGuard) borrow(ctx context.Context, s *client.Session, path string) (u pathGuardUse) {
	g.mu.Lock()
	if g.out {
		g.mu.Unlock()
		return u
	}
	now := time.Now()
	warm := now.Sub(g.used) < hot && now.Sub(g.failedAt) >= hot
	u.guard, u.has, u.of, g.guard, g.out = g.guard, true, s.ID(), nil, true
	same := g.of == u.of
	g.mu.Unlock()
	if same && u.guard != nil && u.guard.Resume() {
		if u.guard.Stands() {
			return u
		}
		u.guard.Stop()
	}
	if u.guard = nil; warm {
		u.next = make(chan inside.Guard, 1)
		go func() { u.next <- guardPath(ctx, s, path) }() // ends with the answer, or with ctx
	}
	return u
}

// guardPath sets a guard on a path. It returns nil if it could not, or if another lock is in
// use there. An acquire that lists the path returns the error that names that lock.
func guardPath(ctx context.Context, s *client.Session, path string) inside.Guard {
	children, guard := inner.GuardChildren(ctx, s, path)
	if guard != nil && refuseForeignIn(path, children) != nil {
		guard.Stop()
		return nil
	}
	return guard
}

// giveBack ends the use of the guard. If a guard is being set, giveBack waits for the answer,
// which comes with the answer to the acquire.
func (g *pathGuard) giveBack(u pathGuardUse) {
	if !u.has {
		return
	}
	if u.next != nil {
		u.guard = <-u.next
		u.failed = u.guard == nil
	}
	if u.guard != nil {
		u.guard.Stop()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.out, g.of, g.used = false, u.of, time.Now()
	if g.guard = u.guard; u.failed {
		g.guard, g.failedAt = nil, g.used
	}
}
