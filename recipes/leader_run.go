package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/retry"
)

// Run campaigns, leads and campaigns again, until ctx ends or fn fails. fn runs once for
// each term, and never twice at once. Its context ends before another participant can
// lead, or when ctx ends; fn must return then. The context of the term goes on when ctx
// ends. With that one fn may still hand the term over, or wait for a successor.
//
// If fn returns nil, the participant gives the term up and goes behind the others. So
// participants whose fn returns lead in turns. If fn returns an error while it leads,
// Run gives the term up and returns that error. If the term was lost, Run goes on,
// whatever fn returned. The program may release the term while fn runs, by HandOver for
// one. If fn then returns the error of its context, Run goes on too.
//
// When ctx ends while fn runs, Run returns what fn returns. If that is nil, or if ctx ends
// while Run waits, the error matches that of ctx.
//
// If a campaign fails, or a term is lost soon after it has begun, Run pauses by the
// policy of [WithCampaignRetry] before it campaigns again. The session may be lost after
// the participant has led, or stood in line, for longer than the session's timeout. Then
// Run campaigns again at once, and no earlier failure counts. A pause ends with ctx. Run
// ends with an error that no other try can change: client.ErrClosed, [ErrWouldDeadlock],
// client.ErrInvalidACL, client.ErrUnsafeTimeout, or the loss of a hold that ctx descends
// from. It logs the first failure of a series. A missing right and a path that another
// recipe uses ([ErrForeignLock]) end no Run: look at the log, or campaign once before.
func (e *Election) Run(ctx context.Context, fn func(ctx context.Context, term *Term) error) error {
	ctxerr.Require(ctx)
	if fn == nil {
		return errNoFunction
	}
	outer := around(ctx)
	once := func(ctx context.Context) error {
		if why := lostAmong(outer); why != nil { // a campaign that begins now would not know
			return retry.Permanent(e.fail("lead", why))
		}
		return e.lead(ctx, fn)
	}
	for {
		tried := false
		err := retry.Do(ctx, e.retry, func(ctx context.Context) error { tried = true; return once(ctx) }, retry.OnRetry(e.logRetry))
		switch {
		case err != nil && !tried: // ctx has ended before
			return e.fail("lead", err)
		case err != nil:
			return err
		}
	}
}

func (e *Election) logRetry(a retry.Attempt) {
	if a.N == 1 {
		inner.Logger(e.l.c).Warn("zookeeper: a participant of an election does not lead, and tries again",
			"election", e.l.path, "reason", a.Err)
	}
}

// lead is one term. Its error is permanent if Run must not go on.
func (e *Election) lead(ctx context.Context, fn func(ctx context.Context, term *Term) error) error {
	var term *Term
	var failed error
	begun := time.Now()
	err := e.Do(ctx, func(ctx context.Context, t *Term) error {
		term, begun = t, time.Now()
		failed = fn(ctx, t)
		if errors.Is(t.Err(), ErrReleased) && (errors.Is(failed, context.Canceled) || errors.Is(failed, ErrReleased)) {
			failed = nil // the program has released the term, and fn has heard of that
		}
		return failed
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, term == nil && hopeless(err):
		return retry.Permanent(err)
	case term == nil && errors.Is(err, client.ErrSessionLost) && time.Since(begun) > e.sessions.timeout():
		return nil // it has stood in line for long: no series of failures
	case term == nil:
		return err
	case errors.Is(term.Err(), ErrLost): // fn may have failed with the loss of another lock
		if time.Since(begun) > term.grant.timeout() || errors.Is(term.Err(), client.ErrClosed) {
			return nil // no series of losses; the next campaign says if the client is closed
		}
		return e.fail("lead", term.Err()) // without fn's error, which may be marked as permanent
	case failed == nil:
		return nil // the node is gone, or is being removed in the background
	default:
		return retry.Permanent(err)
	}
}

// hopeless reports whether no later campaign with the same context can succeed.
func hopeless(err error) bool {
	for _, final := range []error{client.ErrClosed, client.ErrInvalidACL, client.ErrUnsafeTimeout, ErrWouldDeadlock, ErrLost} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}
