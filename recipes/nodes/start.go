package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"
)

// Start begins to keep the node, and returns as soon as it stands with the newest data.
// ctx bounds the start alone: from then on the node is kept until Close or the end of its
// client. With [WithLazyStart] Start returns at once. A second call fails, and so does one
// after Close.
//
// Start tries again until ctx ends, but not in vain. If a server refuses the node, or the
// client's retry policy gives up, that error comes at once. While another session's node
// stands at the path Start waits, as for the node of a process that was killed. If ctx
// ends, the error matches that of ctx and says what was missing: whose node stands there,
// or with client.ErrNotConnected why each server was not reached. Close makes Start return
// [ErrClosed].
//
// After an error nothing is kept, and Start may be called again. What a create has made,
// also one whose answer was lost, is removed in the background, as by Close. The
// next Start waits for that, and so does Close.
func (n *PersistentNode) Start(ctx context.Context) error {
	ctxerr.Require(ctx)
	if n.unmade() {
		return errUnmade
	}
	gen, err := n.begin(ctx)
	if err != nil {
		return fmt.Errorf("nodes: start %s: %w", n.base, err)
	}
	if n.lazy {
		return nil
	}
	err = n.await(ctx, gen, true)
	if err != nil {
		n.stop()
	}
	return err
}

var errStarted = errors.New("it is started already")

// begin begins a life, which does not end with ctx. It waits for the end of the one before.
func (n *PersistentNode) begin(ctx context.Context) (gen int, err error) {
	for {
		n.mu.Lock()
		before, changed := n.life, n.changed
		switch {
		case n.over:
			err = ErrClosed
		case n.started:
			err = errStarted
		case before == nil || before.over():
			alive, end := context.WithCancel(context.WithoutCancel(ctx))
			n.started = true
			n.life = &life{end: end, ended: make(chan struct{}), limit: func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
			}}
			if hook := n.c.Observer().Node; hook != nil {
				go n.observe(alive, hook) // ends with the life
			}
			go n.run(alive, n.life) // ends when the node is removed after stop or Close, and with the client
			defer n.mu.Unlock()
			return n.gen, nil
		}
		n.mu.Unlock()
		if err != nil {
			return 0, err
		}
		select {
		case <-before.ended:
		case <-changed:
		case <-ctx.Done():
			return 0, fmt.Errorf("the node of a start that has failed is not removed yet: %w", ctxerr.Ended(ctx))
		}
	}
}

// over reports whether nothing runs any more.
func (l *life) over() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// stop ends a life whose start has failed, unless the object is closed.
func (n *PersistentNode) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closing:
		n.set(Status{Path: n.status.Path, Err: ErrClosed}, true)
	case !n.over:
		n.set(Status{Path: n.first()}, false)
		n.started = false
	}
	n.life.end()
}

// first is the path before Start.
func (n *PersistentNode) first() string {
	if n.named() {
		return n.base
	}
	return ""
}

const closeLimit = 5 * time.Second

// Close is [PersistentNode.CloseContext] with a limit of 5 s.
func (n *PersistentNode) Close() error {
	if n.unmade() {
		return nil
	}
	life := n.close()
	if life == nil {
		return nil
	}
	ctx, cancel := life.limit()
	defer cancel()
	return n.closed(ctx, life)
}

// close begins to close the object. It returns the newest life, nil if there was none.
func (n *PersistentNode) close() *life {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closing = true
	if n.life != nil {
		n.life.end()
	}
	if !n.started {
		n.set(Status{Path: n.status.Path, Err: ErrClosed}, true)
	}
	return n.life
}

// CloseContext stops keeping the node, removes it if this object has made it, and
// waits for the goroutine. A node of another session is left alone.
//
// It returns within ctx. The error says why the node could not be removed. If ctx
// ends first, the goroutine goes on. It tries until the node is deleted, a server
// refuses that, the client is closed, or the session of an ephemeral node is over. A
// second call waits too, and returns the same.
func (n *PersistentNode) CloseContext(ctx context.Context) error {
	ctxerr.Require(ctx)
	if n.unmade() {
		return nil
	}
	life := n.close()
	if life == nil {
		return nil
	}
	return n.closed(ctx, life)
}

// closed waits for the end of a life.
func (n *PersistentNode) closed(ctx context.Context, life *life) error {
	select {
	case <-life.ended:
		return life.err
	case <-ctx.Done():
		return fmt.Errorf("nodes: close %s: %w", n.base, ctxerr.Ended(ctx))
	}
}
