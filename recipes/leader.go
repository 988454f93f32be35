// The protocol of an election, of the latch and of the selector (Curator: LeaderLatch,
// and LeaderSelector, which is a mutex). It is that of the mutex, in mutex.go, with
// these differences:
//
//  1. A campaign has a node of its own and is never re-entered. A term is a hold of it.
//  2. A participant whose node is deleted while it waits stands in line again, behind
//     all others (Curator: LeaderLatch.reset). So a participant can be sent behind the
//     others by the deletion of its node, which is all that HandOver does. The data of a
//     node that waits is never changed: Curator's latch would use up its watch with
//     that, and would not hear of the deletion that follows.
//  3. A participant whose turn has come goes behind the others by itself if a preferred
//     one stands in line.
//
// So the line alone decides which participant leads, and its order is that of the nodes.
// For that reason tokens grow from term to term, and participants of Curator are never
// passed.

package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/candidacy"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
	"github.com/docent-go/docent/retry"
)

// Campaign stands in line until this participant leads, and returns its term. ctx bounds
// the waiting and nothing after it. The term lasts until it is released or lost. Its
// context ends before another participant can lead, and its token is greater than that
// of every term before.
//
// If another client deletes the node of the participant while it waits, the participant
// stands in line again, behind the others. That is how [Term.HandOver] moves it. The
// participant watches its own node, so it finds out at once.
//
// On error the participant does not lead and no node remains. If the node cannot be
// removed at once, its removal goes on in the background until it succeeds or the
// session is over. The error is a [*LockError] and matches what happened: ctx's error,
// client.ErrClosed, client.ErrNoAuth, [ErrSequenceExhausted] or [ErrForeignLock]. It
// matches client.ErrSessionLost if the session was lost during the wait, and the place
// in line with it. With a context of a term of the same election it matches
// [ErrWouldDeadlock], and with one of a hold that was lost [ErrLost].
//
// At most 64 campaigns of one client stand in line for one path. Further ones wait in the
// process, first come, first served, and have no node: Participants does not list them.
// So a process with very many campaigns leaves the others their turns.
//
// Campaign may be called again after any error. [Election.Run] does that.
func (e *Election) Campaign(ctx context.Context) (*Term, error) {
	outer := around(ctx)
	c := candidacy.New(e.preferred)
	for {
		t, err := e.campaign(ctx, false, c)
		if !c.Ended(err != nil, deletedInLine(err)) {
			return t, err
		}
		if ended := ctxerr.Ended(ctx); ended != nil {
			return nil, e.fail(opOf(false), fmt.Errorf("%w: %w", ended, reason(err)))
		}
		if why := lostAmong(outer); why != nil { // the next try would not know
			return nil, e.fail(opOf(false), why)
		}
	}
}

// deletedInLine reports whether a campaign ended because another client has deleted its node,
// before it had a term.
func deletedInLine(err error) bool {
	return errors.Is(err, ErrNodeDeleted) && !errors.Is(err, ErrLost)
}

// TryCampaign leads if no other participant leads or waits. It never waits for others,
// only for the servers' answers, within ctx. If another participant is ahead,
// TryCampaign returns a [*BusyError] that names that one. Otherwise it is like Campaign,
// except that it asks for no preferred participant, and fails with [ErrNodeDeleted] if
// another client deletes its node.
func (e *Election) TryCampaign(ctx context.Context) (*Term, error) {
	return e.campaign(ctx, true, &candidacy.Campaign{})
}

// Do campaigns and runs fn as the leader, for one term. It treats fn, its context, the
// term and errors as [InterProcessMutex.Do] does.
func (e *Election) Do(ctx context.Context, fn func(ctx context.Context, term *Term) error) error {
	return do(ctx, e.Campaign, fn)
}

// TryDo is Do with [Election.TryCampaign].
func (e *Election) TryDo(ctx context.Context, fn func(ctx context.Context, term *Term) error) error {
	return do(ctx, e.TryCampaign, fn)
}

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

func (e *Election) logRetry(a retry.Attempt) {
	if a.N == 1 {
		inner.Logger(e.l.c).Warn("zookeeper: a participant of an election does not lead, and tries again",
			"election", e.l.path, "reason", a.Err)
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

// campaign is one place in line, and the term that comes of it.
func (e *Election) campaign(ctx context.Context, try bool, c *candidacy.Campaign) (*Term, error) {
	h, err := acquire(ctx, e.l.c, client.LockInfo{Recipe: e.recipe, Mode: ModeExclusive.String(), Path: e.l.path, Try: try}, candidate{e, c, try})
	if err != nil {
		return nil, err
	}
	e.leads(&ledTerm{h.ending, h.FencingToken()})
	return &Term{Hold: h, e: e}, nil
}

// candidate is the protocol of one campaign.
type candidate struct {
	*Election

	decide *candidacy.Campaign
	try    bool
}

// errGaveWay says that a participant went behind a preferred one.
var errGaveWay = errors.New("gave way to a preferred participant")

// reenter refuses a campaign that would wait for a term of its own caller.
func (c candidate) reenter(ctx context.Context) (*Hold, bool, error) {
	if g := heldBy(ctx, c.l.key); g != nil {
		return nil, false, waitsFor(g, "the caller leads, or holds a lock on the path; release that first")
	}
	return nil, false, nil
}

func (c candidate) free(ctx context.Context) error { return c.l.free(ctx) }

func (c candidate) join(ctx context.Context) (*seqqueue.Member, error) {
	join := c.l.join
	if c.try {
		join = tries{c.l}.join
	}
	m, err := join(ctx)
	if err == nil {
		c.decide.Joined()
		c.sessions.add(m.Session)
	}
	return m, err
}

// turn is that of the mutex, unless a preferred participant stands in line by then, and
// this one may give way.
func (c candidate) turn(ctx context.Context, m *seqqueue.Member, wait bool) (place, error) {
	p, err := c.l.turn(ctx, m, wait)
	if err == nil && c.outranked(ctx, m) {
		err = errGaveWay
	}
	return p, err
}

// outranked reports whether m goes behind a preferred participant. If the line cannot be
// read, it does not: an election without a leader is worse than one with the wrong leader.
func (c candidate) outranked(ctx context.Context, m *seqqueue.Member) bool {
	if !c.decide.TurnHasCome(string(c.l.nodeData(c.l.c))) {
		return false
	}
	all, err := c.Participants(ctx)
	if err != nil {
		all = nil
	}
	var behind []string
	for _, p := range all {
		if p.FencingToken > m.Czxid && !p.InDoubt {
			behind = append(behind, p.ID)
		}
	}
	return c.decide.LineIs(behind, time.Now(), m.Session.Timeout())
}
