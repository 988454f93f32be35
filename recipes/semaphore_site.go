package recipes

import (
	"context"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// hot is how soon a semaphore has to be used again for a guard on its path to be worth
// its request, and how long one that has failed is not tried again.
const hot = time.Second

// siteGuard is a watch on the children of a semaphore's path, which had no child of
// another lock when the watch was set. If it has not fired when the answer to a
// transaction arrives, none had come before that transaction, and the path need not be
// listed behind it. (seqqueue/chain.go says why; a server sends the events of children at the
// same place as those of data.) A lock that comes later sees the leases.
//
// One acquire at a time has the guard. Between acquires it is given up, so that the
// client removes it from the server unless the next one comes soon.
type siteGuard struct {
	mu     sync.Mutex   // guards the rest; never held across I/O
	out    bool         // an acquire has it
	guard  inside.Guard // that was given up, or nil
	of     int64        // the session of guard
	used   time.Time    // when it was given back
	broken time.Time    // when it has failed
}

// siteUse is the part of one acquire in a siteGuard.
type siteUse struct {
	has    bool         // it has to give the guard back
	guard  inside.Guard // or nil
	of     int64        // the session of the acquire
	failed bool

	next chan inside.Guard // has one guard, or nil, for the next acquire; or is nil
}

// stands reports whether there is a guard.
func (u *siteUse) stands() bool { return u.guard != nil }

// take returns the guard on the path of a semaphore for one acquire, which has to give it
// back. In constant use, if there is none, take begins to set one for the next acquire.
func (g *siteGuard) take(ctx context.Context, s *client.Session, path string) (u siteUse) {
	g.mu.Lock()
	if g.out {
		g.mu.Unlock()
		return u
	}
	now := time.Now()
	warm := now.Sub(g.used) < hot && now.Sub(g.broken) >= hot
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
		go func() { u.next <- guardSite(ctx, s, path) }() // ends with the answer, or with ctx
	}
	return u
}

// guardSite sets a guard on a path where no other lock is. It returns nil if it could not, or
// if there is one: acquires that list the path say so.
func guardSite(ctx context.Context, s *client.Session, path string) inside.Guard {
	children, guard := inner.GuardChildren(ctx, s, path)
	if guard != nil && refuseForeignIn(path, children) != nil {
		guard.Stop()
		return nil
	}
	return guard
}

// giveBack ends the use of the guard. If one is being set, it waits for the answer, which
// comes with that of the acquire.
func (g *siteGuard) giveBack(u siteUse) {
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
		g.guard, g.broken = nil, g.used
	}
}
