package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/runonce"
)

// Hold is a lock that is held. It is safe for concurrent use. Every hold must
// be released, by [Hold.Release] or [Hold.Close], also after it was lost.
type Hold struct {
	grant  *grant
	ctx    context.Context //nolint:containedctx // it is the hold: it ends with it
	cancel context.CancelCauseFunc

	leaving *runonce.Once
}

// place is where a hold stands: nodes of one session.
type place struct {
	lock    string         // path of the lock
	key     heldKey        // finds the grant in the contexts of its holds
	c       *client.Client // whose paths those of the nodes are
	session *client.Session
	nodes   []string
	token   int64
	remove  func(context.Context) error // deletes the nodes, as seqqueue.Member.Leave
	drop    func()                      // deletes them in the background
}

// grant is a place that was granted, and what one or, with re-entry, several
// holds stand on.
type grant struct {
	place

	ctx     context.Context //nolint:containedctx // ends when the nodes are no longer held
	cancel  context.CancelCauseFunc
	holding inside.Holding // what the session does for it
	watch   *time.Timer
	unbind  func() bool // from the session's end

	seen  atomic.Pointer[sight] // nil until the hold is given, or for ever
	asked context.Context       //nolint:containedctx // ends when somebody asks for the release
	ask   context.CancelFunc

	mu    sync.Mutex // guards count; never held across I/O
	count int        // holds that are not released
}

// watchAfter is how long a hold lasts before its own nodes are watched:
// shorter ones cost the server nothing, and a node that was deleted before is
// found missing.
const watchAfter = 20 * time.Millisecond

// newGrant begins to hold a place. ctx gives its values, not its end.
func newGrant(ctx context.Context, p place) *grant {
	g := &grant{place: p}
	ctx = context.WithoutCancel(callers(ctx))
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	g.asked, g.ask = context.WithCancel(ctx)
	// The session's end ends the hold without a goroutine waiting for it.
	g.unbind = context.AfterFunc(g.session.Context(), func() { g.lose(context.Cause(g.session.Context())) })
	g.watch = time.AfterFunc(watchAfter, g.watchOwn)
	return g
}

// lose ends all holds of the grant.
func (g *grant) lose(why error) {
	g.cancel(fmt.Errorf("%w: %w", ErrLost, why))
	g.seen.Load().lost(g.lock, context.Cause(g.ctx))
}

// watchOwn watches the own nodes. It runs on a goroutine of its own, which
// ends with the hold.
func (g *grant) watchOwn() {
	var others sync.WaitGroup
	for _, node := range g.nodes[1:] {
		others.Go(func() { g.watchNode(node) })
	}
	g.watchNode(g.nodes[0])
	others.Wait()
}

// watchNode ends the hold when somebody deletes the node, which takes no right
// on the node itself, only on its parent; and it hears of a request to
// release, also of one that was written before it looked.
func (g *grant) watchNode(node string) {
	blind := false
	for g.ctx.Err() == nil {
		data, stat, w, err := g.session.GetW(g.ctx, node)
		switch {
		case err == nil && stat.EphemeralOwner != g.session.ID():
			w.Stop()
			g.lose(ErrNodeDeleted) // and another has made one of that name
		case err == nil:
			if isRevocation(data) {
				g.ask()
			}
			select {
			case <-w.Done():
			case <-g.ctx.Done():
				w.Stop() // mostly the node is about to be deleted, which fires it
			}
		case errors.Is(err, zk.ErrNoNode):
			g.lose(ErrNodeDeleted)
		default: // the client's retry policy gave up, or a right is missing; a hold goes on
			if refused(err) && !blind {
				blind = true
				inner.Logger(g.c).Warn("zookeeper: a lock's own node may not be read, so that its deletion would not be noticed",
					"node", node, "reason", err)
			}
			t := time.NewTimer(g.session.Timeout() / 6)
			select {
			case <-t.C:
			case <-g.ctx.Done():
			}
			t.Stop()
		}
	}
}

// first returns the first hold, with the values of the context that the grant
// was made with.
func (g *grant) first() (*Hold, error) {
	ctx, cancel := context.WithCancelCause(g.ctx)
	return g.add(ctx, cancel)
}

// enter returns one more hold, with the values of ctx.
func (g *grant) enter(ctx context.Context) (*Hold, error) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(callers(ctx)))
	stop := context.AfterFunc(g.ctx, func() { cancel(context.Cause(g.ctx)) })
	return g.add(ctx, func(cause error) { stop(); cancel(cause) })
}

