package recipes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// A release hands its permits to the first in the queue, if that is a waiter of the same
// semaphore value. One transaction deletes the leases, makes the leases of the waiter,
// and deletes the waiter's node in the queue. That is a claim without a new list. The
// waiter has listed the leases since it became the first. No other acquire was granted
// any since. So no more than the listed leases can be held, less the ones that the
// transaction deletes. If one of these nodes is missing, or one request cannot carry all
// that, nothing is applied, and both go on alone.
//
// The waiter right behind it becomes the first then, and what the leases are is known. So
// it is the heir at once, before it has asked a server.

// succession says which waiter of this process is served when permits are
// released.
type succession struct {
	mu   sync.Mutex       // guards all of it; never held across I/O
	heir *heir            // the first in the queue, if it waits for room; or nil
	next map[string]*heir // waiters for their turn, by the name of the node ahead
}

// heir is a waiter of a semaphore that has a fixed number of permits.
type heir struct {
	p     permits
	m     *seqqueue.Member
	first context.CancelCauseFunc // ends the wait for its turn

	// The succession's mutex guards the rest.
	after    string        // its key in next
	taken    []string      // the leases that may be held; nil if it is not known to be the first
	promised bool          // a release hands over to it; never undone
	left     bool          // its acquire has ended
	done     chan struct{} // closed when the hand-over has ended
	got      place         // what it was handed
	err      error         // or why not
	refused  bool          // then the transaction has changed nothing
}

// errFirst ends the wait for the turn of a waiter that is the first without a list.
var errFirst = errors.New("the waiter ahead was handed its permits")

// stand makes a waiter of m. Its wait for its turn uses the context that stand returns.
func (p permits) stand(ctx context.Context, m *seqqueue.Member) (*heir, context.Context) {
	h := &heir{p: p, m: m, done: make(chan struct{})}
	ctx, h.first = context.WithCancelCause(ctx)
	told := m.Told
	m.Told = func(ahead int, behind string) {
		h.follow(behind)
		if told != nil {
			told(ahead, behind)
		}
	}
	return h, ctx
}

// follow notes the name of the node right ahead of h.
func (h *heir) follow(behind string) {
	s := &h.p.succession
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(h)
	if behind != "" {
		if s.next == nil {
			s.next = map[string]*heir{}
		}
		h.after, s.next[behind] = behind, h
	}
}

// forget takes h out of the waiters for their turn. The caller holds s.mu.
func (s *succession) forget(h *heir) {
	if s.next[h.after] == h {
		delete(s.next, h.after)
	}
}

// inherited returns the leases that may be held if h has become the first without a list.
func (h *heir) inherited() (taken []string, ok bool) {
	if h == nil {
		return nil, false
	}
	s := &h.p.succession
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.taken, h.taken != nil
}

// offer lets a release hand over to h, which is the first and has listed the leases. It
// returns a channel that is closed when that has happened, nil if that was refused. A
// hand-over is promised once.
func (h *heir) offer(taken []lease) <-chan struct{} {
	if h == nil {
		return nil
	}
	names := make([]string, len(taken))
	for i, l := range taken {
		names[i] = l.name
	}
	s := &h.p.succession
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-h.done:
		if h.refused {
			return nil
		}
		return h.done
	default:
	}
	if !h.promised {
		h.taken, s.heir = names, h
	}
	return h.done
}

// settle reports whether the wait for room is over. It is over if there is room and no
// release will hand over to h any more. It is also over if a release has handed over:
// then got is what h was handed. If a release is about to, settle waits for that.
func (h *heir) settle(ctx context.Context, room bool) (got place, over bool, err error) {
	if h == nil {
		return place{}, room, nil
	}
	s := &h.p.succession
	s.mu.Lock()
	promised := h.promised
	if room && s.heir == h {
		s.heir = nil
	}
	s.mu.Unlock()
	if !promised {
		return place{}, room, nil
	}
	select {
	case <-h.done:
	case <-ctx.Done():
		return place{}, false, ctxerr.Ended(ctx)
	}
	switch {
	case h.err == nil:
		return h.got, true, nil
	case h.refused:
		return place{}, room, nil
	default:
		return place{}, false, cmp.Or(h.m.Session.Err(), takenAway(h.err))
	}
}

