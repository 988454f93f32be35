package zktest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/zkserver"
)

// Ensemble is several servers over one log: a leader that orders the writes, and
// followers that apply them, possibly late. Make one with [NewEnsemble] in a test or
// with [StartEnsemble] elsewhere. Its members are numbered from 1; a method that is
// given the number of no member panics. All methods are safe for concurrent use. A
// method that changes something returns when the change is made. The consequences
// may come later: see [Ensemble.AwaitLeader].
type Ensemble struct {
	engine  *zkserver.Ensemble
	members []*Member

	mu    sync.Mutex // guards links
	links map[string]*EnsembleLink
}

// EnsembleLink is the network between one client and an [Ensemble]: a [ClientLink]
// to each member. Its dial methods pick the member by the host part of the address.
// Its other methods disturb the way to all members; [EnsembleLink.To] returns the
// link to one. It is safe for concurrent use.
type EnsembleLink struct {
	ensemble *Ensemble
	name     string
	servers  []string
}

// StartEnsemble starts n servers, of which the last one leads. The caller must Close
// the ensemble. The error reports options that contradict each other, a size below
// one, or an address that cannot be listened on. After an error nothing runs.
// [WithListen] makes every member listen, so its address must leave the port open.
func StartEnsemble(n int, opts ...Option) (*Ensemble, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > zkserver.MaxMembers {
		return nil, fmt.Errorf("zktest: an ensemble has 1 to %d servers, not %d", zkserver.MaxMembers, n)
	}
	e := &Ensemble{
		engine: zkserver.NewEnsemble(n, cfg.Config), links: map[string]*EnsembleLink{},
	}
	for _, m := range e.engine.Members() {
		e.members = append(e.members, &Member{server: newServer(m.Server(), cfg.fatal), engine: m, ensemble: e})
	}
	if cfg.listen == "" {
		return e, nil
	}
	for _, m := range e.members {
		if _, err := m.Listen(cfg.listen); err != nil {
			_ = e.Close() // always nil
			return nil, err
		}
	}
	return e, nil
}

// Close ends all members as [Server.Close] does, and returns when no goroutine of
// theirs is left. A second Close waits as the first does. The error is always nil.
func (e *Ensemble) Close() error { return e.engine.Close() }

// Seed returns the seed that all random draws of the members come from.
func (e *Ensemble) Seed() uint64 { return e.members[0].Seed() }

// Size returns the number of members.
func (e *Ensemble) Size() int { return len(e.members) }

// Server returns member i. Members are numbered from 1 to [Ensemble.Size]; Server
// panics for any other number.
func (e *Ensemble) Server(i int) *Member {
	if i < 1 || i > len(e.members) {
		panic(fmt.Sprintf("zktest: the ensemble has no member %d: its members are numbered from 1 to %d", i, len(e.members)))
	}
	return e.members[i-1]
}

// Client returns the link of the named client. The first call with a name makes the
// link. See [ClientLink] for what depends on the name.
func (e *Ensemble) Client(name string) *EnsembleLink {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.links[name]
	if l == nil {
		l = &EnsembleLink{ensemble: e, name: name}
		for _, i := range e.engine.Client(name) {
			l.servers = append(l.servers, fmt.Sprintf("127.0.0.%d:2181", i))
		}
		e.links[name] = l
	}
	return l
}

// Leader returns the member that leads a quorum, or nil. It does not return a
// deposed leader that has not noticed yet.
func (e *Ensemble) Leader() *Member { return e.member(e.engine.Leader()) }

// member returns the member that wraps one of the engine's, nil for nil.
func (e *Ensemble) member(m *zkserver.Member) *Member {
	if m == nil {
		return nil
	}
	return e.members[m.ID()-1]
}

// AwaitLeader waits until there is a leader with a quorum and returns it. If ctx
// ends before, the error is the cause of ctx. After Close it is [os.ErrClosed].
func (e *Ensemble) AwaitLeader(ctx context.Context) (*Member, error) {
	m, err := e.engine.AwaitLeader(ctx)
	return e.member(m), err
}

// ChangeLeader makes member i the leader of a new epoch, as when the old leader has
// been restarted. Every member that can talk to member i drops its clients, and
// serves again after the election time. Writes that are still in the log are applied
// then. It fails, and nothing changes, if the member is down, is cut off from a
// quorum, or lacks what another member has logged.
func (e *Ensemble) ChangeLeader(i int) error { return e.Server(i).engine.ChangeLeader() }

// Cut stops all traffic between members i and j; clients reach both. If one of them
// leads the other, the follower keeps answering pings, and answers reads from its
// old state. When it has heard nothing for [WithSyncLimit] ticks, it drops its
// clients and turns new ones away. A leader that a cut leaves without a quorum
// commits nothing more. It drops its clients at the end of the tick in which its
// followers have been silent for as long.
func (e *Ensemble) Cut(i, j int) { e.engine.Cut(e.Server(i).ID(), e.Server(j).ID()) }

// CutOneWay holds what member from sends to member to, and nothing else.
//
// If from follows to, it hears its leader's commits and pings, but its clients'
// writes and signs of life wait, and their sessions expire. When the leader has had
// no answer for [WithSyncLimit] ticks it drops the follower.
//
// If from leads to, the leader goes on taking the follower's writes, and the follower
// hears no answer. The follower gives up as after [Ensemble.Cut].
func (e *Ensemble) CutOneWay(from, to int) {
	e.engine.CutOneWay(e.Server(from).ID(), e.Server(to).ID())
}

// Isolate cuts member i off from all other members; see [Ensemble.Cut].
func (e *Ensemble) Isolate(i int) { e.engine.Isolate(e.Server(i).ID()) }

// Heal mends all cuts. A member that the others have not given up yet gets what was
// held back and goes on. Every other member needs the election time to find a leader.
func (e *Ensemble) Heal() { e.engine.Heal() }

// SlowLog sets the time that every write spends in the log of the leader, whichever
// member that is, before it is committed. Zero makes writes immediate again.
func (e *Ensemble) SlowLog(d time.Duration) {
	for _, m := range e.members {
		m.SlowLog(d)
	}
}

// OnRequest calls f for every request to any member; see [Server.OnRequest].
func (e *Ensemble) OnRequest(f func(Request)) { e.members[0].OnRequest(f) }

// OnCommit calls f for every transaction from now on that makes or removes nodes,
// when the leader commits it. The transaction is decided then, but followers may not
// show it yet, and perhaps no client has been told. f is called as
// [Server.OnRequest] says.
func (e *Ensemble) OnCommit(f func(Commit)) { e.members[0].OnCommit(f) }

// Log returns the most recent requests to all members; see [Server.Log].
func (e *Ensemble) Log() []Request { return e.members[0].Log() }

// dump describes what a test has left on the members.
func (e *Ensemble) dump() string {
	var b strings.Builder
	for _, m := range e.members {
		fmt.Fprintf(&b, "%s: %v, left behind:\n%s", m.Host(), m.Role(), m.Dump())
	}
	return b.String()
}
