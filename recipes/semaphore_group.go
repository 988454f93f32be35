// How a group of waiters gets its permits. gather chooses the group, and promise keeps every
// other hand-over away from it. claim makes the leases in one transaction. serve tells each
// waiter of the result, and callNext tells the waiter behind the group. semaphore_heir.go
// says why that is safe.

package recipes

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// mostTogether is how many permits a group of several waiters takes in one transaction.
const mostTogether = 256

// group is waiters of one session that one transaction serves. They stand directly behind
// each other, from the first in the queue on.
type group struct {
	w        *waiters
	heirs    []*heir
	standing []string     // the leases that may be held
	released seqqueue.Own // of these, the ones that the transaction deletes
}

// gather makes a group of h, and of the waiters behind h for which there is room as well. h is
// the first in the queue and has room. The caller holds w.mu.
func (w *waiters) gather(h *heir, standing []string, released seqqueue.Own) *group {
	g := &group{w: w, heirs: []*heir{h}, standing: standing, released: released}
	held := len(standing) - len(released.Paths) + h.p.n
	for sum := h.p.n; ; {
		next := w.behind[h.m.Node.Name]
		if next == nil || next.promised || next.m.Session.ID() != h.m.Session.ID() {
			return g
		}
		held, sum = held+next.p.n, sum+next.p.n
		if held > next.p.max || sum > mostTogether {
			return g
		}
		g.heirs, h = append(g.heirs, next), next
	}
}

// promise says that a transaction will serve the group. The caller holds w.mu.
func (g *group) promise() {
	for _, h := range g.heirs {
		h.promised = true
		g.w.forget(h)
	}
	if g.w.first == g.heirs[0] {
		g.w.first = nil
	}
}

// heirsOf promises leases that are to be released to a group, and returns it. It returns
// nil if no waiter can take them over.
func (w *waiters) heirsOf(released seqqueue.Own) *group {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.first
	if h == nil || h.m.Session.ID() != released.Session.ID() || len(h.standing)-len(released.Paths) > h.p.max-h.p.n {
		return nil
	}
	for _, path := range released.Paths {
		if !slices.Contains(h.standing, nameOf(path)) {
			return nil
		}
	}
	g := w.gather(h, h.standing, released)
	g.promise()
	return g
}

// nameOf is the last part of a path.
func nameOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// claim makes the leases of h, which is the first in the queue and has found room. standing
// are the leases that may be held already. If waiters behind h can be served in the same
// transaction, they are.
func (h *heir) claim(ctx context.Context, standing []string) (place, error) {
	w := h.w
	w.mu.Lock()
	g := w.gather(h, standing, seqqueue.Own{})
	together := len(g.heirs) > 1 && !h.promised
	if together {
		g.promise()
	}
	w.mu.Unlock()
	if together {
		go g.claim() // bounded by the session: each of the group may give up
		if got, over, err := h.ended(ctx, false); over || err != nil {
			return got, err
		}
	}
	got, err := h.p.claim(ctx, h.m)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		alone := &group{w: w, heirs: []*heir{h}, standing: standing}
		alone.callNext(got.Paths)
	}
	return got, err
}

// claim makes the leases of the group, and tells each waiter of the result.
func (g *group) claim() {
	first := g.heirs[0]
	var nodes []newNode
	var parts []client.Op
	for _, h := range g.heirs {
		nodes = append(nodes, h.p.nodes(h.p.nodeData(h.p.c))...)
		parts = append(parts, client.DeleteOp(h.m.Path, 0))
	}
	for _, path := range g.released.Paths {
		parts = append(parts, client.DeleteOp(path, client.AnyVersion))
	}
	for i := range nodes[1:] {
		nodes[i+1].More = nil // one list is enough
	}
	session := first.m.Session
	made, err := inner.CreateGroup(session.Context(), session, nodes, parts...)
	unchanged := refused(err) || errors.Is(err, client.ErrTooLarge) // one request may be too small for all nodes
	if err == nil {
		err = first.p.refuseMixed(session.Context(), made[0].More)
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	if made != nil {
		g.callNext(first.p.granted(session, made).Paths)
	}
	for _, h := range g.heirs {
		if made != nil {
			h.got, made = h.p.granted(session, made[:h.p.n]), made[h.p.n:]
		}
		h.serve(err, unchanged)
	}
}

// serve is called when the transaction that serves h has ended, with err. unchanged says
// that it has changed nothing. The caller holds w.mu.
func (h *heir) serve(err error, unchanged bool) {
	h.err, h.refused = err, unchanged
	if err != nil && h.got.Session != nil { // another lock is there
		h.p.unmixed.Store(false)
	}
	if h.got.Session != nil && (err != nil || h.left) {
		h.got.DeleteInBackground()
	}
	close(h.done)
	h.call(errCalled)
}

// callNext tells the waiter right behind the group that it is the first, once the group has
// left the queue with the leases at paths. The caller holds w.mu.
func (g *group) callNext(paths []string) {
	w := g.w
	next := w.behind[g.heirs[len(g.heirs)-1].m.Node.Name]
	if next == nil || next.promised || w.first != nil {
		return
	}
	w.forget(next)
	next.standing = slices.DeleteFunc(slices.Clone(g.standing), func(name string) bool {
		return slices.ContainsFunc(g.released.Paths, func(path string) bool { return nameOf(path) == name })
	})
	for _, path := range paths {
		next.standing = append(next.standing, nameOf(path))
	}
	w.first = next
	next.call(errCalled)
}

// handOver deletes released leases in a transaction that serves a group of waiters. If there
// is no waiter, or if the servers have refused all its tries, ok is false. Then the caller
// still has to delete the leases. After an error the remover deletes what is left.
func (w *waiters) handOver(ctx context.Context, released seqqueue.Own) (ok bool, err error) {
	if ctx.Err() != nil || released.Session.Err() != nil {
		return false, nil //nolint:nilerr // the delete that follows says so
	}
	g := w.heirsOf(released)
	if g == nil {
		return false, nil
	}
	h := g.heirs[0]
	go g.claim() // bounded by the session: the releaser and the heirs may give up
	select {
	case <-h.done:
	case <-ctx.Done():
		released.DeleteInBackground()
		return true, ctxerr.Ended(ctx)
	}
	switch {
	case h.got.Session != nil:
		return true, nil
	case h.refused && !inner.LostTry(h.err):
		return false, nil
	}
	// The transaction may have been applied, or an earlier try of it. So a node that is
	// missing was most likely deleted by it, and not by another client.
	for _, path := range released.Paths {
		if err := released.Session.Delete(ctx, path, client.AnyVersion); err != nil && !errors.Is(err, zk.ErrNoNode) {
			released.DeleteInBackground()
			if over := released.Session.Err(); over != nil {
				err = over
			}
			return true, err
		}
	}
	return true, nil
}
