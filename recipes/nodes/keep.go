package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// run keeps the node until ctx ends, the client is closed or the node is removed for
// good. Then it removes what is left. Waiting callers are told before that.
func (n *PersistentNode) run(ctx context.Context) {
	defer close(n.done)
	var end error
	for end == nil {
		s, err := n.c.Session(ctx)
		switch {
		case err == nil:
			n.beginSession(s)
			end = n.inSession(ctx, s)
		case ctx.Err() != nil, errors.Is(err, client.ErrClosed):
			end = closed(ctx, err)
		default: // the client's retry policy gave up
			n.tell(Absent, err)
			n.pause(ctx)
		}
	}
	if errors.Is(end, ErrRemoved) {
		n.tell(Removed, end)
	} else {
		n.tell(Absent, end)
	}
	n.err = n.remove(context.WithoutCancel(ctx))
}

// closed is ErrClosed, with the reason unless it is a call of Close.
func closed(ctx context.Context, why error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrClosed):
		return ErrClosed
	case cause != nil:
		return fmt.Errorf("%w: the context of Start has ended: %w", ErrClosed, cause)
	default:
		return fmt.Errorf("%w: %w", ErrClosed, why)
	}
}

// pastSessions is how many lost sessions are remembered. The servers keep a lost
// session for its timeout at most, and the client ends it earlier if it can.
const pastSessions = 16

// beginSession notes that s is the session from now on. The node of a lost session is a
// ghost of this object only if it had a node there, or may have had one: the session is
// that of all objects of the client.
func (n *PersistentNode) beginSession(s *client.Session) {
	if n.session == nil || n.session.ID() == s.ID() {
		n.session = s
		return
	}
	if n.czxid != 0 || n.doubt || n.search || n.next != "" {
		n.past = append(n.past, n.session.ID())
		n.past = n.past[max(0, len(n.past)-pastSessions):]
	}
	n.session = s
	if n.mode.ephemeral() {
		n.stood = time.Time{}
		n.czxid, n.doubt = 0, false // what was made, also in doubt, is a ghost by now
	}
}

// inSession keeps the node in one session. It returns nil when the session is over,
// and otherwise why it is the end.
func (n *PersistentNode) inSession(ctx context.Context, s *client.Session) error {
	for {
		if n.touch.isDue() {
			n.touchChild(ctx, s)
		}
		err := n.round(ctx, s)
		switch {
		case ctx.Err() != nil:
			return closed(ctx, context.Cause(ctx))
		case errors.Is(err, ErrRemoved):
			return err
		case s.Err() != nil:
			n.tell(Absent, s.Err())
			return nil //nolint:nilerr // run goes on in the next session
		case err == nil:
		case client.UnknownOutcome(err):
			n.failed(Absent, err) // and look at once
		case refused(err):
			n.failed(Refused, err)
			n.pause(ctx)
		default:
			n.failed(Absent, err)
			n.pause(ctx)
		}
	}
}

// failed tells of a round that failed. It takes no node away: a node that stands is ours
// until a look or the end of the session says otherwise.
func (n *PersistentNode) failed(missing State, err error) {
	if !n.stood.IsZero() && n.czxid != 0 {
		missing = Ours
	}
	n.tell(missing, err)
}

// refused reports whether a server answered the operation that failed with err, and
// changed nothing, or cannot do it.
func refused(err error) bool {
	var op *client.OpError
	return errors.Is(err, client.ErrUnsupported) || errors.As(err, &op) && op.Outcome == client.OutcomeRefused
}

// pause waits between two tries. New data does not cut it short.
func (n *PersistentNode) pause(ctx context.Context) { wait(ctx, n.pauses) }

// wait waits for the next of pauses, or until ctx ends.
func wait(ctx context.Context, pauses backoff.BackOff) {
	t := time.NewTimer(pauses.NextBackOff())
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// calm is how long a node must have stood before its loss. A node that stood for
// less is taken for the victim of a rival that goes on.
const calm = 10 * time.Second

// lost notes that the node is gone from the path, and pauses if it did not stand for
// long.
func (n *PersistentNode) lost(ctx context.Context) {
	if n.stood.IsZero() {
		return
	}
	brief := time.Since(n.stood) < calm
	n.stood = time.Time{}
	if brief {
		n.pause(ctx)
	} else {
		n.pauses.Reset()
	}
}

// round looks at the node, does the one thing that is to be done, and waits for a
// change if there is none.
func (n *PersistentNode) round(ctx context.Context, s *client.Session) error {
	if err := n.resolve(ctx, s); err != nil {
		return err
	}
	if n.path == "" || !n.look {
		return n.create(ctx, s)
	}
	there, stat, w, err := s.ExistsW(ctx, n.path)
	if err != nil {
		return err
	}
	defer w.Stop()
	if there && n.stopWhenRemoved && n.czxid != 0 && n.czxid != stat.Czxid {
		return n.gone(ctx, s) // and replaced by another client
	}
	var whose owner
	if there {
		if whose, err = n.judge(ctx, s, n.path, stat); err != nil {
			return err
		}
	}
	n.doubt = false
	switch whose {
	case nobody:
		w.Stop()
		if err := n.gone(ctx, s); err != nil {
			return err
		}
		return n.create(ctx, s)
	case ghost:
		w.Stop()
		n.lost(ctx)
		return n.replace(ctx, s, stat.Version)
	case foreign:
		n.stood = time.Time{}
		if n.mode.sequential() { // the parent was deleted, and its numbers began again
			n.path, n.number, n.look = "", "", false
			return nil
		}
		n.tell(Foreign, n.foreign(stat.EphemeralOwner))
		if _, _, err := s.Get(ctx, n.path); errors.Is(err, zk.ErrNoAuth) {
			n.pause(ctx) // no event comes of a node that may not be read (CVE-2024-23944)
			return nil
		}
		n.idle(ctx, s, w)
		return nil
	}
	if n.stood.IsZero() {
		n.stood = time.Now()
	}
	if done, err := n.write(ctx, s, stat); !done {
		return err
	}
	n.tell(Ours, nil)
	n.idle(ctx, s, w)
	return nil
}

// idle waits until there is something to do.
func (n *PersistentNode) idle(ctx context.Context, s *client.Session, w *client.OneShotWatch) {
	due, stop := n.touch.timer()
	defer stop()
	select {
	case <-w.Done():
	case <-n.wake:
	case <-s.Context().Done():
	case <-ctx.Done():
	case <-due:
	}
}

// gone is called when the node that was ours is not at the path.
func (n *PersistentNode) gone(ctx context.Context, s *client.Session) error {
	if n.stopWhenRemoved && n.czxid != 0 && !n.touch.expired() {
		// The end of the session deletes the node as well, and its events may arrive
		// before this client hears of that. A session that is over is refused.
		if err := s.Sync(ctx, n.path); err != nil {
			return err
		}
		n.czxid, n.made = 0, false
		return ErrRemoved
	}
	n.czxid, n.made = 0, false
	if n.stood.IsZero() {
		return nil
	}
	n.tell(Absent, errDeleted)
	n.lost(ctx)
	return nil
}

// errDeleted is why a node is absent for a moment.
var errDeleted = errors.New("nodes: another client has deleted the node; it is made again")
