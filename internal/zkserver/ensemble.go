package zkserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/zkserver/pipe"
	"github.com/docent-go/docent/internal/zkserver/roster"
	"github.com/docent-go/docent/internal/zoodefs"
)

// MaxMembers is how many members an ensemble can have: the top byte of a session id
// is the number of its server.
const MaxMembers = 127

// NewEnsemble starts n servers, of which the last one leads. The caller must Close
// the ensemble.
func NewEnsemble(n int, c Config) *Ensemble {
	cfg := newConfig(c)
	cfg.roster = roster.New(n, (cfg.Zxid>>32+1)<<32)
	e := &Ensemble{
		cfg: cfg, start: time.Now(), journal: newJournal(cfg.LogSize),
		cut: map[[2]int]bool{}, changed: make(chan struct{}),
	}
	e.timetable, e.term = pipe.NewTimetable(e.start), cfg.Zxid>>32
	for id := range n {
		e.members = append(e.members, newMember(e, id+1))
	}
	e.mu.Lock()
	e.decide()
	e.mu.Unlock()
	return e
}

func newMember(e *Ensemble, id int) *Member {
	m := &Member{server: newServer(e.cfg), e: e, id: id, touched: map[int64]time.Duration{}}
	s := m.server
	s.member, s.mu, s.journal, s.epoch = m, &e.mu, e.journal, e.start
	s.timetable = e.timetable
	s.rng = s.generator("", 0, streamServer)
	s.nextSession = firstSessionID(byte(id), s.wall())
	s.suspended = true
	m.alone = e.start
	return m
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

// Cut stops all traffic between members i and j. Clients reach both.
func (e *Ensemble) Cut(i, j int) {
	e.cutWays(func(from, to int) bool { return from == i && to == j || from == j && to == i })
}

// CutOneWay holds what member from sends to member to, and nothing else.
func (e *Ensemble) CutOneWay(from, to int) {
	e.cutWays(func(a, b int) bool { return a == from && b == to })
}

// Isolate cuts member i off from all other members.
func (e *Ensemble) Isolate(i int) {
	e.cutWays(func(from, to int) bool { return from == i || to == i })
}

func (e *Ensemble) cutWays(match func(from, to int) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for _, from := range e.members {
		for _, to := range e.members {
			if from != to && match(from.id, to.id) && !e.cut[[2]int{from.id, to.id}] {
				from.lose(to, now)
				e.cut[[2]int{from.id, to.id}] = true
			}
		}
	}
	e.react()
}

// Heal mends all cuts. A member that the others have not given up yet gets what was
// held back and goes on.
func (e *Ensemble) Heal() {
	e.mu.Lock()
	clear(e.cut)
	e.deliverHeld()
	e.react()
	e.mu.Unlock()
	e.report()
}

// Stop ends the member's process: its connections are closed, dials are refused,
// and the members that it can talk to notice at once. What it has logged is there
// when Resume starts it again. [QuirkCloseOnStop] makes Stop end the sessions of
// its clients first.
func (m *Member) Stop() {
	m.e.mu.Lock()
	if m.role != roleDown {
		m.proceed()
		m.closeAttached()
	}
	m.e.mu.Unlock()
	m.stop(0)
}

// Crash ends the process as Stop does, and the member loses the last n transactions
// that it has logged, applied ones too.
func (m *Member) Crash(n int) { m.stop(n) }

func (m *Member) stop(lose int) {
	m.e.mu.Lock()
	if m.role != roleDown {
		m.proceed()
		m.leave()
		m.role, m.stopped = roleDown, true
	}
	m.forgetTail(lose)
	m.e.react()
	m.e.mu.Unlock()
	m.closePort()
	m.report()
}

// Resume starts the member again after Stop or Crash. The member looks for a
// leader.
func (m *Member) Resume() {
	m.e.mu.Lock()
	if m.role == roleDown && !m.closed {
		m.role, m.stopped, m.alone = roleLooking, false, time.Now()
		m.networkChanged()
		for _, f := range m.e.members {
			// A cut may have kept a follower from noticing the end of the process.
			// It sees now that its connection was to the old process.
			if f.role == roleFollowing && f.lead == m && f.linked(m) {
				f.leave()
			}
		}
	}
	m.e.react()
	m.e.mu.Unlock()
	m.openPort()
	m.report()
}

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

// Lag makes the member, while it follows, apply every commit d after it hears of
// it. Zero makes it follow at once.
func (m *Member) Lag(d time.Duration) {
	m.e.mu.Lock()
	m.lag = d
	m.e.mu.Unlock()
}

// HoldCommits makes the member apply no commit until ReleaseCommits.
func (m *Member) HoldCommits() {
	m.e.mu.Lock()
	m.holding = true
	m.e.mu.Unlock()
}

// ReleaseCommits undoes HoldCommits.
func (m *Member) ReleaseCommits() {
	m.e.mu.Lock()
	m.holding = false
	m.e.react()
	m.e.mu.Unlock()
	m.report()
}

// ReleaseLog undoes [Server.HoldLog].
func (m *Member) ReleaseLog() {
	m.e.mu.Lock()
	m.logHeld = false
	m.e.react()
	m.e.mu.Unlock()
	m.report()
}

var errCannotLead = errors.New("zktest: the member cannot lead now")

// ChangeLeader makes the member the leader of a new epoch, as when the old leader
// has been restarted. Every member that can talk to the new leader drops its
// clients, and serves again after the election time. If the member cannot lead,
// an error says why and nothing has changed.
func (m *Member) ChangeLeader() error {
	w, e := m, m.e
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, m := range e.members {
		if m.runs() && m.linked(w) && !newer(m.rank(), w.rank()) {
			n++
		}
	}
	if !w.runs() || n < e.majority() {
		return fmt.Errorf("%w: %s is %v, %d of %d members would follow it", errCannotLead, w.Host(), w.role, n, len(e.members))
	}
	for _, m := range e.members {
		if m.runs() && m.linked(w) && m.role != roleLooking {
			m.leave()
		}
	}
	e.heir = w
	e.react()
	return nil
}

// DropLog loses the writes that the leader has logged and not committed, on all
// members that follow it, and closes the connections that sent them. It returns how
// many requests were lost; on a member that does not lead, that is none.
func (m *Member) DropLog() int {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	lost := m.proposals
	m.proposals = nil
	m.prep.forget()
	doomed := map[*request]bool{}
	for _, p := range lost {
		doomed[p.r] = true
		switch ses := m.sessions[p.r.session]; {
		case p.r.op == zoodefs.OpConnect:
			delete(m.sessions, p.r.session)
		case p.r.op == zoodefs.OpCloseSession && ses != nil:
			ses.closing = false
		}
		if p.r.c != nil {
			p.r.c.close()
		}
	}
	for _, f := range m.followers() {
		f.discard(doomed)
	}
	m.armNextExpiry()
	return len(lost)
}

// discard removes requests from a follower's log and from the messages that a cut
// holds.
func (m *Member) discard(doomed map[*request]bool) {
	var log []entry
	for _, e := range m.log {
		if !doomed[e.r] {
			log = append(log, e)
		}
	}
	var inbox []*request
	for _, r := range m.inbox {
		if !doomed[r] {
			inbox = append(inbox, r)
		}
	}
	m.log, m.inbox = log, inbox
}

// SetCounter presets a counter on all members; see [Server.SetCounter]. Here it is
// a write, which takes a zxid and its place in the log.
func (m *Member) SetCounter(path string, n int32) zoodefs.Code {
	return m.preset(path, func(st *storedStat) { st.cversion = n })
}

// SetVersion presets a version on all members; see [Member.SetCounter].
func (m *Member) SetVersion(path string, n int32) zoodefs.Code {
	return m.preset(path, func(st *storedStat) { st.version = n })
}

func (m *Member) preset(path string, set func(*storedStat)) zoodefs.Code {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	a := m.authority()
	if a == nil {
		return zoodefs.CodeConnectionLoss
	}
	rec := a.prep.record(path)
	if rec == nil {
		return zoodefs.CodeNoNode
	}
	r := &request{s: a, op: opPreset, path: path, internal: true, at: time.Now()}
	r.txn = a.prep.begin(r)
	r.txn.path, r.txn.preset = path, set
	rec = rec.duplicate(r.txn.zxid)
	set(rec.stat)
	a.prep.add(rec)
	a.member.propose(r)
	m.e.react()
	return zoodefs.CodeOK
}

// SetZxid makes the next transaction of the ensemble take the number after zxid;
// see [Server.SetZxid]. The code is [zoodefs.CodeConnectionLoss] when the member does not
// reach a leader.
func (m *Member) SetZxid(zxid int64) (last int64, code zoodefs.Code) {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	a := m.authority()
	if a == nil {
		return 0, zoodefs.CodeConnectionLoss
	}
	last = a.prep.zxid
	if zxid < last {
		return last, zoodefs.CodeBadArguments
	}
	a.prep.zxid = zxid
	return last, zoodefs.CodeOK
}

// Close stops the member for good; [Ensemble.Close] does so too.
func (m *Member) Close() error {
	m.Stop()
	return m.server.Close()
}
