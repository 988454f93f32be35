package zkserver

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"
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
	timetable *timetable
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
	e := &Ensemble{
		cfg: cfg, start: time.Now(), journal: newJournal(cfg.LogSize),
		cut: map[[2]int]bool{}, changed: make(chan struct{}),
	}
	e.timetable = newTimetable(e.start)
	for id := range n {
		e.members = append(e.members, newMember(e, id+1))
	}
	e.mu.Lock()
	e.decide()
	e.mu.Unlock()
	return e
}

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
