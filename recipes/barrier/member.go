package barrier

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// Member is a process inside a double barrier, from Enter to Leave. It is safe for
// concurrent use.
type Member struct {
	b       *DistributedDoubleBarrier
	path    string
	session *client.Session
	opened  int64 // czxid of the ready node, 0 if that was gone before it was read
	holding inside.Holding
	ctx     context.Context //nolint:containedctx // of the member
	stop    context.CancelCauseFunc

	mu   sync.Mutex // guards left; never held across I/O
	left bool
}

// Path is the path of the member's node.
func (m *Member) Path() string { return m.path }

// Context ends when the member is inside no more. That is when it leaves, and
// when its session can no longer be relied upon. It is also within a few seconds
// after another client has deleted its node. If the session is lost it ends
// before any other member can see the node gone, so no Leave passes while a
// member works on. Its cause is [ErrLeft], matches client.ErrLeaseExpired,
// client.ErrSessionLost or client.ErrClosed, or matches [ErrNodeDeleted]. It has
// the values of the context of Enter, and not its end or its deadline.
func (m *Member) Context() context.Context { return m.ctx }

// Err is nil while the member is inside, and otherwise the cause of the end of
// Context. It looks at the clocks itself.
func (m *Member) Err() error {
	if m.ctx.Err() == nil {
		if err := m.holding.Err(); err != nil {
			m.lost(err)
		}
	}
	return context.Cause(m.ctx)
}

// lost ends the context. It does not block.
func (m *Member) lost(err error) {
	if errors.Is(err, zk.ErrNoNode) {
		err = fmt.Errorf("barrier: %s: %w", m.path, ErrNodeDeleted)
	}
	m.stop(err)
}

// Close leaves without waiting for the others, and without I/O: the node is removed in
// the background. It does nothing after Leave. The error is always nil.
func (m *Member) Close() error {
	if m.end() == nil {
		m.b.abandon(m.session, m.path)
	}
	return nil
}

// end ends the membership, once. It returns why it was over before.
func (m *Member) end() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left {
		return ErrLeft
	}
	m.left = true
	err := m.Err()
	m.stop(ErrLeft)
	m.holding.Done()
	if err != nil {
		m.b.abandon(m.session, m.path)
	}
	return err
}
