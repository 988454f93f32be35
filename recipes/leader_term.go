package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
)

// Term is one time of leading. It is a [Hold]. Its context ends before another
// participant can lead, and Deadline says when that is. FencingToken tells this term
// from all others and grows with each. Guard writes to ZooKeeper only while the term
// lasts. Every term must be released, also after it was lost.
type Term struct {
	*Hold

	e *Election
}

// HandOver gives the term up in favor of the participant with that id. If several have
// the id, it is the first in line. Participants of this library that stand before the
// successor are sent behind all others. Their nodes are deleted, in a transaction that
// commits only while the term lasts. Their campaigns go on.
//
// Call it as the last thing of the function of [Election.Run]. That function may return its
// error, which then ends Run, or nil: the term is given up either way.
//
// If no such participant stands in line the error matches [ErrNoParticipant]. If one of
// another library stands before it, the error matches [ErrNotMovable]. So it does if a plain
// mutex stands before it, on the path of a LeaderSelector. With these
// errors the term goes on. It also goes on if an operation fails, or ctx ends, before the
// release has begun. The result of the release is that of [Hold.Release], and the term is
// over then, also if ctx ends meanwhile. So after another error [Hold.Err] says whether
// the term goes on. If the successor goes in the same moment, the next one in line leads.
//
// A successor that prefers another participant in line gives way to that one; see
// [WithPreferred].
func (t *Term) HandOver(ctx context.Context, id string) error {
	ctxerr.Require(ctx)
	for {
		between, err := t.between(ctx, id)
		if err == nil && len(between) > 0 {
			ops := make([]client.Op, len(between))
			for i, p := range between {
				ops[i] = client.DeleteOp(p.Path, client.AnyVersion).In(t.e.l.c)
			}
			_, err = t.Guard(ctx, ops...)
		}
		var refused *client.MultiError
		switch {
		case err == nil:
			return t.Release(ctx)
		case t.Err() == nil && errors.As(err, &refused) && errors.Is(err, zk.ErrNoNode):
			// One of them has left meanwhile: look again.
		case client.UnknownOutcome(err) && ctx.Err() == nil:
			// If they were deleted, no participant stands in between.
		default:
			return t.e.fail("hand over", reason(err))
		}
	}
}

// between returns the participants between this leader and the first one with that id.
func (t *Term) between(ctx context.Context, id string) ([]Participant, error) {
	if err := t.Err(); err != nil {
		return nil, err
	}
	all, err := t.e.Participants(ctx)
	if err != nil {
		return nil, err
	}
	own := slices.IndexFunc(all, func(p Participant) bool { return p.Path == t.Path() })
	if own < 0 { // the term is over and has not heard of it, or another session was asked, of a server that lags
		if err := t.Confirm(ctx); err != nil {
			return nil, err
		}
		return t.between(ctx, id)
	}
	self := all[own].ID
	all = all[own+1:]
	i := slices.IndexFunc(all, func(p Participant) bool { return p.ID == id && !p.Unreadable && !p.InDoubt })
	if i < 0 {
		if self == id {
			return nil, fmt.Errorf("%w: %q is the leader itself, and no other participant has that id", ErrNoParticipant, id)
		}
		return nil, fmt.Errorf("%w: %q; Participants lists the participants that do", ErrNoParticipant, id)
	}
	for _, p := range all[:i] {
		if !movable(p.Path) {
			return nil, fmt.Errorf("%w: %s", ErrNotMovable, p)
		}
	}
	return all[:i], nil
}

// AwaitSuccessor waits until another participant can take over, and goes on leading. Another
// can as soon as a participant of another session stands in line. A participant whose node
// may not be read does not count. It is for a process that is to be stopped, and gives the
// term up then, by the end of the function of [Election.Run] or by [Hold.Release].
//
// When ctx ends the error matches its end, and the term goes on. The context that that
// function gets ends when the process is told to stop, and [Hold.Context] does not. If the
// term is over the error matches [ErrLost] or [ErrReleased]. If an operation fails the error
// matches that, and the term goes on. A successor may also go again before the term ends.
func (t *Term) AwaitSuccessor(ctx context.Context) error {
	ctxerr.Require(ctx)
	err := t.awaitSuccessor(ctx)
	if over := t.Err(); over != nil {
		err = over
	}
	if err != nil {
		return t.e.fail("await a successor of", reason(err))
	}
	return nil
}

// awaitSuccessor waits until a participant of another session stands in line.
func (t *Term) awaitSuccessor(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(t.Context(), func() { stop(context.Cause(t.Context())) })()
	s := t.grant.Session
	for {
		_, _, w, err := s.ChildrenW(ctx, t.e.l.path)
		if err != nil {
			return err
		}
		all, err := t.e.Participants(ctx)
		if err != nil || slices.ContainsFunc(all, func(p Participant) bool { return p.Session != s.ID() && p.Session != 0 && !p.InDoubt }) {
			w.Stop()
			return err
		}
		select {
		case <-w.Done():
		case <-ctx.Done():
			w.Stop()
			return ctxerr.Ended(ctx)
		}
	}
}