// leave ends the part of h in the succession. What is handed over to it later is deleted,
// unless it has what it waited for.
func (h *heir) leave(served bool) {
	s := &h.p.succession
	s.mu.Lock()
	defer s.mu.Unlock()
	h.first(nil)
	h.left = !served
	s.forget(h)
	if s.heir == h {
		s.heir = nil
	}
	select {
	case <-h.done:
		if h.left && h.promised && h.err == nil {
			h.got.DeleteInBackground()
		}
	default:
	}
}

// promise chooses the heir of leases that are to be released, nil if there is no
// waiter that can take them over.
func (s *succession) promise(own seqqueue.Own) *heir {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.heir
	if h == nil || h.m.Session.ID() != own.Session.ID() || len(h.taken)-len(own.Paths) > h.p.max-h.p.n {
		return nil
	}
	for _, path := range own.Paths {
		if !slices.Contains(h.taken, path[strings.LastIndexByte(path, '/')+1:]) {
			return nil
		}
	}
	h.promised, s.heir = true, nil
	return h
}

// take hands the released leases over to h.
func (h *heir) take(released seqqueue.Own) {
	ctx := h.m.Session.Context()
	parts := []client.Op{client.DeleteOp(h.m.Path, 0)}
	for _, path := range released.Paths {
		parts = append(parts, client.DeleteOp(path, client.AnyVersion))
	}
	made, err := inner.CreateGroup(ctx, h.m.Session, h.p.nodes(h.p.nodeData(h.p.c)), parts...)
	var got place
	unchanged := refused(err) || errors.Is(err, client.ErrTooLarge) // one request may carry less than both
	if err == nil {
		got = h.p.granted(h.m.Session, made)
		if err = h.p.refuseMixed(ctx, made[0].More); err != nil {
			h.p.unmixed.Store(false)
			got.DeleteInBackground()
		}
	}
	s := &h.p.succession
	s.mu.Lock()
	h.got, h.err, h.refused = got, err, unchanged
	if made != nil {
		s.succeed(h, released)
	}
	if err == nil && h.left {
		got.DeleteInBackground()
	}
	close(h.done)
	s.mu.Unlock()
}

// succeed makes the waiter right behind h the heir, once h has left the queue with its
// leases. The caller holds s.mu.
func (s *succession) succeed(h *heir, released seqqueue.Own) {
	next := s.next[h.m.Node.Name]
	if next == nil || s.heir != nil {
		return
	}
	s.forget(next)
	next.taken = slices.DeleteFunc(slices.Clone(h.taken), func(name string) bool {
		return slices.ContainsFunc(released.Paths, func(path string) bool { return strings.HasSuffix(path, "/"+name) })
	})
	for _, path := range h.got.Paths {
		next.taken = append(next.taken, path[strings.LastIndexByte(path, '/')+1:])
	}
	s.heir = next
	next.first(errFirst)
}

// handOver hands the nodes of released leases to an heir. ok is false if there is none, or
// if the hand-over was refused, and the nodes still have to be deleted.
func (s *succession) handOver(ctx context.Context, released seqqueue.Own) (ok bool, err error) {
	if ctx.Err() != nil || released.Session.Err() != nil {
		return false, nil //nolint:nilerr // the delete that follows says so
	}
	h := s.promise(released)
	if h == nil {
		return false, nil
	}
	go h.take(released) // bounded by the session: the releaser and the heir may give up
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

// Delete deletes the nodes of a place, or hands them over to a waiter.
func (p place) Delete(ctx context.Context) error {
	if p.heirs != nil {
		if done, err := p.heirs.handOver(ctx, p.Own); done {
			return err
		}
	}
	return p.Own.Delete(ctx)
}
