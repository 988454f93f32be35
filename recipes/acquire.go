package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// Lock is what an [InterProcessMultiLock] is made of: [InterProcessMutex],
// [ReadLock], [WriteLock], [InterProcessSemaphoreMutex] and
// [InterProcessSemaphoreV2.Permits].
type Lock interface {
	// Path is the path of the lock.
	Path() string
	part() part
}

// part is a lock as a multi-lock sees it.
type part struct {
	acquirable

	path string
	gate *lockInternals // the queue that the lock waits in
}

// queueKey tells queues apart: a path on the servers of a client.
type queueKey struct {
	root *client.Client
	path string
}

// acquirable is the protocol of a lock, in the order in which an acquire goes
// through it.
type acquirable interface {
	// reenter returns the hold that ctx gives a right to; ok is false if there is
	// none. It refuses an acquire that could only wait for itself.
	reenter(ctx context.Context) (h *Hold, ok bool, err error)
	// free returns a [*BusyError] if the lock could not be taken now. It makes no
	// node.
	free(ctx context.Context) error
	// join makes a node at the end of the queue.
	join(ctx context.Context) (*seqqueue.Member, error)
	// turn waits until it is the turn of m, and returns the place that m has then.
	// Without wait it returns a [*BusyError] if it is not m's turn. After an error the
	// caller deletes the node of m.
	turn(ctx context.Context, m *seqqueue.Member, wait bool) (place, error)
}

// prompt is a lock that may take a place with its first request.
type prompt interface {
	// atOnce returns the place that its first request has taken; ok is false if it has
	// taken none. m has joined the queue then, or is nil.
	atOnce(ctx context.Context) (p place, ok bool, m *seqqueue.Member, err error)
}

// acquire goes through the protocol of a lock that c has made. lock describes the
// acquire: with Try set it does not wait for others.
func acquire(ctx context.Context, c *client.Client, lock client.LockInfo, by acquirable) (*Hold, error) {
	ctxerr.Require(ctx)
	outer := around(ctx)
	ctx, seen := observe(ctx, c, lock)
	h, err := through(ctx, seen, lock, by, outer)
	if err != nil {
		err = &LockError{Op: opOf(lock.Try), Path: lock.Path, Err: err}
	}
	seen.given(ctx, h, err)
	return h, err
}

func through(ctx context.Context, seen *sight, lock client.LockInfo, by acquirable, outer []*grant) (*Hold, error) {
	before := ctxerr.Ended(ctx)
	h, ok, err := by.reenter(ctx)
	if before != nil && !ok && (err == nil || errors.Is(err, ctx.Err())) {
		return nil, endedBefore(before)
	}
	if ok || err != nil {
		return h, err
	}
	if lock.Try {
		if err := by.free(ctx); err != nil {
			return nil, err
		}
	}
	var m *seqqueue.Member
	if by, may := by.(prompt); may && !lock.Try {
		p, ok, joined, err := by.atOnce(ctx)
		if err != nil {
			return nil, err
		}
		if ok {
			return take(ctx, p, outer)
		}
		m = joined
	}
	if m == nil {
		if m, err = by.join(ctx); err != nil {
			return nil, err
		}
	}
	seen.queued(lock.Path, m)
	p, err := by.turn(ctx, m, !lock.Try)
	if err != nil {
		abandon(ctx, m, err)
		return nil, err
	}
	return take(ctx, p, outer)
}

// take begins to hold a place, as soon as the session is known to be good for
// some time. ctx gives the hold its values, not its end; around are the holds that
// were held when the acquire began in their contexts. On error the nodes of the
// place are being deleted.
func take(ctx context.Context, p place, around []*grant) (*Hold, error) {
	g := &grant{place: p}
	g.first.of, g.first.values = g, callers(ctx)
	g.one[0] = &g.first
	g.holds = g.one[:]
	g.watch = time.AfterFunc(g.Unwatched(), g.watchOwn)
	holding, err := inner.Hold(ctx, g.Session, g.lose, g.Paths...)
	if err == nil {
		g.holding = holding
		if err = notOver(g.err()); err == nil { // a loss before there is a hold: ErrLost is for that of another
			err = g.first.follow(g, around)
		}
	} else if errors.Is(err, zk.ErrNoNode) {
		err = ErrNodeDeleted
	}
	if err != nil {
		g.first.cancel(err)
		g.first.outer.leave()
		g.countDown(&g.first)
		g.VacateInBackground()
		return nil, err
	}
	return newHold(&g.first, g), nil
}

// reenter returns one more hold, with the values of ctx, unless ctx has ended. ok
// is false if the last hold of g was released.
func (g *grant) reenter(ctx context.Context) (h *Hold, ok bool, err error) {
	if err = g.err(); err == nil {
		if err := ctxerr.Ended(ctx); err != nil {
			return nil, false, err
		}
		e := &ending{of: g, values: callers(ctx)}
		if err := e.follow(g, around(e.values)); err != nil {
			e.outer.leave()
			return nil, false, err
		}
		if err = g.count(e); err == nil {
			return newHold(e, g), true, nil
		}
		e.outer.leave()
	}
	if errors.Is(err, ErrReleased) {
		return nil, false, nil
	}
	return nil, false, err
}

// given tells that an acquire, made with ctx, has ended with h or err.
func (s *sight) given(ctx context.Context, h *Hold, err error) {
	if s == nil {
		return
	}
	if err != nil {
		s.acquired(ctx, err)
		return
	}
	g := h.grant
	s.hold = client.HoldInfo{Node: g.Paths[0], Session: g.Session.ID(), FencingToken: g.token}
	s.acquired(ctx, nil)
	h.replace(s.begin(h.context()))
	g.seen.Store(s)
	if lost := h.ended(); lost != nil { // before the sight was there to tell of it
		s.lost(s.path, lost)
	}
}

// endedBefore refuses an acquire whose context had ended when it began.
func endedBefore(err error) error {
	if errors.Is(err, ErrReleased) {
		return fmt.Errorf("the context had ended before, with a hold that is released: %w", err)
	}
	return fmt.Errorf("the context had ended before: %w", err)
}

// abandon deletes the node of m, whose turn has failed with err. While that node
// stands, a lock of another kind refuses its own acquires. So a refused acquire waits
// until the node is gone or ctx ends.
func abandon(ctx context.Context, m *seqqueue.Member, err error) {
	if errors.Is(err, ErrForeignLock) {
		_ = m.Vacate(ctx) // what fails goes on in the background
		return
	}
	m.VacateInBackground()
}

// opOf is what an acquire is called in errors.
func opOf(try bool) string {
	if try {
		return "try to acquire"
	}
	return "acquire"
}

// met waits for the first session of a lazy client, which does not know before
// what its nodes say.
func met(ctx context.Context, c *client.Client) error {
	if c.State() != client.Connecting {
		return nil
	}
	_, err := c.Session(ctx)
	return err
}
