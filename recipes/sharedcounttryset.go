package recipes

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// TrySet sets the value if nothing was written since prev was read, by Get or
// by Changes; a node that was deleted and made anew since is another one. It
// reports whether it did. False is never said of a set that was applied, nor
// true of one that was not, also when its answer was lost: an increment by Get
// and TrySet counts once. After an error that matches client.UnknownOutcome,
// that of a session or a ctx that ended in between, it may have been applied;
// after any other it was not.
//
// For the time of the call an ephemeral child stands below the node, and the
// node cannot be deleted. It takes the right to create and delete there.
// Curator's trySetCount, which compares the version alone and repeats a set
// whose answer was lost, may report false for a set that was applied; the two
// may be used on one path.
func (s *SharedCount) TrySet(ctx context.Context, prev VersionedCount, v int32) (bool, error) {
	if prev.Version == client.AnyVersion {
		return false, fmt.Errorf("recipes: count %s: its node's version has come to %d, which would stand for any: use Set", s.path, prev.Version)
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

// errMarkDeleted says that somebody deleted the mark before the set.
var errMarkDeleted = errors.New("the mark below the node was deleted by somebody else")

// trySet is TrySet in one session. A mark below the node does two things that
// a version cannot, which starts again at 0 with every node of that name and
// does not say whose write it counts: while it stands the node cannot be
// deleted and made anew, and as it goes in the transaction that sets the value,
// its absence is the answer to a set whose answer was lost.
func (s *SharedCount) trySet(ctx context.Context, session *client.Session, prev VersionedCount, v int32) (set bool, err error) {
	mark, err := session.Create(ctx, s.path+"/set", nil, append(s.createOptions(), client.Ephemeral(), client.Protected())...)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, s.failed(client.OutcomeNeverSent, err)
	}
	defer func() {
		if !set {
			_ = inner.DeleteInBackground(session, mark) // the path came from the server
		}
	}()
	_, stat, err := session.Get(ctx, s.path)
	if err != nil {
		return false, s.failed(client.OutcomeNeverSent, err)
	}
	if stat.Czxid != prev.czxid || stat.Mzxid != prev.mzxid {
		return false, nil
	}
	for doubt := false; ; {
		_, err := session.Multi(ctx, client.SetOp(s.path, countData(v), prev.Version), client.DeleteOp(mark, client.AnyVersion))
		if err == nil {
			return true, nil
		}
		lost := client.UnknownOutcome(err)
		doubt = doubt || lost
		if doubt {
			stands, e := stands(ctx, session, mark)
			switch {
			case e != nil:
				return false, s.failed(client.OutcomeUnknown, errors.Join(err, e))
			case !stands:
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

// failed is the error of a set of which the outcome is known to that extent,
// whatever is known of the requests that prepare it.
func (s *SharedCount) failed(outcome client.Outcome, err error) error {
	return &client.OpError{Op: "try to set", Path: s.path, Outcome: outcome, Err: err}
}

// stands reports whether a node is there. The Sync shows what the server that
// was lost had passed on.
func stands(ctx context.Context, session *client.Session, path string) (bool, error) {
	if err := session.Sync(ctx, path); err != nil {
		return false, err
	}
	there, _, err := session.Exists(ctx, path)
	if errors.Is(err, zk.ErrNoAuth) { // exists takes READ since ZOOKEEPER-2590, and of a node that is there only
		return true, nil
	}
	return there, err
}
