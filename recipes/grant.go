package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// place is what the rule of a lock has given to an acquire: its own nodes, in the
// order of the lock.
type place struct {
	seqqueue.Own

	lock  string         // path of the lock
	key   heldKey        // finds the grant in the contexts of its holds
	c     *client.Client // the paths of the nodes are in its namespace
	set   *settings      // of the lock
	token int64

	shared bool // others may hold the lock at the same time

	of *InterProcessSemaphoreV2 // whose waiters may take over; or nil
}

// heldKey finds a hold in a context. Locks of one client on one path are the
// same lock, in whatever namespace they are named.
type heldKey struct {
	root *client.Client
	path string // on the server
	tag  string
	on   any // heldOn(path), made once
}

// heldOn is the key in a context of the holds on a path of the server.
type heldOn string

func newHeldKey(c *client.Client, full, tag string) heldKey {
	return heldKey{inner.Root(c), full, tag, heldOn(full)}
}

// grant is a place that is held: by one hold or, with re-entry, by several.
type grant struct {
	place

	holding inside.Holding        // what the session does for it
	watch   *time.Timer           // begins to watch its own nodes
	seen    atomic.Pointer[sight] // nil until the hold is given, or for ever
	guards  atomic.Int32          // calls of Guard whose outcome is not known

	mu    sync.Mutex // guards the rest; never held across I/O
	over  error      // why it has ended; nil while the nodes are held
	holds []*ending  // that are not released
	life  stoppable  // ends with the grant
	asked stoppable  // ends when the release is asked for

	first ending // the first hold, whose values are the grant's
	one   [1]*ending
}

// stoppable is a context that is made when it is first wanted.
type stoppable struct {
	ctx  context.Context //nolint:containedctx // it ends with what it is part of
	stop context.CancelFunc
}

// watchAfter is how long a hold lasts before its own nodes are watched. Shorter
// holds cost the server nothing, and a node that was deleted before is found
// missing. The time runs from the moment at which the nodes were seen last.
const watchAfter = seqqueue.WatchAfter

// count adds a hold, unless g has ended.
func (g *grant) count(e *ending) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over == nil {
		g.holds = append(g.holds, e)
	}
	return g.over
}

// countDown takes one hold off. After the last one it takes down what the grant has set
// up, and reports true. A write of Guard may be applied as long as the nodes stand. If one
// is under way, or its outcome is unknown, the contender behind waits for their end.
func (g *grant) countDown(e *ending) (last bool) {
	g.mu.Lock()
	g.holds = slices.DeleteFunc(g.holds, func(o *ending) bool { return o == e })
	last = len(g.holds) == 0
	if last {
		g.endLocked(ErrReleased)
	}
	g.mu.Unlock()
	if last {
		if g.guards.Load() > 0 {
			g.Break()
		}
		g.watch.Stop()
		if g.holding != nil {
			g.holding.Done()
		}
	}
	return last
}

// lose ends all holds of the grant.
func (g *grant) lose(why error) {
	if errors.Is(why, zk.ErrNoNode) {
		why = ErrNodeDeleted
	}
	g.mu.Lock()
	g.endLocked(&lossError{g.lock, why})
	over := g.over
	for _, h := range g.holds {
		h.cancel(over) // under the lock: a lost grant has no context that goes on
	}
	g.mu.Unlock()
	g.Break()
	g.seen.Load().lost(g.lock, over)
}

func (g *grant) endLocked(cause error) {
	if g.over != nil {
		return
	}
	g.over = cause
	if g.life.stop != nil {
		g.life.stop()
	}
}

// err is nil while the nodes are held. It asks the session, which looks at the
// clocks, so that a late timer cannot make a lost lock look held.
func (g *grant) err() error {
	over := g.ended()
	if over == nil {
		if why := g.holding.Err(); why != nil {
			g.lose(why)
			over = g.ended()
		}
	}
	return over
}

func (g *grant) ended() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.over
}

func (g *grant) name() string { return g.lock }

func (g *grant) number() int64 { return g.token }

func (g *grant) timeout() time.Duration { return g.Session.Timeout() }

// leave takes off the hold that e ends, and deletes the nodes after the last one.
func (g *grant) leave(ctx context.Context, e *ending, lost error) error {
	last := g.countDown(e)
	if last && lost == nil {
		return g.left(last, g.deleted(ctx, g.Vacate(ctx)))
	}
	return g.leaveAtOnce(last, lost)
}

// leaveAtOnce is leave, behind countDown, of a hold that was lost, or was not the last. It
// waits for nothing.
func (g *grant) leaveAtOnce(last bool, lost error) error {
	if last {
		g.VacateInBackground() // the session may have outlived its lease, or a server may keep it
	}
	return g.left(last, lost)
}

// left returns the error of a release that has failed with err.
func (g *grant) left(last bool, err error) error {
	if err != nil {
		err = &LockError{Op: "release", Path: g.lock, Err: err}
	}
	if last {
		g.seen.Load().released(err)
	}
	return err
}

// deleted is what a release returns whose delete of the nodes has returned err.
func (g *grant) deleted(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && errors.Is(err, ErrNodeDeleted), g.Session.Err() != nil:
		return fmt.Errorf("%w: %w", ErrLost, err)
	default:
		return fmt.Errorf("%w; the node is being removed in the background", notOver(err))
	}
}

func (g *grant) confirm(ctx context.Context) error {
	err := g.holding.Confirm(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		g.lose(ErrNodeDeleted)
	}
	if err != nil {
		return &LockError{Op: "confirm", Path: g.lock, Err: notOver(err)}
	}
	return nil
}
