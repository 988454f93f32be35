package zkserver

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/zkserver/pipe"
	"github.com/docent-go/docent/internal/zkserver/roster"
)

// Ensemble is several servers over one log: a leader that orders the writes, and
// followers that apply them, possibly late. Its members are numbered from 1;
// package zktest checks the numbers. All methods are safe for concurrent use. A
// method that changes something returns when the change is made. The consequences
// may come later: see [Ensemble.AwaitLeader].
type Ensemble struct {
	cfg   config
	start time.Time // ticks are counted from here
	wg    sync.WaitGroup

	// mu is the mutex of all members. It guards the rest.
	mu        sync.Mutex
	journal   *journal
	timetable *pipe.Timetable
	members   []*Member
	cut       map[[2]int]bool // from, to
	history   []committed
	term      int64   // epoch of the newest leader
	heir      *Member // the member that shall win the next election; nil for the best

	timer   *time.Timer
	timerAt time.Time // zero while no timer is set
	beatAt  time.Time // when followers tell the leader of signs of life; zero if there are none
	electAt time.Time // when members agree on a leader; zero if they cannot
	changed chan struct{}
	closed  bool
}

// MaxMembers is how many members an ensemble can have: the top byte of a session id
// is the number of its server.
const MaxMembers = 127

// NewEnsemble starts n servers, of which the last one leads. The caller must Close
// the ensemble.
func NewEnsemble(n int, c Config) *Ensemble {
	cfg := newConfig(c)
	cfg.roster = roster.New(n, firstEpoch)
	e := &Ensemble{
		cfg: cfg, start: time.Now(), journal: newJournal(cfg.LogSize),
		cut: map[[2]int]bool{}, changed: make(chan struct{}),
	}
	e.timetable = pipe.NewTimetable(e.start)
	for id := range n {
		e.members = append(e.members, newMember(e, id+1))
	}
	e.mu.Lock()
	e.decide()
	e.mu.Unlock()
	return e
}

// firstEpoch is the zxid with which an ensemble starts.
const firstEpoch = int64(1) << 32

// Close ends all members as [Server.Close] does, and returns when no goroutine of
// theirs is left. A second Close waits as the first does. The error is always nil.
func (e *Ensemble) Close() error {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		e.notify()
	}
	if e.timer != nil {
		e.timer.Stop()
	}
	e.mu.Unlock()
	e.wg.Wait()
	for _, m := range e.members {
		_ = m.server.Close() // always nil
	}
	return nil
}

// Members returns the members. Member 1 is the first.
func (e *Ensemble) Members() []*Member { return slices.Clone(e.members) }

// Client makes the links of the named client to all members, if they are missing. It
// returns the numbers of the members in the order in which the client shall try them.
func (e *Ensemble) Client(name string) (order []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.members {
		m.client(name)
		order = append(order, m.id)
	}
	rng := rand.New(rand.NewPCG(e.cfg.Seed, e.members[0].generator(name, 0, streamDial).Uint64()))
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// Leader returns the member that leads a quorum, or nil. It does not return a
// deposed leader that has not noticed yet.
func (e *Ensemble) Leader() *Member {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader()
}

func (e *Ensemble) leader() *Member {
	for _, m := range e.members {
		if m.role == roleLeading && m.hasQuorum() {
			return m
		}
	}
	return nil
}

// AwaitLeader waits until there is a leader with a quorum and returns it. If ctx
// ends before, the error is the cause of ctx. After Close it is [os.ErrClosed].
func (e *Ensemble) AwaitLeader(ctx context.Context) (*Member, error) {
	for {
		e.mu.Lock()
		m, changed, closed := e.leader(), e.changed, e.closed
		e.mu.Unlock()
		switch {
		case closed:
			return nil, os.ErrClosed
		case m != nil:
			return m, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// notify wakes the callers of AwaitLeader.
func (e *Ensemble) notify() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// majority returns how many members make a quorum.
func (e *Ensemble) majority() int { return len(e.members)/2 + 1 }

// Halt makes the member's process stand still, as SIGSTOP does: clients and members
// can connect and send, and hear nothing. Nothing that the member does by itself
// happens. A member that is down cannot be halted. Stop and Crash end a halt.
func (m *Member) Halt() {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	if !m.runs() {
		return
	}
	now := time.Now()
	for _, o := range m.e.members {
		if o != m {
			m.lose(o, now)
			o.lose(m, now)
		}
	}
	m.halted, m.suspended = true, true
	m.held |= pipe.HoldHalted
	for k := range m.links {
		k.hold(pipe.HoldHalted)
	}
	m.e.react()
}

// Continue undoes Halt. Everything that is overdue happens then.
func (m *Member) Continue() {
	m.e.mu.Lock()
	m.proceed()
	m.e.react()
	m.e.mu.Unlock()
	m.report()
}

// proceed lets a halted member go on. The mutex is held.
func (m *Member) proceed() {
	if !m.halted {
		return
	}
	m.halted = false
	m.held &^= pipe.HoldHalted
	for k := range m.links {
		k.release(pipe.HoldHalted)
	}
	if m.role == roleLeading {
		m.checkAt = time.Time{} // it counts its followers at its next tick
		m.suspended = false
		m.armNextExpiry()
	}
	m.e.deliverHeld()
}

// catchUp applies the history up to its nth transaction. No client is connected
// meanwhile.
func (m *Member) catchUp(n int) {
	if m.stale || m.applied > n {
		m.rebuild(n)
		return
	}
	for ; m.applied < n; m.applied++ {
		m.replay(m.e.history[m.applied])
	}
}

// rebuild makes the member's state from the first n transactions, and drops the
// state it had.
func (m *Member) rebuild(n int) {
	m.stale = false
	m.tree = newDataTree(m.watches, &m.cfg)
	m.prep = m.newPrep()
	clear(m.sessions)
	for m.applied = 0; m.applied < n; m.applied++ {
		m.replay(m.e.history[m.applied])
	}
}

// forgetTail loses the last n transactions of a member whose process has ended.
// Transactions that it has not applied are the last ones.
func (m *Member) forgetTail(n int) {
	kept := min(n, len(m.log))
	m.log = m.log[:len(m.log)-kept]
	if n -= kept; n > 0 {
		m.rebuild(min(max(m.applied-n, 0), len(m.e.history)))
	}
}

// cutHistory makes the history end where that of a new leader ends. Transactions
// that the new leader does not know are lost. That happens only if crashes have
// taken them from a majority.
func (m *Member) cutHistory() {
	e := m.e
	known := m.applied
	for _, entry := range m.log {
		if entry.r.committed {
			known++
		}
	}
	if known >= len(e.history) {
		return
	}
	e.history = e.history[:known:known]
	for _, o := range e.members {
		o.stale = o.stale || o.applied > known
	}
}