// add counts a hold that has ctx, which ends with the grant.
func (g *grant) add(ctx context.Context, cancel context.CancelCauseFunc) (*Hold, error) {
	if err := g.err(); err != nil {
		cancel(err)
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count < 0 {
		cancel(ErrReleased)
		return nil, ErrReleased
	}
	g.count++
	return &Hold{grant: g, ctx: g.within(ctx), cancel: cancel, leaving: runonce.New()}, nil
}

// leave takes one hold off, and reports whether it was the last.
func (g *grant) leave() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count--
	if g.count > 0 {
		return false
	}
	g.count = -1 // nobody enters any more
	return true
}

// err is nil while the node is held. It asks the session, which looks at the
// clocks, so that a late timer cannot make a lost lock look held.
func (g *grant) err() error {
	if g.ctx.Err() != nil {
		return context.Cause(g.ctx)
	}
	if why := g.holding.Err(); why != nil {
		g.expire(why)
		return context.Cause(g.ctx)
	}
	return nil
}

// Context is done when the hold ends: at the latest a safety margin before
// [Hold.Deadline], with a cause that matches client.ErrLeaseExpired. Its cause
// matches [ErrReleased] or [ErrLost]. It carries the values of the context that
// was given to Acquire, but not its end. Re-enter the lock with it.
func (h *Hold) Context() context.Context { return h.ctx }

// Path is the path of the hold's own node.
func (h *Hold) Path() string { return h.grant.nodes[0] }

// FencingToken grows with every hold of the lock, whoever takes it: it is the
// id of the transaction that made the hold's node (czxid). The node's sequence
// number is no token, it starts again at 0 when the directory is removed. A
// read hold in the place of a write hold has the write hold's token.
// Restoring an ensemble from a backup may take tokens back.
func (h *Hold) FencingToken() int64 { return h.grant.token }

// Err is nil while the lock is held. Afterwards it matches [ErrReleased] or
// [ErrLost].
func (h *Hold) Err() error {
	if h.ctx.Err() != nil {
		return context.Cause(h.ctx)
	}
	return h.grant.err()
}

// Release ends the hold: first its context, then, if no other hold re-entered
// the lock, its node. It may be called from any goroutine and more than once;
// all calls return the result of the first, or their own context's end.
//
// It returns an error that matches [ErrLost] if the lock was lost before it, or
// while it ran.
// With any other error the hold is over as well, and the node is removed in
// the background until that succeeds or the session is over; until then
// others wait.
func (h *Hold) Release(ctx context.Context) error {
	ctxerr.Require(ctx)
	err, done := h.leaving.Do(ctx, func() error { return h.ended(h.release(ctx)) })
	if !done {
		return &LockError{Op: "release", Path: h.grant.lock, Err: ctxerr.Ended(ctx)}
	}
	return err
}

// release reports whether it was the last hold of the grant.
func (h *Hold) release(ctx context.Context) (last bool, err error) {
	g := h.grant
	lost, begun := h.Err(), ctx.Err()
	h.cancel(cmp.Or(lost, ErrReleased)) // who waits on the context learns what Release returns
	if begun == nil && ctx.Err() != nil {
		var done context.CancelFunc
		ctx, done = h.outlived(ctx) // it descends from the hold's
		defer done()
	}
	last = g.leave()
	if last {
		g.end()
	}
	if lost != nil {
		if last {
			g.drop() // the session may have outlived its lease, or a server may keep it
		}
		return last, &LockError{Op: "release", Path: g.lock, Err: lost}
	}
	if !last {
		return false, nil
	}
	switch err := g.remove(ctx); {
	case err == nil:
		return true, nil
	case ctx.Err() == nil && errors.Is(err, ErrNodeDeleted), g.session.Err() != nil:
		return true, &LockError{Op: "release", Path: g.lock, Err: fmt.Errorf("%w: %w", ErrLost, err)}
	default:
		return true, &LockError{Op: "release", Path: g.lock, Err: fmt.Errorf("%w; the node is being removed in the background", notOver(err))}
	}
}

// Close is [Hold.Release] within one session timeout. It is made for defer.
func (h *Hold) Close() error {
	ctx, cancel := h.outlived(h.ctx)
	defer cancel()
	return h.Release(ctx)
}

// discard ends a hold that nobody was given. Its nodes go in the background.
func (h *Hold) discard() {
	h.cancel(ErrReleased)
	if h.grant.leave() {
		h.grant.end()
		h.grant.drop()
	}
}

// outlived bounds a release whose context ends with the hold.
func (h *Hold) outlived(ctx context.Context) (context.Context, context.CancelFunc) {
	end := time.Now().Add(h.grant.session.Timeout())
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end)
}
