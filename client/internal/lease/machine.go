package lease

import (
	"slices"
	"time"
)

// Holding is what relies on a lease: the nodes of a hold, as the server knows them.
type Holding struct {
	Full []string
	Lost func(error) // is told once that the holding has ended, unless it was given up before

	Cause error     // why the holding ended; its owner sets it
	due   time.Time // if it ended with the lease: when its nodes may go
}

// Machine decides when holds end, when a heartbeat is due and which nodes it checks, and when
// nodes go that nobody has released. It reads no clock: each call that needs the time gets a
// [State], read at that moment. These are the states of a lease, by what relies on it:
//
//	idle        nothing does
//	held        there are holdings, and time is left
//	unreleased  holdings have ended with the lease, and their holders have not given them up
//
// and these are the moves:
//
//	idle        Add         held
//	held        Remove      held, or idle behind the last one
//	held        Expire      unreleased, when no time is left: all holdings end at once
//	held        Missing     held, or idle: the holdings that rely on a node that is gone have ended
//	unreleased  Remove      unreleased, or idle behind the last one
//	unreleased  Add         held as well, if a newer proof leaves time: those that ended stay ended
//	unreleased  Look        idle, when time is left again and what was promised to them has
//	                        passed: their nodes are removed, but for those that other holdings have
//	unreleased  Look        the session is to be ended, when what was promised has passed and no
//	                        proof has come
//
// The end of the session is no move: its owner tells the holdings, which stay until Remove.
//
// Beside that stand two facts. The lease is in doubt from [Machine.Endanger] on, until a proof is known
// that was sent later. And a heartbeat is awaited from [Machine.Look], until it is answered or missed,
// or until a new connection stands: there is never more than one.
type Machine struct {
	policy Policy
	fits   func(full []string) int // how many of these nodes one heartbeat can check, at least one

	holdings   []*Holding
	unreleased []*Holding
	life       time.Duration   // the longest that a deadline which a holder was told may rest on
	beats      int             // heartbeats so far
	awaited    int             // the number of the heartbeat whose answer may still come, 0 if none
	beaten     time.Time       // when the newest heartbeat was due on the present connection
	next       int             // the node that the next heartbeat checks first, counted over all holdings
	blind      map[string]bool // nodes that may not be read, and so are not checked
	doubt      error           // why the lease is in doubt, nil if it is not
	doubted    time.Time       // when doubt was set
}

// New returns a lease on which nothing relies. fits says how many of some nodes fit into one
// heartbeat, at least one.
func New(p Policy, fits func(full []string) int) *Machine {
	return &Machine{policy: p, fits: fits, blind: map[string]bool{}}
}

// Policy is what the lease assumes.
func (m *Machine) Policy() Policy { return m.policy }

// Idle reports whether there is nothing to look after.
func (m *Machine) Idle() bool { return len(m.holdings) == 0 && len(m.unreleased) == 0 }

// Holdings are those that have not ended.
func (m *Machine) Holdings() []*Holding { return slices.Clone(m.holdings) }

// Nodes are the nodes of all holdings that were not given up.
func (m *Machine) Nodes() (full []string) {
	for _, h := range slices.Concat(m.holdings, m.unreleased) {
		full = append(full, h.Full...)
	}
	return full
}

// Doubt is why the lease is in doubt, nil if it is not.
func (m *Machine) Doubt() error { return m.doubt }

// Endanger puts the lease in doubt.
func (m *Machine) Endanger(why error, now time.Time) { m.doubt, m.doubted = why, now }

// Relieve ends the doubt if there is a newer proof.
func (m *Machine) Relieve(t State) {
	if m.doubt != nil && t.Proof.Sent.At.After(m.doubted) {
		m.doubt = nil
	}
}

// Up is called when a server has accepted the session. A heartbeat on an earlier
// connection may still block there, but its answer is not awaited any more.
func (m *Machine) Up() {
	m.awaited, m.beaten = 0, time.Time{}
	if len(m.holdings) == 0 { // otherwise the next heartbeat relieves
		m.doubt = nil
	}
}

// Add makes h rely on the lease. It reports whether h is the first: then the timer is to be set.
func (m *Machine) Add(h *Holding, t State) (first bool) {
	m.Relieve(t)
	if m.Idle() {
		m.life = 0
	}
	m.life = max(m.life, t.Life) // a server may grant less later
	m.holdings = append(m.holdings, h)
	return len(m.holdings) == 1
}

// Remove ends h's reliance, whether it was lost or not.
func (m *Machine) Remove(h *Holding) {
	same := func(other *Holding) bool { return other == h }
	m.holdings = slices.DeleteFunc(m.holdings, same)
	m.unreleased = slices.DeleteFunc(m.unreleased, same)
	for _, path := range h.Full {
		delete(m.blind, path)
	}
}

// Promised is when the nodes of holds may go. It comes after State.Promised if another server has
// granted a shorter timeout since holders were told a deadline.
func (m *Machine) Promised(t State) time.Time { return t.Promised.Add(max(0, m.life-t.Life)) }

// Expire ends all holdings if no time is left, and returns them.
func (m *Machine) Expire(t State) (ended []*Holding) {
	if t.Left > 0 {
		return nil
	}
	ended, m.holdings = m.holdings, nil
	for _, h := range ended {
		h.due = m.Promised(t)
	}
	m.unreleased = append(m.unreleased, ended...)
	return ended
}

// Missing ends the holdings that rely on path, a node that does not exist any more, and returns them.
func (m *Machine) Missing(path string) (ended []*Holding) {
	ended = m.relying(path)
	for _, h := range ended {
		m.Remove(h)
	}
	return ended
}

