package recipes

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/client"
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

// Leading reports whether a campaign of this value leads now (Curator: hasLeadership). It
// looks at the clocks and asks no server, so it is false before another participant can
// lead. It is for goroutines that do not have the term, such as a health check. The answer
// may be out of date when it is acted upon. So a write that only the leader may make
// belongs into [Hold.Guard], or carries the token of the term.
func (e *Election) Leading() bool {
	t := e.newest.Load()
	return t != nil && t.err() == nil
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

func (e *Election) fail(op string, err error) error { return e.l.fail(op, err) }

// ownSessions are the sessions in which an election has campaigned of late. The older
// ones are forgotten: the servers have deleted their nodes long since.
type ownSessions struct {
	mu  sync.Mutex
	all []*client.Session
}

const rememberedSessions = 4

func (o *ownSessions) add(s *client.Session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.ContainsFunc(o.all, func(known *client.Session) bool { return known.ID() == s.ID() }) {
		return
	}
	o.all = append(o.all, s)
	o.all = slices.Delete(o.all, 0, max(0, len(o.all)-rememberedSessions))
}

// timeout is that of the newest session, 0 before the first campaign.
func (o *ownSessions) timeout() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) == 0 {
		return 0
	}
	return o.all[len(o.all)-1].Timeout()
}

// lost reports whether the session with that id is one of these and is over.
func (o *ownSessions) lost(id int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.all, func(s *client.Session) bool { return s.ID() == id && s.Err() != nil })
}
