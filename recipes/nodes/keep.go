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
func (n *PersistentNode) run(ctx context.Context, life *life) {
	defer close(life.ended)
	defer life.end()
	n.k.opens()
	var end error
	for end == nil {
		s, err := n.c.Session(ctx)
		switch {
		case err == nil:
			n.beginSession(s)
			end = n.inSession(ctx, s)
			n.unwatch()
		case ctx.Err() != nil, errors.Is(err, client.ErrClosed):
			end = ending(ctx, err)
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
	life.err = n.remove(context.WithoutCancel(ctx))
}

// ending is ErrClosed, with the reason unless it is a call of Close.
func ending(ctx context.Context, why error) error {
	if ctx.Err() != nil {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrClosed, why)
}

// pastSessions is how many lost sessions are remembered. The servers keep a lost
// session for its timeout at most, and the client ends it earlier if it can.
const pastSessions = 16

// beginSession notes that s is the session from now on. The node of a lost session is a
// ghost of this object only if it had a node there, or may have had one: the session is
// that of all objects of the client.
func (n *PersistentNode) beginSession(s *client.Session) {
	if remember, czxid := n.k.begins(n.session != nil && n.session.ID() != s.ID()); remember {
		n.past = append(n.past, ghost{n.session.ID(), czxid})
		n.past = n.past[max(0, len(n.past)-pastSessions):]
	}
	n.session = s
}

// inSession keeps the node in one session. It returns nil when the session is over,
// and otherwise why it is the end.
func (n *PersistentNode) inSession(ctx context.Context, s *client.Session) error {
	for {
		if n.k.at == decides && n.touch.isDue() {
			n.touchChild(ctx, s)
		}
		_, gen := n.wanted()
		at := n.k.next(gen)
		if at == rests && n.k.stands || at == sets && n.Status().State != Ours {
			n.tell(Ours, nil)
		}
		a, err := n.take(ctx, s, at)
		is := n.answered(a)
		switch {
		case ctx.Err() != nil:
			return ErrClosed
		case n.k.at == removed:
			return ErrRemoved
		case s.Err() != nil:
			n.tell(Absent, s.Err())
			return nil //nolint:nilerr // run goes on in the next session
		}
		switch is {
		case isErr:
			n.tell(n.k.state(Absent), err)
		case isDenied:
			n.tell(n.k.state(Refused), err)
		case isForeign:
			n.tell(Foreign, n.foreign(n.stat.EphemeralOwner, s.ID()))
		case isDeleted:
			n.tell(Absent, errDeleted)
		case isReplaced:
			n.tell(Absent, errReplaced)
		case isGone:
			n.tell(Absent, errGone)
		}
		n.cool(ctx, s, err)
	}
}

// Why a node is absent for a moment.
var (
	errDeleted  = errors.New("nodes: another client has deleted the node; it is made again")
	errReplaced = errors.New("nodes: another client's node stands at the path; this one is made again")
	errGone     = errors.New("nodes: the node is gone; this client finds out whether its session is over")
)

// take takes a step, and returns its answer.
func (n *PersistentNode) take(ctx context.Context, s *client.Session, at step) (a answer, err error) {
	switch at {
	case reads, sets, probes, rests:
	default:
		n.unwatch()
	}
	switch at {
	case syncs:
		err = s.Sync(ctx, n.dir)
	case proves:
		err = s.Sync(ctx, n.path)
	case searches:
		a, err = n.search(ctx, s)
	case confirms:
		a, err = n.confirm(ctx, s)
	case counts:
		err = n.count(ctx, s)
	case creates:
		a, err = n.create(ctx, s)
	case replaces:
		a, err = n.replace(ctx, s)
	case looks, checks:
		a, err = n.look(ctx, s, at == looks)
	case reads:
		a, err = n.read(ctx, s)
	case sets:
		a, err = n.setData(ctx, s)
	case probes:
		_, _, err = s.Get(ctx, n.path)
	case deletes:
		_, err = s.Multi(ctx, client.DeleteOp(n.path, n.stat.Version)) // Delete would repeat itself
	case rests:
		n.idle(ctx, s)
	case pauses:
		n.pause(ctx)
	case eases:
		n.ease(ctx)
	}
	a.outcome = outcomeOf(err)
	return a, err
}

// answered gives the machine an answer, and follows what it has learned.
func (n *PersistentNode) answered(a answer) news {
	is := n.k.answered(a)
	if n.k.claim == made {
		n.prefix = ""
	}
	if n.k.aim == nowhere {
		n.path, n.number = "", ""
	}
	switch {
	case n.k.stands && n.stood.IsZero():
		n.stood = time.Now()
	case !n.k.stands && n.k.at != eases:
		n.stood = time.Time{}
	}
	return is
}

// remove deletes the node if this object has made it. It tries until that is done, a
// server refuses it, the client is closed, or the session of an ephemeral node is over.
func (n *PersistentNode) remove(ctx context.Context) error {
	s := n.session
	if s == nil || n.mode == persistentTTL {
		return nil
	}
	n.k.closes()
	for {
		at := n.k.next(0)
		if at == ended {
			return nil
		}
		a, err := n.take(ctx, s, at)
		n.answered(a)
		switch {
		case at == deletes && a.outcome == noNode:
			return nil
		case s.Err() == nil && (n.k.at == ended || errors.Is(err, client.ErrClosed)):
			return err
		case s.Err() == nil:
		case n.mode.ephemeral():
			return nil // it is deleted with the session
		default:
			if s, err = n.c.Session(ctx); errors.Is(err, client.ErrClosed) {
				return err
			} else if err != nil {
				s = n.session
				n.pause(ctx)
			}
			n.k.begins(true)
		}
	}
}

// outcomeOf says how a step has gone.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return done
	case errors.Is(err, zk.ErrNoNode):
		return noNode
	case errors.Is(err, zk.ErrNodeExists):
		return nodeExists
	case errors.Is(err, zk.ErrBadVersion):
		return badVersion
	case errors.Is(err, zk.ErrNoAuth):
		return noAuth
	case client.UnknownOutcome(err):
		return unknown
	case refused(err):
		return denied
	default:
		return failed
	}
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

// cooling is the pause after the second time in a row that the servers have hung up on the
// node, perhaps because it is larger than their jute.maxbuffer. Each time costs all that
// the client holds its connection. Such a node does not become right by itself.
const cooling = 5 * time.Minute

// cool waits for other data after the servers have hung up on the node again. The first
// time may be a server that was restarted.
func (n *PersistentNode) cool(ctx context.Context, s *client.Session, err error) {
	switch {
	case n.k.stands && n.k.at == rests:
		n.hungUp = false
	case !inner.Oversized(err):
	case !n.hungUp:
		n.hungUp = true
	default:
		t := time.NewTimer(cooling)
		defer t.Stop()
		select {
		case <-t.C:
		case <-n.wake:
			n.hungUp = false
		case <-s.Context().Done():
		case <-ctx.Done():
		}
	}
}

// calm is how long a node must have stood before its loss. A node that stood for
// less is taken for the victim of a rival that goes on.
const calm = 10 * time.Second

// ease pauses if the node that is gone did not stand for long.
func (n *PersistentNode) ease(ctx context.Context) {
	if time.Since(n.stood) < calm {
		n.pause(ctx)
	} else {
		n.pauses.Reset()
	}
}

// idle waits until there is something to do.
func (n *PersistentNode) idle(ctx context.Context, s *client.Session) {
	due, stop := n.touch.timer()
	defer stop()
	select {
	case <-n.watch.Done():
	case <-n.wake:
	case <-s.Context().Done():
	case <-ctx.Done():
	case <-due:
	}
}

// unwatch ends the watch of the newest look.
func (n *PersistentNode) unwatch() {
	if n.watch != nil {
		n.watch.Stop()
		n.watch = nil
	}
}
