// How a member that waits or holds looks after its own node.

package seqqueue

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// WatchAfter is how long the node of a holder, or of a member that waits, counts as standing
// after it was seen. The answer to its create shows the node, and so does a list. After that
// time the node is watched. So a shorter wait or hold costs the server nothing. If another client deletes the
// node before it is watched, the member notices at the end of this time.
const WatchAfter = 20 * time.Millisecond

// watchDeepAfter is the same for a member with several contenders ahead. Such a member lists
// before its turn can come, and the list shows its own node. The watch only tells it sooner.
// So it is for a member of a gate, whose node is checked by the transaction that grants it.
const watchDeepAfter = time.Second

// Due returns a channel that is closed when a member of a gate that is the first should look
// after its own node. The caller ends that with stop.
func (m *Member) Due() (look <-chan struct{}, stop func()) { return m.due(watchDeepAfter) }

// due returns a channel that is closed when m's own node has to be read. That is when its
// watch has fired or, without a watch, some time after the node was seen. The caller ends the
// wait with stop.
func (m *Member) due(after time.Duration) (read <-chan struct{}, stop func()) {
	switch {
	case m.chain == nil && !m.q.watchesOwn || m.blind:
		return nil, func() {}
	case m.watch != nil:
		return m.watch.Done(), func() {}
	}
	due := make(chan struct{})
	t := time.AfterFunc(after-time.Since(m.seen), func() { close(due) })
	return due, func() { t.Stop() }
}

// LookAfter reads and watches the member's own node. If another client has deleted the node,
// or a transaction that was to grant the member, it returns [ErrGone].
func (m *Member) LookAfter(ctx context.Context) error { return m.watchOwn(ctx) }

// watchOwn reads m's own node and watches it. If another client has deleted the node, it
// returns ErrGone. If m may not read its own node, only lists show that node.
func (m *Member) watchOwn(ctx context.Context) error {
	m.suspect(ctx)
	at := time.Now()
	_, stat, w, err := m.Session.GetW(ctx, m.Path)
	switch {
	case errors.Is(err, zk.ErrNoNode), err == nil && stat.EphemeralOwner != m.Session.ID():
		w.Stop()
		return ErrGone
	case errors.Is(err, zk.ErrNoAuth):
		m.blind = true
		m.chain.forget(m)
		return nil
	case err != nil:
		return cmp.Or(m.Session.Err(), err)
	}
	m.watch.Stop()
	m.watch, m.seen = w, at
	return nil
}

// stands reports whether m's own node is known to stand, without asking.
func (m *Member) stands() bool {
	return m.gated() || m.watched() || m.watch == nil && time.Since(m.seen) <= WatchAfter
}

// watched reports whether a watch on m's own node has not fired.
func (m *Member) watched() bool {
	if m.watch == nil {
		return false
	}
	select {
	case <-m.watch.Done():
		return false
	default:
		return true
	}
}
