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
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/candidacy"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
	"github.com/docent-go/docent/retry"
)

// LeaderLatch is an election across processes and hosts: of all participants one leads
// at a time, and the one that asked first is the first. It is Curator's LeaderLatch on
// the wire, so Java and Go participants may stand in one line.
//
// Its nodes are "<path>/_c_<uuid>-latch-<number>", ephemeral and sequential, with the
// id of the participant as data. The lowest number leads. A path that a lock or a
// LeaderSelector uses is refused with [ErrForeignLock].
//
// Its methods, Run and Campaign for two, are those of [Election].
type LeaderLatch struct{ *Election }

// NewLeaderLatch returns the election on path. It does no I/O. The path and what is
// missing above it are made, as containers, by the first campaign.
func NewLeaderLatch(c *client.Client, path string, opts ...ElectionOption) (*LeaderLatch, error) {
	e, err := newElection(c, path, "LeaderLatch", latchTag, opts)
	if err != nil {
		return nil, err
	}
	return &LeaderLatch{e}, nil
}

// LeaderSelector is an election with the nodes of an [InterProcessMutex], as Curator's
// LeaderSelector has them: Java and Go participants may stand in one line. So may plain
// mutexes on the same path, whose holders count as leaders. Its methods, Run and Campaign
// for two, are those of [Election].
type LeaderSelector struct{ *Election }

// NewLeaderSelector returns the election on path. It does no I/O. The path and what is
// missing above it are made, as containers, by the first campaign.
func NewLeaderSelector(c *client.Client, path string, opts ...ElectionOption) (*LeaderSelector, error) {
	e, err := newElection(c, path, "LeaderSelector", lockTag, opts)
	if err != nil {
		return nil, err
	}
	return &LeaderSelector{e}, nil
}

// Election is what a [LeaderLatch] and a [LeaderSelector] have in common; code that
// takes an Election works with both. It is safe for concurrent use, holds no connection
// and needs no Close. Each campaign is a participant of its own, so one value may
// campaign several times at once.
type Election struct {
	l         *lockInternals
	recipe    string
	preferred []string
	retry     retry.Policy
	sessions  ownSessions
	newest    atomic.Pointer[ledTerm]
}

// ledTerm is a term of an election. It does not refer to the program's handle of it, whose
// loss is noticed.
type ledTerm struct {
	*ending

	token int64
}

var (
	// ErrNoParticipant says that an election has no participant, or none with the
	// id that was asked for.
	ErrNoParticipant = errors.New("no such participant stands in line")

	// ErrNotMovable says that a term cannot be handed over to a participant, because
	// one of another library, or a plain mutex, stands before it. The error names that one.
	// It leads first, or leaves.
	ErrNotMovable = errors.New("a participant of another library, or a mutex, stands in between, which is not moved")

	// errGaveWay says that a participant went behind a preferred one.
	errGaveWay = errors.New("gave way to a preferred participant")
)

func newElection(c *client.Client, path, recipe, tag string, opts []ElectionOption) (*Election, error) {
	e := &Election{recipe: recipe, retry: retry.Default()}
	s := electionSettings{Election: e, nodes: settings{noReentry: true}} // a hold on the path is never re-entered
	for _, o := range opts {
		if o != nil {
			o.applyElection(&s)
		}
	}
	if _, asked := cutRevocation(s.nodes.data); asked {
		return nil, fmt.Errorf("recipes: the id %q ends like a request to release; take another", s.nodes.data)
	}
	l, err := newLockInternals(c, path, s.nodes, tag)
	if err != nil {
		return nil, err
	}
	l.queue.WatchOwn().Windowed(l.key.path, "", seqqueue.MostMembers)
	e.l = l
	return e, nil
}

// Path is the path of the election.
func (e *Election) Path() string { return e.l.path }

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

// campaign is one place in line, and the term that comes of it.
func (e *Election) campaign(ctx context.Context, try bool, c *candidacy.Campaign) (*Term, error) {
	h, err := acquire(ctx, e.l.c, client.LockInfo{Recipe: e.recipe, Mode: ModeExclusive.String(), Path: e.l.path, Try: try}, candidate{e, c, try})
	if err != nil {
		return nil, err
	}
	e.leads(&ledTerm{h.ending, h.FencingToken()})
	return &Term{Hold: h, e: e}, nil
}

// leads notes a term, unless a later one is known that is not over. Only of two that are not
// over do the tokens tell the later one: they go back when an ensemble is restored.
func (e *Election) leads(t *ledTerm) {
	for old := e.newest.Load(); old == nil || old.err() != nil || old.token < t.token; old = e.newest.Load() {
		if e.newest.CompareAndSwap(old, t) {
			return
		}
	}
}

// Leading reports whether a campaign of this value leads now (Curator: hasLeadership). It
// looks at the clocks and asks no server, so it is false before another participant can
// lead. It is for goroutines that do not have the term, such as a health check. The answer
// may be out of date when it is acted upon. So a write that only the leader may make
// belongs into [Hold.Guard], or carries the token of the term.
func (e *Election) Leading() bool {
	t := e.newest.Load()
	return t != nil && t.err() == nil
}

func (e *Election) fail(op string, err error) error { return e.l.fail(op, err) }

// candidate is the protocol of one campaign.
type candidate struct {
	*Election

	decide *candidacy.Campaign
	try    bool
}

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