// relying returns the holdings that rely on a node.
func (m *Machine) relying(path string) (found []*Holding) {
	for _, h := range m.holdings {
		if slices.Contains(h.Full, path) {
			found = append(found, h)
		}
	}
	return found
}

// Step is what is to be done now.
type Step struct {
	End    bool       // end the session
	Remove []string   // nodes that their holders did not release in time
	Beat   *Heartbeat // send this heartbeat
}

// Heartbeat is one that is due.
type Heartbeat struct {
	Number   int
	Nodes    []string // to check, in one transaction; the server stops at the first that is gone
	At       time.Time
	Patience time.Duration // how long its answer is awaited
}

// Look says what is to be done at t. [Machine.Expire] has been called for a moment just before t, and the lease is not idle.
func (m *Machine) Look(t State) (s Step) {
	m.Relieve(t)
	if len(m.unreleased) > 0 && !t.Now.Before(m.Promised(t)) {
		return Step{End: true}
	}
	s.Remove = m.inTheWay(t)
	s.Beat = m.nextBeat(t)
	return s
}

// inTheWay returns the nodes of unreleased holdings whose promise has run out, if the
// lease stands again at t, and forgets these holdings. It leaves out a node that another
// holding has, also if that one has ended and what was promised to it has not passed.
func (m *Machine) inTheWay(t State) (nodes []string) {
	if t.Left <= 0 {
		return nil
	}
	for _, h := range slices.Clone(m.unreleased) {
		if t.Now.Before(h.due) {
			continue
		}
		m.Remove(h)
		for _, path := range h.Full {
			if !slices.Contains(m.Nodes(), path) {
				nodes = append(nodes, path)
			}
		}
	}
	return nodes
}

// Next is how long after t something is due, by what is known at t. The lease is not idle.
func (m *Machine) Next(t State) time.Duration {
	d := ClockCheck
	if len(m.holdings) > 0 {
		d = min(d, t.Left)
	}
	if m.wantsBeat(t) {
		d = min(d, m.pause(t))
	}
	for _, h := range m.unreleased {
		if t.Left > 0 {
			d = min(d, h.due.Sub(t.Now))
		} else {
			d = min(d, m.Promised(t).Sub(t.Now))
		}
	}
	return d
}

// pause is how long to wait before the next heartbeat. It is a period after the
// newest proof or heartbeat, or half of the time that was left then. A heartbeat does
// not always move the deadline: the server may have had nothing to tell the leader
// since the heartbeat before. So there is a least pause.
func (m *Machine) pause(t State) time.Duration {
	last := t.Proof.Sent.At
	if m.beaten.After(last) {
		last = m.beaten
	}
	since := t.Now.Sub(last)
	return min(t.Beat, max((t.Left+since)/2, t.Beat/8)) - since
}

// wantsBeat reports whether heartbeats are needed. They are needed while something is
// held. They are also needed when the lease is over and a holder has not released
// yet, to save the session.
func (m *Machine) wantsBeat(t State) bool {
	return !m.policy.Pings && m.awaited == 0 && (len(m.holdings) > 0 || len(m.unreleased) > 0 && t.Left <= 0)
}

// nextBeat returns the next heartbeat if it is due. The heartbeat may wait for its
// answer for half of the time that is left. The other half is for another server,
// because this one may be cut off from its leader or from the client.
func (m *Machine) nextBeat(t State) *Heartbeat {
	if !m.wantsBeat(t) || m.pause(t) > 0 {
		return nil
	}
	patience := t.Left / 2
	if t.Left <= 0 {
		patience = m.Promised(t).Sub(t.Now)
	}
	m.beats++
	m.awaited, m.beaten = m.beats, t.Now
	return &Heartbeat{m.beats, m.turn(), t.Now, patience}
}

// Missed is called when a heartbeat got no answer, or an answer of no use. That says nothing
// about a connection that was made later.
func (m *Machine) Missed(number int, why error, now time.Time) {
	if m.awaited == number {
		m.Endanger(why, now)
	}
}

// Heard notes that a heartbeat is not awaited any more.
func (m *Machine) Heard(number int) {
	if m.awaited == number {
		m.awaited = 0
	}
}

// Unreadable notes that a node may not be read. It is checked behind the others in later heartbeats.
func (m *Machine) Unreadable(path string) (known bool) {
	known = m.blind[path]
	m.blind[path] = true
	return known
}

// Readable notes that nodes may be read.
func (m *Machine) Readable(full []string) {
	for _, path := range full {
		delete(m.blind, path)
	}
}

// turn returns the nodes that the next heartbeat checks, in one transaction of existence checks. A
// server ends it at the first check that fails. Nodes that could not be read
// before are left out, except for one, which is the last. If that one cannot be read
// now, the server stops there: it has checked all nodes before it, and has committed
// the transaction.
func (m *Machine) turn() (nodes []string) {
	holdings := m.holdings
	if len(holdings) == 0 {
		holdings = m.unreleased
	}
	var all []string
	for _, h := range holdings {
		all = append(all, h.Full...)
	}
	next := make([]string, min(len(all), checksPerBeat))
	for i := range next {
		next[i] = all[(m.next+i)%len(all)]
	}
	n := m.fits(next)
	var blind []string
	for _, path := range next[:n] {
		if m.blind[path] {
			blind = append(blind, path)
		} else {
			nodes = append(nodes, path)
		}
	}
	m.next = (m.next + n) % len(all)
	return append(nodes, blind[:min(1, len(blind))]...)
}

// checksPerBeat bounds the nodes that one heartbeat checks; with more nodes they take
// turns.
const checksPerBeat = 64

// ClockCheck is the longest time between two comparisons of the clocks while
// something is held. Timers do not run while the machine is suspended, so a timer
// alone would come late.
const ClockCheck = time.Second
