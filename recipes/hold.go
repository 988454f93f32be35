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
	"github.com/docent-go/docent/internal/seqqueue"
)

// Hold is a lock that is held. It is safe for concurrent use. Every hold must
// be released, by [Hold.Release] or [Hold.Close], also after it was lost.
type Hold struct {
	node   *heldNode
	ctx    context.Context //nolint:containedctx // it is the hold: it ends with it
	cancel context.CancelCauseFunc

	leaving  atomic.Bool   // Release was called
	released chan struct{} // closed when it is done
	err      error         // of Release; set before released is closed
}

// heldNode is the node behind one or, with re-entry, several holds.
type heldNode struct {
	path   string // of the lock
	member *seqqueue.Member
	ctx    context.Context //nolint:containedctx // ends when the node is no longer held
	cancel context.CancelCauseFunc
	watch  *time.Timer
	unbind func() bool // from the session's end

	mu    sync.Mutex // guards count; never held across I/O
	count int        // holds that are not released
}

// watchAfter is how long a hold lasts before its own node is watched: shorter
// ones cost the server nothing, and a node that was deleted before is found
// missing.
const watchAfter = 20 * time.Millisecond

// newHeldNode makes a granted member a hold. ctx gives its values, not its
// end.
func newHeldNode(ctx context.Context, path string, m *seqqueue.Member) *heldNode {
	n := &heldNode{path: path, member: m}
	n.ctx, n.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	// The session's end ends the hold without a goroutine waiting for it.
	n.unbind = context.AfterFunc(m.Session.Context(), func() { n.lose(context.Cause(m.Session.Context())) })
	n.watch = time.AfterFunc(watchAfter, n.watchOwn)
	return n
}

// lose ends all holds of the node.
func (n *heldNode) lose(why error) { n.cancel(fmt.Errorf("%w: %w", ErrLost, why)) }

// watchOwn ends the hold when somebody deletes its node, which takes no
// right on the node itself, only on its parent. It runs on a goroutine of
// its own and ends with the hold.
func (n *heldNode) watchOwn() {
	for n.ctx.Err() == nil {
		_, _, w, err := n.member.Session.GetW(n.ctx, n.member.Path)
		switch {
		case err == nil:
			select {
			case <-w.Done():
			case <-n.ctx.Done():
			}
		case errors.Is(err, zk.ErrNoNode):
			n.lose(ErrNodeDeleted)
		case client.Refused(err):
			n.member.Session.Logger().Warn("zookeeper: a lock's own node may not be read, so its deletion will not be noticed",
				"node", n.member.Path, "reason", err)
			return
		default: // the client's retry policy gave up; a hold does not
			t := time.NewTimer(n.member.Session.Timeout() / 6)
			select {
			case <-t.C:
			case <-n.ctx.Done():
			}
			t.Stop()
		}
	}
}

// enter returns one more hold, with the values of ctx.
func (n *heldNode) enter(ctx context.Context, key heldKey) (*Hold, error) {
	if err := n.err(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.count < 0 {
		return nil, ErrReleased
	}
	n.count++
	h := &Hold{node: n, released: make(chan struct{})}
	hctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(n.ctx, func() { cancel(context.Cause(n.ctx)) })
	h.cancel = func(cause error) { stop(); cancel(cause) }
	h.ctx = context.WithValue(hctx, key, n)
	return h, nil
}

// leave takes one hold off, and reports whether it was the last.
func (n *heldNode) leave() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count--
	if n.count > 0 {
		return false
	}
	n.count = -1 // nobody enters any more
	return true
}

// err is nil while the node is held. It asks the session, which looks at the
// clock, so that a late timer cannot make a lost lock look held.
func (n *heldNode) err() error {
	if n.ctx.Err() != nil {
		return context.Cause(n.ctx)
	}
	if why := n.member.Session.Err(); why != nil {
		n.lose(why)
		return context.Cause(n.ctx)
	}
	return nil
}

// Context is done when the hold ends. Its cause matches [ErrReleased] or
// [ErrLost]. It carries the values of the context that was given to Acquire,
// but not its end. Re-enter the lock with it.
func (h *Hold) Context() context.Context { return h.ctx }

// Path is the path of the own node.
func (h *Hold) Path() string { return h.node.member.Path }

// FencingToken grows with every hold of the lock, whoever takes it: it is the
// id of the transaction that made the own node (czxid). The node's sequence
// number is no token, it starts again at 0 when the directory is removed.
// Restoring an ensemble from a backup may take tokens back.
func (h *Hold) FencingToken() int64 { return h.node.member.Czxid }

// Err is nil while the lock is held. Afterwards it matches [ErrReleased] or
// [ErrLost].
func (h *Hold) Err() error {
	if h.ctx.Err() != nil {
		return context.Cause(h.ctx)
	}
	return h.node.err()
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
	if h.leaving.CompareAndSwap(false, true) { // not a sync.Once, which would hold later callers past their ctx
		h.err = h.release(ctx)
		close(h.released)
	}
	select {
	case <-h.released:
	case <-ctx.Done():
	}
	select {
	case <-h.released: // also when ctx has ended as well
		return h.err
	default:
		return &LockError{Op: "release", Path: h.node.path, Err: ctxerr.Ended(ctx)}
	}
}

func (h *Hold) release(ctx context.Context) error {
	n := h.node
	lost := h.Err()
	h.cancel(cmp.Or(lost, ErrReleased)) // who waits on the context learns what Release returns
	last := n.leave()
	if last {
		n.watch.Stop()
		n.cancel(ErrReleased)
		n.unbind()
	}
	if lost != nil {
		return &LockError{Op: "release", Path: n.path, Err: lost}
	}
	if !last {
		return nil
	}
	switch err := n.member.Leave(ctx); {
	case err == nil:
		return nil
	case errors.Is(err, ErrNodeDeleted), n.member.Session.Err() != nil:
		return &LockError{Op: "release", Path: n.path, Err: fmt.Errorf("%w: %w", ErrLost, err)}
	default:
		return &LockError{Op: "release", Path: n.path, Err: fmt.Errorf("%w; the node is being removed in the background", err)}
	}
}

// Close is [Hold.Release] within one session timeout. It is made for defer.
func (h *Hold) Close() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), h.node.member.Session.Timeout())
	defer cancel()
	return h.Release(ctx)
}
