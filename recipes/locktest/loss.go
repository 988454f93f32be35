package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// lostRequests loses each request of an acquire of a new path, of a wait behind
// another holder, and of the releases, in every way. The lock is held once, and
// nothing stays.
func lostRequests(s *suite) {
	b := s.Connect("b")
	for _, way := range s.Ways() {
		for nth, fired := 1, true; fired; nth++ {
			s.begin()
			path := s.Path()
			a := s.Connect("a") // a new client: one that loses its connection again and again waits before it dials
			mine, theirs := s.lock(a, path), s.rival(b, path)
			fault := s.Lose("a", nth, way)
			h := s.held(mine)
			s.nodes(path, s.kind.Nodes)
			s.check(h.Err())
			s.check(h.Release(s.ctx))
			s.nodes(path, 0)

			blocker := s.held(theirs)
			waits := acquire(s.ctx, mine)
			s.waiting(theirs, 1)
			s.check(blocker.Release(s.ctx))
			h = s.granted(waits)
			s.check(h.Err())
			s.check(h.Release(s.ctx))
			fault.Remove()
			if fired = fault.Fired(); !fired {
				s.Logf("%s: %d requests", way, nth-1)
			}
			s.nothingLeft(path, theirs)
			s.check(a.CloseContext(s.ctx))
		}
	}
}

// killedAtEveryAnswer ends the session in the moment between each answer and the
// client's reading it. A hold that is returned holds the lock, or says that it is
// lost.
func killedAtEveryAnswer(s *suite) {
	b := s.Connect("b")
	for nth, fired := 1, true; fired; nth++ {
		s.begin()
		path := s.Path()
		a := s.Connect("a")
		mine, theirs := s.lock(a, path), s.rival(b, path)
		id := s.session(a)
		fault := s.AtAnswer("a", nth, func() { s.Kill(id) })
		h, err := mine.Acquire(s.ctx)
		switch {
		case err == nil:
		case s.kind.InParts && (errors.Is(err, recipes.ErrNodeDeleted) || errors.Is(err, client.ErrLeaseExpired)):
			s.want(err, recipes.ErrLost) // of a part that was held: news of its node or lease came first
		default:
			s.want(err, client.ErrSessionLost)
		}
		fault.Remove()
		if fired = fault.Fired(); !fired {
			s.check(err)
			s.Logf("%d requests", nth-1)
		}
		if h != nil {
			// It was had in the next session, or is lost and will be told so:
			// another contender may be faster after a kill.
			other, err := theirs.TryAcquire(s.ctx)
			if err != nil {
				s.want(err, recipes.ErrBusy)
			} else {
				s.ended(h, fmt.Sprintf("killed at answer %d", nth))
				s.check(other.Release(s.ctx))
			}
			if err := h.Close(); err != nil {
				s.want(err, recipes.ErrLost)
			}
		}
		s.nothingLeft(path, theirs)
		s.check(a.CloseContext(s.ctx))
	}
}

// loss is a way to lose a session.
type loss struct {
	name  string
	lose  func(s *suite, c *client.Client)
	hold  error // what a holder is told
	wait  error // what a waiter is told, unless it holds a part by then
	force bool  // another contender may know first
}

func losses() []loss {
	return []loss{
		{"killed", func(s *suite, c *client.Client) { s.Kill(s.session(c)) }, client.ErrSessionLost, client.ErrSessionLost, true},
		{"silenced", func(s *suite, _ *client.Client) { s.Silence("a") }, client.ErrLeaseExpired, client.ErrSessionLost, false},
		{"closed", func(s *suite, c *client.Client) {
			go func() {
				if err := c.CloseContext(s.ctx); err != nil {
					s.Error(err)
				}
			}()
		}, client.ErrClosed, client.ErrClosed, false},
	}
}

// lostWhileHolding tells the holder before another contender holds, unless the
// session was killed by force, and the release says that it was lost.
func lostWhileHolding(s *suite) {
	b := s.Connect("b")
	for _, loss := range losses() {
		s.begin()
		path := s.Path()
		a := s.Connect("a")
		theirs := s.rival(b, path)
		h := s.held(s.lock(a, path))
		waits := acquire(s.ctx, theirs)
		s.waiting(theirs, 1)
		loss.lose(s, a)
		next := s.granted(waits)
		if h.Err() == nil && !loss.force {
			s.Errorf("%s: another holds, and the holder was not told", loss.name)
		}
		s.ended(h, loss.name)
		s.want(h.Err(), recipes.ErrLost, loss.hold)
		s.want(context.Cause(h.Context()), recipes.ErrLost, loss.hold)
		s.want(h.Release(s.ctx), recipes.ErrLost)
		s.check(next.Err())
		s.check(next.Release(s.ctx))
		s.Heal("a")
		s.nothingLeft(path, theirs)
	}
}

// lostWhileWaiting says that the place is lost, and takes no other in silence.
func lostWhileWaiting(s *suite) {
	b := s.Connect("b")
	for _, loss := range losses() {
		s.begin()
		path := s.Path()
		a := s.Connect("a")
		theirs := s.rival(b, path)
		h := s.held(theirs)
		waits := acquire(s.ctx, s.lock(a, path))
		s.waiting(theirs, 1)
		_ = s.session(a) // answers come in order: it knows of its place
		loss.lose(s, a)
		r := s.returned(waits)
		if !errors.Is(r.err, recipes.ErrLost) {
			s.want(r.err, loss.wait)
		} else if s.want(r.err, loss.hold); s.kind.Nodes == 1 {
			s.Errorf("%s: a waiter for one lock says of a hold: %v", loss.name, r.err)
		}
		if r.hold != nil {
			s.Errorf("%s: two holders", loss.name)
		}
		s.check(h.Err())
		s.Heal("a")
		s.check(h.Release(s.ctx))
		s.nothingLeft(path, theirs)
	}
}

// nodeDeleted deletes the node of a holder and of a waiter: each is told, and
// nothing of theirs stays. A waiter of a kind that returns is not told.
func nodeDeleted(s *suite) {
	path := s.Path()
	a, b := s.Connect("a"), s.Connect("b")
	mine, theirs := s.lock(a, path), s.rival(b, path)
	for nth := range s.kind.Nodes { // any one of them
		h := s.held(mine)
		s.nodes(path, s.kind.Nodes)
		own := s.Ephemerals(path)
		slices.Sort(own)
		s.Delete(own[nth])
		began := time.Now()
		s.ended(h, "deleted")
		if took := time.Since(began); took > 500*s.RoundTrip() { // sooner than a heartbeat would tell
			s.Errorf("told after %v", took)
		}
		s.want(h.Err(), recipes.ErrLost, recipes.ErrNodeDeleted)
		s.want(h.Release(s.ctx), recipes.ErrLost, recipes.ErrNodeDeleted)
		s.nothingLeft(path, theirs)
	}

	h := s.held(theirs)
	waits := acquire(s.ctx, mine)
	s.waiting(theirs, 1)
	s.Delete(s.waiters(theirs)[0].Path)
	if s.kind.AtTurn || s.kind.Returns {
		s.check(h.Release(s.ctx))
	}
	switch r := s.returned(waits); {
	case s.kind.Returns:
		s.check(r.err)
		s.check(r.hold.Release(s.ctx))
	case r.hold != nil || !errors.Is(r.err, recipes.ErrNodeDeleted):
		s.Errorf("a waiter whose node was deleted: %v, %v", r.hold, r.err)
	}
	if !s.kind.AtTurn && !s.kind.Returns {
		s.check(h.Release(s.ctx))
	}
	s.nothingLeft(path, theirs)
}
