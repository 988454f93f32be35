package shared

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// TrySet sets the value if nothing was written since Get or Changes read prev.
// A node that was deleted and made again since is another node. TrySet reports
// whether it set the value. It is certain of that, also when an answer was
// lost: an increment by Get and TrySet counts once.
//
// After an error that matches client.UnknownOutcome the value may have been
// set. TrySet says so if the session or ctx ended before the answer came. It
// also says so if the answer was lost and the mark, which would tell, was deleted
// by another client or may not be read. After any other error the value was not
// set. A node that holds no count is refused with a [*CountDataError].
//
// The mark is an ephemeral child of the node. It stands for the time of the
// call and a moment longer, and the node cannot be deleted meanwhile. TrySet
// takes the rights to create and delete children there.
//
// Curator's trySetCount compares the version alone and repeats a set whose
// answer was lost, so it may report false for a set that was applied. Both may
// be used on one path.
func (s *SharedCount) TrySet(ctx context.Context, prev VersionedCount, v int32) (bool, error) {
	if prev.Version == client.AnyVersion {
		return false, fmt.Errorf("shared: count %s: its node's version has come to %d, which would stand for any: use Set", s.path, prev.Version)
	}
	for {
		session, err := s.c.Session(ctx)
		if err != nil {
			return false, err
		}
		set, err := s.trySet(ctx, session, prev, v)
		again := errors.Is(err, client.ErrSessionLost) || errors.Is(err, errMarkDeleted)
		if !again || ctx.Err() != nil || client.UnknownOutcome(err) {
			return set, err
		}
	}
}

// errMarkDeleted says that another client deleted the mark, and that the value
// was not set.
var errMarkDeleted = errors.New("another client deleted the mark below the node")

// trySet is TrySet in one session. The mark does two things that a version
// cannot do. A version starts again at 0 with every node of that name, but
// while the mark stands the node cannot be deleted and made again. A version
// does not say who wrote, but the transaction that sets the value also writes
// the mark, which only this call writes.
func (s *SharedCount) trySet(ctx context.Context, session *client.Session, prev VersionedCount, v int32) (bool, error) {
	mark, err := session.Create(ctx, s.path+"/set", nil, append(s.createOptions(), client.Ephemeral(), client.Protected())...)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, s.failed(client.OutcomeNeverSent, err)
	}
	defer func() { _ = inner.DeleteInBackground(session, mark) }() // the path came from the server
	_, stat, err := session.Get(ctx, s.path)
	if err != nil {
		return false, s.failed(client.OutcomeNeverSent, err)
	}
	if err := s.wanted(int(stat.DataLength)); err != nil {
		return false, err
	}
	if stat.Czxid != prev.czxid || stat.Mzxid != prev.mzxid {
		return false, nil
	}
	return s.write(ctx, session, mark, prev, v)
}

// write sets the value and writes the mark, both or neither.
func (s *SharedCount) write(ctx context.Context, session *client.Session, mark string, prev VersionedCount, v int32) (bool, error) {
	for doubt := false; ; {
		_, err := session.Multi(ctx, client.SetOp(s.path, countData(v), prev.Version), client.SetOp(mark, nil, client.AnyVersion))
		if err == nil {
			return true, nil
		}
		lost := client.UnknownOutcome(err)
		doubt = doubt || lost
		if doubt {
			set, e := s.written(ctx, session, mark, prev)
			switch {
			case errors.Is(e, errMarkDeleted):
				return false, e
			case e != nil:
				return false, s.failed(client.OutcomeUnknown, errors.Join(err, e))
			case set:
				return true, nil
			case lost:
				continue
			}
		}
		var refused *client.MultiError
		switch {
		case errors.Is(err, zk.ErrBadVersion):
			return false, nil
		case errors.As(err, &refused) && refused.Index == 1 && errors.Is(err, zk.ErrNoNode):
			return false, errMarkDeleted
		default:
			return false, err
		}
	}
}

// written reports whether a transaction was applied whose answer was lost. The
// mark tells: it is written in that transaction and never else. If another
// client deleted the mark, the node tells whether anything was written at all:
// if nothing was, the error is errMarkDeleted, and no transaction can be
// applied any more. After any other error nothing is known.
//
// The Sync makes this server show what the server that was lost had passed on.
func (s *SharedCount) written(ctx context.Context, session *client.Session, mark string, prev VersionedCount) (bool, error) {
	if err := session.Sync(ctx, mark); err != nil {
		return false, err
	}
	there, stat, err := session.Exists(ctx, mark)
	if err != nil {
		return false, err
	}
	if there {
		return stat.Version > 0, nil
	}
	there, stat, err = session.Exists(ctx, s.path)
	switch {
	case err != nil:
		return false, err
	case there && stat.Czxid == prev.czxid && stat.Mzxid == prev.mzxid:
		return false, errMarkDeleted
	}
	return false, errors.New("another client deleted the mark below the node, and the node was written or deleted since: by whom is not known")
}

// failed is the error of a set of which the outcome is known to that extent,
// whatever is known of the requests that prepare it.
func (s *SharedCount) failed(outcome client.Outcome, err error) error {
	return &client.OpError{Op: "try to set", Path: s.path, Outcome: outcome, Err: err}
}
