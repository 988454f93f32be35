package barrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
)

// Leave ends the member's work and waits until all members have left that stood
// when it began. It follows Curator's order. The member with the lowest name
// keeps its node until it is the last; the others remove theirs and wait. The
// node of a member that dies is deleted with its session, and the others wait no
// longer. A member that enters later, with a node made after the call began, is
// not waited for. Nor is one that the round did not let in: it waits for another round.
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
	l := &leave{m: m, b: m.b, rule: leaving{own: m.path[len(m.b.path)+1:], opened: m.opened}}
	err := l.leave(ctx)
	if !l.rule.gone {
		m.b.abandon(m.session, m.path)
	}
	if w := (*WaitError)(nil); err != nil && ctx.Err() != nil && !errors.As(err, &w) {
		err = l.waited(err)
	}
	return err
}

// leave is one Leave.
type leave struct {
	m    *Member
	b    *DistributedDoubleBarrier
	rule leaving // decides what is next
}

func (l *leave) waited(err error) error {
	stood := len(l.rule.wait)
	if l.rule.begin == 0 {
		stood = -1
	}
	return &WaitError{Path: l.b.path, Leaving: true, Stood: stood, Members: l.b.members, Err: err}
}

// leave is Leave over all sessions: once the node is deleted, another session will do.
func (l *leave) leave(ctx context.Context) error {
	s := l.m.session
	for {
		err := l.leaveIn(ctx, s)
		if err == nil || ctx.Err() != nil || s.Err() == nil || !l.rule.gone {
			return err
		}
		if s, err = l.b.c.Session(ctx); err != nil {
			return err
		}
	}
}

// leaveIn is leave in one session.
func (l *leave) leaveIn(ctx context.Context, s *client.Session) error {
	if err := s.Sync(ctx, l.b.path); err != nil {
		return err
	}
	for {
		r, err := l.b.readReady(ctx, s)
		if err != nil {
			return err
		}
		names, newest, err := l.b.list(ctx, s)
		if err != nil {
			return err
		}
		next, whom := l.rule.next(r.round(), names, newest)
		switch next {
		case leftAll:
			return nil
		case deleted:
			return fmt.Errorf("barrier: %s: %w", l.m.path, ErrNodeDeleted)
		case removeBoth:
			var done bool
			if done, err = l.removeBoth(ctx, s, r); done {
				return nil
			}
		case removeOwn:
			err = l.removeOwn(ctx, s)
		case tidy:
			if err = l.b.clear(ctx, s, r); err != nil {
				err = fmt.Errorf("barrier: all have left %s, but %s stays: %w", l.b.path, l.b.ready(), err)
			}
		default:
			err = l.await(ctx, s, whom, next == removeAndAwait)
		}
		if err != nil {
			return err
		}
	}
}

// await waits until another member may have left. If remove is set it removes the member's
// own node as soon as the watch stands.
func (l *leave) await(ctx context.Context, s *client.Session, name string, remove bool) error {
	there, stat, w, err := look(ctx, s, l.b.at(name))
	if err != nil {
		return err
	}
	defer w.Stop()
	opened, end, other := int64(0), w, standing{name: name, curator: !ofLibrary(name)}
	if there {
		other.czxid = stat.Czxid
	}
	if there && !l.rule.awaits(other, 0) { // it may come in while the round is open
		open, ready, closing, err := look(ctx, s, l.b.ready())
		if err != nil {
			return err
		}
		defer closing.Stop()
		if open && ready.Czxid == l.rule.opened {
			opened, end = ready.Czxid, closing
		} else if there, other.late, err = l.b.saysLate(ctx, s, name); err != nil {
			return err
		}
	}
	if !there || !l.rule.awaits(other, opened) {
		l.rule.forget(name)
		return nil
	}
	if remove {
		if err := l.removeOwn(ctx, s); err != nil {
			return err
		}
	}
	if err := either(ctx, w, end); err != nil {
		return l.waited(err)
	}
	return nil
}

func (l *leave) removeOwn(ctx context.Context, s *client.Session) error {
	err := s.Delete(ctx, l.m.path, client.AnyVersion)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	l.rule.gone = true
	return nil
}

// removeBoth removes the node of the last member together with the ready node, if that is
// as it was read. So no member comes into the round in between. If either may not be, the
// caller looks again.
func (l *leave) removeBoth(ctx context.Context, s *client.Session, r readyNode) (done bool, err error) {
	_, err = s.Multi(ctx, client.DeleteOp(l.m.path, client.AnyVersion), client.DeleteOp(l.b.ready(), r.stat.Version))
	refused := (*client.MultiError)(nil)
	switch {
	case err == nil:
		l.rule.gone = true
		return true, nil
	case errors.As(err, &refused) && refused.Index == 1 && errors.Is(err, zk.ErrNoAuth):
		return false, l.removeOwn(ctx, s) // and the ready node stays
	case !retries(ctx, s, err):
		return false, err
	}
	if err := s.Sync(ctx, l.b.path); err != nil {
		return false, err
	}
	there, _, err := s.Exists(ctx, l.m.path)
	l.rule.gone = err == nil && !there
	return false, err
}
