// The guard on the path of a semaphore, on which no lock of another kind may be in use.

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
// Any number of transactions borrow the guard at a time. Between them the watch is given up.
// So the client removes it from the server, unless the next comes soon.
type pathGuard struct {
	mu       sync.Mutex   // guards the rest; never held across I/O
	users    int          // that have borrowed it
	arming   bool         // a goroutine sets a new guard
	guard    inside.Guard // or nil
	of       int64        // the session of guard
	used     time.Time    // when it was given back last
	failedAt time.Time    // when a guard fired, or could not be set, last
}

// pathGuardUse is the part of one transaction in a pathGuard.
type pathGuardUse struct {
	guard  inside.Guard // that stood before the transaction was sent, or nil
	failed bool         // guard has fired
}

// stands reports whether there is a guard.
func (u *pathGuardUse) stands() bool { return u.guard != nil }

// borrow returns the guard on the path of a semaphore. The caller has to give it back. If
// there is no guard in constant use, borrow begins to set one, which is for later
// transactions.
func (g *pathGuard) borrow(s *client.Session, path string) (u pathGuardUse) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	warm := g.users > 0 || now.Sub(g.used) < hot
	g.users++
	if g.guard != nil && g.users == 1 && !g.guard.Resume() {
		g.guard = nil
	}
	if g.guard != nil && (g.of != s.ID() || !g.guard.Stands()) {
		g.guard.Stop()
		g.guard = nil
	}
	if g.guard == nil && warm && !g.arming && now.Sub(g.failedAt) >= hot {
		g.arming = true
		go g.arm(s, path) // ends with the answer, or with the session
	}
	return pathGuardUse{guard: g.guard}
}

// arm sets a guard.
func (g *pathGuard) arm(s *client.Session, path string) {
	guard := guardPath(s.Context(), s, path)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.arming, g.guard, g.of = false, guard, s.ID()
	switch {
	case guard == nil:
		g.failedAt = time.Now()
	case g.users == 0:
		guard.Stop()
	}
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

// giveBack ends a use of the guard.
func (g *pathGuard) giveBack(u pathGuardUse) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users--
	g.used = time.Now()
	failed := u.failed && g.guard == u.guard
	if g.guard != nil && (failed || g.users == 0) {
		g.guard.Stop()
	}
	if failed {
		g.guard, g.failedAt = nil, g.used
	}
}
