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

// mostTogether is how many permits a group takes in one transaction, if it is a group.
const mostTogether = 256

// group is waiters that stand directly behind each other, from the first in the queue on.
type group struct {
	l        *line
	heirs    []*heir
	taken    []string     // the leases that may be held
	released seqqueue.Own // the ones of them that the transaction deletes
}

// gather makes a group of h, which is the first in the queue and for which there is room,
// and of those behind it. The caller holds l.mu.
func (l *line) gather(h *heir, taken []string, released seqqueue.Own) *group {
	g := &group{l: l, heirs: []*heir{h}, taken: taken, released: released}
	held := len(taken) - len(released.Paths) + h.p.n
	for sum := h.p.n; ; {
		next := l.next[h.m.Node.Name]
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

// promise serves the group. The caller holds l.mu.
func (g *group) promise() {
	for _, h := range g.heirs {
		h.promised = true
		g.l.forget(h)
	}
	if g.l.heir == g.heirs[0] {
		g.l.heir = nil
	}
}

// promise chooses the heirs of leases that are to be released, nil if there is no
// waiter that can take them over.
func (l *line) promise(own seqqueue.Own) *group {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.heir
	if h == nil || h.m.Session.ID() != own.Session.ID() || len(h.taken)-len(own.Paths) > h.p.max-h.p.n {
		return nil
	}
	for _, path := range own.Paths {
		if !slices.Contains(h.taken, nameOf(path)) {
			return nil
		}
	}
	g := l.gather(h, h.taken, own)
	g.promise()
	return g
}

// nameOf is the last part of a path.
func nameOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// claim makes the leases of h, which is the first in the queue and has found room beside
// the leases with these names. It serves those behind it, too.
func (h *heir) claim(ctx context.Context, taken []string) (place, error) {
	l := h.l
	l.mu.Lock()
	g := l.gather(h, taken, seqqueue.Own{})
	together := len(g.heirs) > 1 && !h.promised
	if together {
		g.promise()
	}
	l.mu.Unlock()
	if together {
		go g.take() // bounded by the session: each of the group may give up
		if got, over, err := h.settle(ctx, false); over || err != nil {
			return got, err
		}
	}
	got, err := h.p.claim(ctx, h.m)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		alone := &group{l: l, heirs: []*heir{h}, taken: taken}
		alone.succeed(got.Paths)
	}
	return got, err
}

// take makes the leases of the group.
func (g *group) take() {
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
	unchanged := refused(err) || errors.Is(err, client.ErrTooLarge) // one request may carry less than all
	if err == nil {
		err = first.p.refuseMixed(session.Context(), made[0].More)
	}
	g.l.mu.Lock()
	defer g.l.mu.Unlock()
	if made != nil {
		g.succeed(first.p.granted(session, made).Paths)
	}
	for _, h := range g.heirs {
		if made != nil {
			h.got, made = h.p.granted(session, made[:h.p.n]), made[h.p.n:]
		}
		h.serve(err, unchanged)
	}
}

// serve ends the transaction that serves h, with err. The caller holds l.mu.
func (h *heir) serve(err error, unchanged bool) {
	h.err, h.refused = err, unchanged
	if err != nil && h.got.Session != nil { // another lock is there
		h.p.unmixed.Store(false)
	}
	if h.got.Session != nil && (err != nil || h.left) {
		h.got.DeleteInBackground()
	}
	close(h.done)
	h.first(errFirst)
}

// succeed tells the waiter right behind the group that it is the first, once the group has
// left the queue with the leases at paths. The caller holds l.mu.
func (g *group) succeed(paths []string) {
	l := g.l
	next := l.next[g.heirs[len(g.heirs)-1].m.Node.Name]
	if next == nil || next.promised || l.heir != nil {
		return
	}
	l.forget(next)
	next.taken = slices.DeleteFunc(slices.Clone(g.taken), func(name string) bool {
		return slices.ContainsFunc(g.released.Paths, func(path string) bool { return nameOf(path) == name })
	})
	for _, path := range paths {
		next.taken = append(next.taken, nameOf(path))
	}
	l.heir = next
	next.first(errFirst)
}

// handOver hands the nodes of released leases to an heir. ok is false if there is none, or
// if the hand-over was refused, and the nodes still have to be deleted.
func (l *line) handOver(ctx context.Context, released seqqueue.Own) (ok bool, err error) {
	if ctx.Err() != nil || released.Session.Err() != nil {
		return false, nil //nolint:nilerr // the delete that follows says so
	}
	g := l.promise(released)
	if g == nil {
		return false, nil
	}
	h := g.heirs[0]
	go g.take() // bounded by the session: the releaser and the heirs may give up
	select {
	case <-h.done:
	case <-ctx.Done():
		released.DeleteInBackground()
		return true, ctxerr.Ended(ctx)
	}
	switch {
	case h.got.Session != nil:
		return true, nil
	case h.refused:
		return false, nil
	}
	// The transaction may have been applied: a node that is missing was deleted by it.
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
