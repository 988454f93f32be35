package barrier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
)

// Leave ends the member's work and waits until all members have left that stood
// when it began. It follows Curator's order. The member with the lowest name
// keeps its node until it is the last; the others remove theirs and wait. The
// node of a member that dies is deleted with its session, and the others wait no
// longer. A member that enters later, with a node made after the call began, is
// not waited for.
//
// Leave may be called once. If ctx ends, the member has left all the same: its
// node is removed in the background, where Curator's stays, and the error is a
// [*WaitError]. If the member had been lost before, Leave returns the error of
// [Member.Err], and the others may have left without it. If its session is lost
// while it waits and its node still stands, the error matches
// client.ErrSessionLost. If all have left and the ready node may not be deleted,
// the error matches client.ErrNoAuth; the next Enter tries again.
func (m *Member) Leave(ctx context.Context) error {
	ctxerr.Require(ctx)
	if err := m.end(); err != nil {
		return err
	}
	l := &leaving{m: m, b: m.b, own: m.path[len(m.b.path)+1:]}
	err := l.leave(ctx)
	if !l.gone {
		m.b.abandon(m.session, m.path)
	}
	if w := (*WaitError)(nil); err != nil && ctx.Err() != nil && !errors.As(err, &w) {
		err = l.waited(err)
	}
	return err
}

// leaving is one Leave.
type leaving struct {
	m     *Member
	b     *DistributedDoubleBarrier
	own   string   // the name of the member's node
	gone  bool     // the node is deleted
	begin int64    // the newest change of the directory when the call began
	wait  []string // the others that stood then and may stand yet
}

func (l *leaving) waited(err error) error {
	stood := len(l.wait)
	if l.begin == 0 {
		stood = -1
	}
	return &WaitError{Path: l.b.path, Leaving: true, Stood: stood, Members: l.b.members, Err: err}
}

// leave is Leave over all sessions: once the node is deleted, another session will do.
func (l *leaving) leave(ctx context.Context) error {
	s := l.m.session
	for {
		err := l.leaveIn(ctx, s)
		if err == nil || ctx.Err() != nil || s.Err() == nil || !l.gone {
			return err
		}
		if s, err = l.b.c.Session(ctx); err != nil {
			return err
		}
	}
}

// leaveIn is leave in one session.
func (l *leaving) leaveIn(ctx context.Context, s *client.Session) error {
	if err := s.Sync(ctx, l.b.path); err != nil {
		return err
	}
	for {
		names, newest, err := l.b.list(ctx, s)
		if err != nil {
			return err
		}
		if l.begin == 0 {
			l.begin, l.wait = newest, slices.Clone(names)
		}
		if !l.gone && !slices.Contains(names, l.own) {
			l.gone = true
			return fmt.Errorf("barrier: %s: %w", l.m.path, ErrNodeDeleted)
		}
		l.wait = slices.DeleteFunc(l.wait, func(name string) bool { return name == l.own || !slices.Contains(names, name) })
		var done bool
		switch {
		case len(l.wait) == 0 && l.gone:
			return l.finish(ctx, s)
		case len(l.wait) == 0:
			done, err = l.last(ctx, s)
		case !l.gone && l.own < l.wait[0]:
			err = l.watch(ctx, s, l.wait[len(l.wait)-1], false)
		default:
			err = l.watch(ctx, s, l.wait[0], !l.gone)
		}
		if err != nil || done {
			return err
		}
	}
}

// watch waits until the node of another member may be gone. If remove is set it removes
// the member's own node as soon as the watch stands.
func (l *leaving) watch(ctx context.Context, s *client.Session, name string, remove bool) error {
	there, stat, w, err := look(ctx, s, l.b.at(name))
	if err != nil {
		return err
	}
	defer w.Stop()
	if !there || stat.Czxid > l.begin { // it has left, and has perhaps come again
		l.wait = slices.DeleteFunc(l.wait, func(n string) bool { return n == name })
		return nil
	}
	if remove {
		if err := s.Delete(ctx, l.m.path, client.AnyVersion); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		l.gone = true
	}
	select {
	case <-w.Done():
	case <-ctx.Done():
		return l.waited(ctxerr.Ended(ctx))
	}
	return nil
}

// last removes the node of the last member together with the ready node: no member of
// the next round can come in between.
func (l *leaving) last(ctx context.Context, s *client.Session) (bool, error) {
	_, err := s.Multi(ctx, client.DeleteOp(l.m.path, client.AnyVersion), client.DeleteOp(l.b.ready(), client.AnyVersion))
	refused := (*client.MultiError)(nil)
	switch {
	case err == nil:
		l.gone = true
		return true, nil
	case errors.As(err, &refused) && refused.Index == 1 && (errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth)):
		if err := s.Delete(ctx, l.m.path, client.AnyVersion); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return false, err
		}
		l.gone = true
		return true, l.finish(ctx, s)
	case errors.Is(err, zk.ErrNoNode):
		l.gone = true
		return true, l.finish(ctx, s)
	case !retries(ctx, s, err):
		return false, err
	}
	if err := s.Sync(ctx, l.b.path); err != nil {
		return false, err
	}
	there, _, err := s.Exists(ctx, l.m.path)
	l.gone = err == nil && !there
	return false, err
}

// finish removes the ready node of this round if the member that was to do it has died.
// A ready node of a later round stays.
func (l *leaving) finish(ctx context.Context, s *client.Session) error {
	for {
		r, err := l.b.readReady(ctx, s)
		if err != nil || !r.there || r.stat.Czxid > l.begin {
			return err
		}
		_, w, err := l.b.live(ctx, s, r.stat.Czxid, l.m.path)
		if err != nil {
			return err
		}
		w.Stop()
		if w != nil { // it is a member's to remove
			return nil
		}
		if err := l.b.clear(ctx, s, r); err != nil {
			return fmt.Errorf("barrier: all have left %s, but %s stays: %w", l.b.path, l.b.ready(), err)
		}
	}
}
