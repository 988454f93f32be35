package zktest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// Ensemble is several servers over one log: a leader that orders the writes,
// and followers that apply them, possibly late. Make one with [NewEnsemble] in
// a test or with [StartEnsemble] elsewhere. Its members are numbered from 1;
// methods that take a number panic when there is no such member. All methods
// are safe for concurrent use. Those that change something return when the
// change is made, not when it has had its consequences: see
// [Ensemble.AwaitLeader].
type Ensemble struct {
	cfg   config
	start time.Time // ticks are counted from here
	wg    sync.WaitGroup

	// mu is the mutex of all members. It guards the rest.
	mu        sync.Mutex
	journal   *journal
	timetable *timetable
	members   []*Member
	links     map[string]*EnsembleLink
	cut       map[[2]int]bool // from, to
	history   []committed
	term      int64   // epoch of the newest leader
	heir      *Member // who is to win the next election; nil for the best

	timer   *time.Timer
	timerAt time.Time // zero while none is set
	beatAt  time.Time // when followers tell the leader of signs of life; zero: nothing to tell
	electAt time.Time // when members agree on a leader; zero: they cannot
	changed chan struct{}
	closed  bool
}

// StartEnsemble starts n servers, of which the last one leads. The caller must
// Close the ensemble. An error reports options that contradict each other, a
// size below one, or an address that cannot be listened on; nothing runs then.
// [WithListen] makes every member listen, so it must leave the port open.
func StartEnsemble(n int, opts ...Option) (*Ensemble, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > maxMembers {
		return nil, fmt.Errorf("zktest: an ensemble of %d servers", n)
	}
	e := &Ensemble{
		cfg: cfg, start: time.Now(), journal: newJournal(cfg.logSize),
		links: map[string]*EnsembleLink{}, cut: map[[2]int]bool{}, changed: make(chan struct{}),
	}
	e.timetable = newTimetable(e.start)
	for id := range n {
		e.members = append(e.members, newMember(e, id+1))
	}
	e.mu.Lock()
	e.decide()
	e.mu.Unlock()
	if cfg.listen == "" {
		return e, nil
	}
	for _, m := range e.members {
		if _, err := m.Listen(cfg.listen); err != nil {
			_ = e.Close() // nothing has been started that could fail to end
			return nil, err
		}
	}
	return e, nil
}

// maxMembers is what fits a session id, whose top byte is the server's number.
const maxMembers = 127

// NewEnsemble starts n servers that are closed when the test ends. When the
// test fails, the seed and the last requests are printed. Inside a synctest
// bubble call it with the bubble's own t.
func NewEnsemble(t testing.TB, n int, opts ...Option) *Ensemble {
	t.Helper()
	e, err := StartEnsemble(n, testOptions(t, opts)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.Close() // always nil
		if !t.Failed() {
			return
		}
		t.Log(e.members[0].requestReport())
		for _, m := range e.members {
			t.Logf("%s: %v, left behind:\n%s", m.Host(), m.Role(), m.Dump())
		}
	})
	return e
}

// Close ends all members as [Server.Close] does, and returns when no goroutine
// of theirs is left. A second Close waits as the first does.
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

// Seed returns the seed that all random draws of the members come from.
func (e *Ensemble) Seed() uint64 { return e.cfg.seed }

// Size returns the number of members.
func (e *Ensemble) Size() int { return len(e.members) }

// Server returns member i, counted from 1.
func (e *Ensemble) Server(i int) *Member {
	e.mustHave(i)
	return e.members[i-1]
}

// mustHave panics unless the ensemble has members of those numbers.
func (e *Ensemble) mustHave(numbers ...int) {
	for _, i := range numbers {
		if i < 1 || i > len(e.members) {
			panic(fmt.Sprintf("zktest: the ensemble has no member %d: its members are numbered from 1 to %d", i, len(e.members)))
		}
	}
}

// Leader returns the member that leads a quorum, or nil. A deposed leader that
// has not noticed yet is not returned.
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

// AwaitLeader waits until there is a leader with a quorum and returns it. It
// returns ctx's error if ctx ends before, and [os.ErrClosed] when the ensemble
// is closed.
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

// notify wakes those who wait for a leader.
func (e *Ensemble) notify() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// OnRequest calls f for every request to any member; see [Server.OnRequest].
func (e *Ensemble) OnRequest(f func(Request)) { e.members[0].OnRequest(f) }

// Log returns the most recent requests to all members; see [Server.Log].
func (e *Ensemble) Log() []Request { return e.members[0].Log() }

// SlowLog sets the time that every write spends in the leader's log before it
// is committed, whoever leads; zero makes writes immediate again.
func (e *Ensemble) SlowLog(d time.Duration) {
	for _, m := range e.members {
		m.SlowLog(d)
	}
}

// majority is how many members make a quorum.
func (e *Ensemble) majority() int { return len(e.members)/2 + 1 }
