package recipes

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// MultiHold is several locks that are held as one. It is safe for concurrent
// use and must be released, also after it was lost.
type MultiHold struct {
	ending

	path  string
	holds []*Hold // nil for a lock that is not yet held
	stops []func() bool
	doubt doubts
	seen  *atomic.Pointer[sight] // to nil until the hold is given, or for ever
}

// newMultiHold begins to hold n locks, which add adds. ctx gives its values,
// not its end.
func newMultiHold(ctx context.Context, path string, n int) *MultiHold {
	h := &MultiHold{path: path, holds: make([]*Hold, n), seen: new(atomic.Pointer[sight])}
	h.of, h.values = h, ctx
	h.context()
	return h
}

// givenAll is given for a multi-lock.
func (s *sight) givenAll(ctx context.Context, h *MultiHold, err error) {
	if s == nil {
		return
	}
	if err != nil {
		s.acquired(ctx, err)
		return
	}
	s.hold.FencingToken = h.FencingToken()
	s.acquired(ctx, nil)
	h.replace(s.begin(h.context()))
	h.seen.Store(s)
	if lost := h.lost(); lost != nil {
		var failed *LockError
		if errors.As(lost, &failed) {
			s.lost(failed.Path, lost)
		}
	}
}

// add makes one the hold of lock i. The hold's context, and the one that is
// returned, descend from it.
func (h *MultiHold) add(ctx context.Context, i int, one *Hold) context.Context {
	h.holds[i] = one
	h.ctx = one.grant.within(h.ctx)
	over, lock, cancel, seen := one.Context(), one.grant.lock, h.stop, h.seen // and not h, which may become garbage
	h.stops = append(h.stops, context.AfterFunc(over, func() {
		cause := context.Cause(over)
		cancel(cause)
		seen.Load().lost(lock, cause)
	}))
	if values, observed := ctx.Value(callerKey{}).(context.Context); observed {
		ctx = context.WithValue(ctx, callerKey{}, one.grant.within(values))
	}
	return one.grant.within(ctx)
}

// lost names the first hold that has ended, nil if there is none.
func (h *MultiHold) lost() error {
	for _, one := range h.holds {
		if one == nil {
			continue
		}
		if err := one.Err(); err != nil {
			return &LockError{Path: one.grant.lock, Err: err}
		}
	}
	return nil
}

// abandon ends a hold that no caller was given, and waits for nothing.
func (h *MultiHold) abandon() {
	over, cancel := context.WithCancel(context.WithoutCancel(h.ctx))
	cancel()
	_ = h.release(over) // the nodes are deleted in the background
}

// Context is done when any of the locks is no longer held. Its cause matches
// [ErrReleased] or [ErrLost]. With this context an acquire of one of the locks
// re-enters it. A semaphore is not re-entered: it refuses with [ErrWouldDeadlock]
// what it could never give within this hold.
func (h *MultiHold) Context() context.Context { return h.context() }

// LockPath names the paths of the locks, joined by plus signs, as
// [InterProcessMultiLock.Path]. It is for people.
func (h *MultiHold) LockPath() string { return h.path }

// Holds are the holds of the locks, in the order in which they were named.
// They must not be released one by one unless the multi-lock is given up.
func (h *MultiHold) Holds() []*Hold { return slices.Clone(h.holds) }

// FencingToken is the token of the first lock named, and grows with every hold of
// that lock. [MultiHold.Holds] has the tokens of the other locks. Locks whose
// queues were joined in one transaction have the same token. Permits of a
// semaphore, and locks that were re-entered, have tokens of their own.
func (h *MultiHold) FencingToken() int64 { return h.holds[0].FencingToken() }

// Err is nil while all locks are held. Afterwards it matches [ErrReleased] or
// [ErrLost].
func (h *MultiHold) Err() error { return h.ending.err() }

// Release ends the hold and releases all locks at once, each as [Hold.Release]. One
// transaction deletes the nodes of all locks of one session. Permits of a semaphore leave by
// themselves, as a release may hand them over. If the servers refuse the transaction, each
// lock is released alone. So if the release of one lock fails, the others are released all
// the same, and the error joins the errors of all. If ctx ends before the servers have
// answered, all nodes are removed in the background. Release may be called more than once:
// all calls return the result of the first, or the end of their own context.
func (h *MultiHold) Release(ctx context.Context) error { return h.release(ctx) }

// Close is [MultiHold.Release] within one session timeout. It is made for
// defer.
func (h *MultiHold) Close() error { return h.close() }

// Deadline returns the instant before which no other contender holds any of the
// locks, by what is known now: the earliest of [Hold.Deadline]. It is zero once
// the hold is over.
func (h *MultiHold) Deadline() time.Time {
	if h.Err() != nil {
		return time.Time{}
	}
	var least time.Time
	for _, one := range h.holds {
		d := one.Deadline()
		if d.IsZero() { // it has ended since
			return d
		}
		if least.IsZero() || d.Before(least) {
			least = d
		}
	}
	return least
}

// Confirm asks the ensembles whether all of the locks are held, at once, as
// [Hold.Confirm]. After nil each was held, at some moment during the call. It takes
// one write for each lock. The error joins the errors of all locks, and matches
// [ErrLost] or [ErrReleased] if the hold is over. After any other error the hold is
// as it was, and nothing new is known of the locks that the error names.
func (h *MultiHold) Confirm(ctx context.Context) error { return h.ending.confirm(ctx) }

