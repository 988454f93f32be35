package recipes

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// sight is what an observer sees of one acquire and of the hold that comes of it.
// A nil one sees nothing.
type sight struct {
	c     *client.Client
	hooks client.LockHooks
	begun time.Time // the acquire, and then the hold
	path  string
	hold  client.HoldInfo
	state atomic.Int32 // one of the following
}

const (
	seenWaiting int32 = iota
	seenHeld
	seenEnded
)

// callerKey finds, in the context of an acquire that is observed, the one that the
// caller gave: the values of that are the hold's.
type callerKey struct{}

// callers returns the context whose values a hold gets that is made with ctx.
func callers(ctx context.Context) context.Context {
	if caller, ok := ctx.Value(callerKey{}).(context.Context); ok {
		return caller
	}
	return ctx
}

// observe tells the observer of c, if it asked for that, that a lock is asked for.
// The acquire goes on with the context that observe returns.
func observe(ctx context.Context, c *client.Client, lock client.LockInfo) (context.Context, *sight) {
	hook := c.Observer().Lock
	if hook == nil {
		return ctx, nil
	}
	s := &sight{c: c, begun: time.Now(), path: lock.Path}
	within, hooks := hook(ctx, lock)
	if within == nil {
		within = ctx
	}
	s.hooks = hooks
	return context.WithValue(within, callerKey{}, ctx), s
}

// queued lets the observer hear of the places that member has in the queue of the
// lock at path.
func (s *sight) queued(path string, member *seqqueue.Member) {
	if s == nil || s.hooks.Queued == nil {
		return
	}
	var last client.QueuePlace
	member.Told = func(ahead int, behind string) {
		now := client.QueuePlace{Path: path, Node: member.Path, Ahead: ahead, Behind: behind}
		if now != last {
			last = now
			s.hooks.Queued(now)
		}
	}
}

// acquired tells what came of an acquire.
func (s *sight) acquired(ctx context.Context, err error) {
	if s.hooks.Acquired == nil {
		return
	}
	s.hooks.Acquired(client.AcquireResult{
		HoldInfo: s.hold, Duration: time.Since(s.begun), Outcome: outcome(ctx, err), Err: err,
	})
}

func outcome(ctx context.Context, err error) client.AcquireOutcome {
	switch {
	case err == nil:
		return client.AcquireDone
	case errors.Is(err, ErrBusy):
		return client.AcquireBusy
	case errors.Is(err, context.DeadlineExceeded) && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return client.AcquireTimeout
	case errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled):
		return client.AcquireCanceled
	default:
		return client.AcquireFailed
	}
}

// begin tells that the hold with the given context begins, and returns the context
// that it gets.
func (s *sight) begin(ctx context.Context) context.Context {
	s.begun = time.Now()
	if s.hooks.Held != nil {
		if within := s.hooks.Held(ctx, s.hold); within != nil {
			ctx = within
		}
	}
	s.state.Store(seenHeld)
	return ctx
}

// released tells that the hold has ended with a release that returned err.
func (s *sight) released(err error) {
	if s == nil || !s.state.CompareAndSwap(seenHeld, seenEnded) || s.hooks.Ended == nil {
		return
	}
	result := client.HoldResult{HoldInfo: s.hold, Path: s.path, Duration: time.Since(s.begun), Err: err}
	if errors.Is(err, ErrLost) {
		result.End = endOf(err)
	}
	s.hooks.Ended(result)
}

// lost tells that the hold has ended before its release, because of the lock at
// path. The lease that looks after other holds does not wait for the observer.
func (s *sight) lost(path string, cause error) {
	if s == nil || !errors.Is(cause, ErrLost) || !s.state.CompareAndSwap(seenHeld, seenEnded) || s.hooks.Ended == nil {
		return
	}
	result := client.HoldResult{HoldInfo: s.hold, Path: path, Duration: time.Since(s.begun), End: endOf(cause), Err: cause}
	inner.Tell(s.c, func() { s.hooks.Ended(result) })
}

// endOf says how a hold ended that was lost because of cause.
func endOf(cause error) client.HoldEnd {
	switch {
	case errors.Is(cause, client.ErrClosed):
		return client.HoldLostClosed
	case errors.Is(cause, ErrNodeDeleted):
		return client.HoldLostNode
	case errors.Is(cause, client.ErrLeaseExpired):
		return client.HoldLostLease
	default:
		return client.HoldLostSession
	}
}