// Jeopardy returns a channel that is closed while any of the locks is in doubt,
// as [Hold.Jeopardy]. Once the doubt is over Jeopardy returns a new one.
func (h *MultiHold) Jeopardy() <-chan struct{} {
	var of []<-chan struct{}
	for _, one := range h.holds {
		c := one.Jeopardy()
		select {
		case <-c:
			return c
		default:
		}
		if !slices.Contains(of, c) { // one for each session
			of = append(of, c)
		}
	}
	if len(of) == 1 {
		return of[0]
	}
	return h.doubt.any(h.ctx, of)
}

func (h *MultiHold) name() string { return h.path }

func (h *MultiHold) number() int64 { return h.FencingToken() }

// within returns ctx: each lock makes it descend from its own hold, see add.
func (h *MultiHold) within(ctx context.Context) context.Context { return ctx }

func (h *MultiHold) err() error {
	for _, one := range h.holds {
		if one != nil {
			if err := one.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *MultiHold) timeout() (longest time.Duration) {
	for _, one := range h.holds {
		if one != nil {
			longest = max(longest, one.grant.timeout())
		}
	}
	return longest
}

// leave lets the locks of one session leave together, so that they cost one
// transaction.
func (h *MultiHold) leave(ctx context.Context, _ *ending, _ error) error {
	for _, stop := range h.stops {
		stop()
	}
	err := joined(releaseAll(ctx, h.holds)...)
	h.seen.Load().released(err)
	return err
}

func (h *MultiHold) confirm(ctx context.Context) error {
	return h.each(func(one *Hold) error { return one.Confirm(ctx) })
}

// each does something with all holds at once, and joins their errors.
func (h *MultiHold) each(do func(*Hold) error) error {
	errs := make([]error, len(h.holds))
	var all sync.WaitGroup
	for i, one := range h.holds {
		if one != nil {
			all.Go(func() { errs[i] = do(one) })
		}
	}
	all.Wait()
	return joined(errs...)
}

// doubts is one channel for the jeopardy of several sessions.
type doubts struct {
	mu     sync.Mutex
	of     []<-chan struct{}
	joined chan struct{}
}

// any returns a channel that is closed when one of some is. While these are the
// same it is the same, and so are the goroutines that wait: they end when it is
// closed, or with ctx.
func (d *doubts) any(ctx context.Context, some []<-chan struct{}) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Equal(d.of, some) {
		return d.joined
	}
	joined := make(chan struct{})
	d.of, d.joined = some, joined
	one := sync.OnceFunc(func() { close(joined) })
	for _, c := range some {
		go func() {
			select {
			case <-c:
				one()
			case <-joined:
			case <-ctx.Done():
			}
		}()
	}
	return joined
}

// releaseAll is [Hold.Release] of all holds at once. A hold that is nil was never given. The
// errors are in the order of the holds. Holds of one session leave together. Permits that a
// release may hand over leave by themselves.
func releaseAll(ctx context.Context, holds []*Hold) []error {
	type session struct {
		root *client.Client
		id   int64
	}
	errs := make([]error, len(holds))
	of := map[session][]int{}
	var all sync.WaitGroup
	for i, one := range holds {
		switch {
		case one == nil:
		case one.grant.of != nil:
			all.Go(func() { errs[i] = one.Release(ctx) })
		default:
			s := session{one.grant.key.root, one.grant.Session.ID()}
			of[s] = append(of[s], i)
		}
	}
	for _, some := range of {
		all.Go(func() { releaseTogether(ctx, holds, errs, some) })
	}
	all.Wait()
	return errs
}

// releaseTogether releases some of the holds, which are of one session: it ends all of them,
// and then deletes the nodes of those that were the last on their nodes.
func releaseTogether(ctx context.Context, holds []*Hold, errs []error, some []int) {
	ended, bounded := ctx.Err() != nil, false
	var own, begun []int // whose nodes it deletes; whose releases it is
	var nodes []seqqueue.Placed
	for _, i := range some {
		one := holds[i]
		one.answeredFor()
		if !one.released.Begin() {
			continue
		}
		begun = append(begun, i)
		lost, why := one.finish()
		bounded = bounded || !ended && context.Cause(ctx) == why //nolint:errorlint // as in ending.release
		if last := one.grant.countDown(one.ending); last && lost == nil {
			own, nodes = append(own, i), append(nodes, seqqueue.Placed{Own: one.grant.Own, In: one.grant.c})
		} else {
			errs[i] = one.grant.leaveAtOnce(last, lost)
		}
	}
	if bounded {
		longer, stop := holds[some[0]].outlived(ctx)
		defer stop()
		ctx = longer
	}
	for k, err := range seqqueue.VacateTogether(ctx, nodes) {
		g := holds[own[k]].grant
		errs[own[k]] = g.left(true, g.deleted(ctx, err))
	}
	for _, i := range begun {
		holds[i].released.End(errs[i])
	}
	for _, i := range some {
		if errs[i] == nil {
			errs[i] = holds[i].release(ctx) // the result, also of a release that has begun before
		}
	}
}
