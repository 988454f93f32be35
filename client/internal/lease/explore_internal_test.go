package lease

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/clock"
	"github.com/docent-go/docent/internal/explore"
	"github.com/docent-go/docent/internal/wire"
)

// What the explorer knows of time: quarters of a second. Ages beyond the longest make no difference.
const (
	quarter = time.Second / 4
	second  = 4
	timeout = 6 * time.Second
	shorter = timeout - timeout/4 // what another server grants
	longest = 9 * second
	lowest  = -2 * second
)

// A session timeout of 6 s, of which holds have 4.5 s after a proof of now. A proof is a
// second older than its write, or up to one heartbeat more.
var (
	played = Policy{SafetyMargin: time.Second, TickTime: time.Second, SchedulingSlack: time.Second / 2, ClockRateError: 1e-12}
	margin = int16(played.Terms(timeout).Margin / quarter)
	relay  = int16(played.Terms(timeout).Relay / quarter)
	epoch  = time.Unix(1000, 0)
)

// off is by how much other clocks show more than the monotonic one, since some moment.
type off struct{ true, boot, wall int16 }

// flight is a heartbeat that was sent.
type flight struct {
	stage    stage
	age      int16 // by the monotonic clock
	off      off
	patience int16
	behind   int16 // committed: how much older the sign of life is that the leader has
}

type stage int8

const (
	noFlight stage = iota
	sent
	committed
	broken // its connection is gone, and the shell has not told the machine
)

// claim is a hold.
type claim struct {
	state  claimState
	shared bool  // its node is that of the other claim too
	due    int16 // as in the machine, from now on
	told   int16 // the latest deadline that the holder was told, from now on
}

type claimState int8

const (
	unused claimState = iota
	held
	unreleased
	over // and was told, or has released
)

// leaseWorld is a lease, a client's clocks and connection, and the server's side of the session. All
// times are ages, or how long something is still to come.
type leaseWorld struct {
	proofSent, alive int16 // of the newest proof, by the monotonic clock
	off              off   // since alive
	short            bool  // a server has granted the shorter timeout
	heard            int16 // since the leader started its timer of the session, truly
	ended            bool  // by the server
	timer            int16 // due in
	armed            bool
	now              flight // on the present connection
	old              flight // on the one before
	awaited          int8   // 1: now, 2: old
	beaten           int16  // -1 without a heartbeat on this connection
	doubt            bool
	doubted          int16
	up               bool
	closed           bool // the client has ended the session
	claims           [2]claim
	rests            int8 // a deadline that was told may rest on: nothing, the shorter one, the longer one
	bounds                // of what may still happen
}

// terms are those that the client knows of.
func (w *leaseWorld) terms() Terms {
	if w.short {
		return played.Terms(shorter)
	}
	return played.Terms(timeout)
}

func (w *leaseWorld) life() int16 { return int16(w.terms().Life.Round(quarter) / quarter) }

// bounds are how often something may happen.
type bounds struct {
	freezes, sleeps, restores, steps, cuts, shortens, writes, claims, gone int8
}

// leaseModel bounds what may happen. bug is planted.
type leaseModel struct {
	large bool // the race detector makes a walk take ten times as long
	bounds
	fair bool // each heartbeat is answered before the shell gives it up, and timers are in time
	bug  string
}

type leaseMove int8

const (
	passes   leaseMove = iota
	sleeps             // the machine, for a second
	restores           // a snapshot of the machine, a second later: the wall clock alone shows it
	stepsOn            // the wall clock, by a second
	stepsBack
	fires      // the timer
	commits    // the server, with the newest sign of life
	commitsOld // the server, with one that is a heartbeat older
	writes     // somebody, and is answered at once
	answers
	saysGone // answers that the node of the first claim is gone
	givesUp  // the shell, on a heartbeat
	reports  // the shell, that a heartbeat's connection is gone
	reportsOld
	cuts
	connects
	connectsShort // to a server that grants the shorter timeout
	ends          // the server, the session
	claims0
	claims1
	claimsShared
	releases0
	releases1
)

var moveNames = []string{
	"time passes", "the machine sleeps", "the machine is restored", "the wall clock is set on", "the wall clock is set back", "the timer fires", "the server commits", "the server commits, and the leader has an older sign",
	"somebody writes", "the answer comes", "the answer says that a node is gone", "the answer is awaited no more", "a broken heartbeat ends", "an old heartbeat ends",
	"the connection is cut", "the connection stands", "the connection stands, with a shorter timeout", "the server ends the session", "0 holds", "1 holds", "1 holds on the node of 0", "0 releases", "1 releases",
}

func ago(age int16) time.Time { return epoch.Add(-time.Duration(age) * quarter) }

// reading is the lease's state now.
func (w *leaseWorld) reading(bug string) State {
	stamp := func(at time.Time, o off) clock.Stamp {
		wall := at.Add(time.Duration(o.wall) * quarter)
		return (&clock.Clock{Wall: func() time.Time { return wall }}).At(at, time.Duration(o.boot)*quarter)
	}
	granted, o := timeout, w.off
	if w.short {
		granted = shorter
	}
	switch bug {
	case "sleep does not count":
		o = off{}
	case "the wall clock does not count":
		o.wall = 0
	}
	proof := wire.Proof{Kind: wire.QuorumWrite, Sent: clock.Stamp{At: ago(w.proofSent)}, Alive: stamp(ago(w.alive), off{})}
	t := played.At(proof, granted, stamp(epoch, o))
	if bug == "no margin" {
		t.Left += t.Margin
	}
	return t
}

var names = []string{"a", "b"}

func (w *leaseWorld) node(i int) string {
	if w.claims[i].shared {
		return names[0]
	}
	return names[i]
}

// lease is the lease with its holdings, which the claims stand for.
func (p *leaseModel) lease(w *leaseWorld) (*Machine, [2]*Holding) {
	m := New(played, func(full []string) int { return len(full) })
	var all [2]*Holding
	for i := range w.claims {
		c := &w.claims[i]
		all[i] = &Holding{Full: []string{w.node(i)}, due: epoch.Add(time.Duration(c.due) * quarter)}
		switch c.state {
		case held:
			m.holdings = append(m.holdings, all[i])
		case unreleased:
			m.unreleased = append(m.unreleased, all[i])
		case unused, over:
		}
	}
	if p.bug != "a shorter timeout counts at once" {
		m.life = [...]time.Duration{0, played.Terms(shorter).Life, played.Terms(timeout).Life}[w.rests]
	}
	m.beats, m.awaited = 2, int(w.awaited)
	if w.beaten >= 0 {
		m.beaten = ago(w.beaten)
	}
	if w.doubt {
		m.Endanger(errPlayed, ago(w.doubted))
	}
	return m, all
}

// ageOrLongest is an age, or the longest where there is none.
func ageOrLongest(age int16) int16 {
	if age < 0 {
		return longest
	}
	return age
}

var errPlayed = errors.New("the connection is in doubt")

// keep takes over what the machine has become.
func (w *leaseWorld) keep(m *Machine, all [2]*Holding) {
	for i, h := range all {
		c := &w.claims[i]
		switch {
		case slices.Contains(m.holdings, h):
			c.state = held
		case slices.Contains(m.unreleased, h):
			c.state, c.due = unreleased, quarters(h.due.Sub(epoch))
		case c.state != unused:
			*c = claim{state: over}
		}
	}
	switch m.life {
	case 0:
		w.rests = 0
	case played.Terms(shorter).Life:
		w.rests = 1
	default:
		w.rests = 2
	}
	w.awaited = int8(min(m.awaited, 2))
	w.beaten = -1
	if !m.beaten.IsZero() {
		w.beaten = quarters(epoch.Sub(m.beaten))
	}
	w.doubt = m.Doubt() != nil
	if w.doubted = 0; w.doubt {
		w.doubted = quarters(epoch.Sub(m.doubted))
	}
}

func quarters(d time.Duration) int16 {
	return int16(max(lowest, min((d+quarter-1)/quarter, longest)))
}

// drift moves clocks against the monotonic one.
func (w *leaseWorld) drift(d off) {
	for _, o := range []*off{&w.off, &w.now.off, &w.old.off} {
		*o = off{o.true + d.true, o.boot + d.boot, o.wall + d.wall}
	}
	for _, f := range []*flight{&w.now, &w.old} {
		if f.stage == noFlight {
			*f = flight{}
		}
	}
	w.heard = min(w.heard+d.true, longest)
}

// pass lets time pass on all clocks.
func (w *leaseWorld) pass(d int16) {
	older := func(age *int16) { *age = min(*age+d, longest) }
	for _, age := range []*int16{&w.heard, &w.alive, &w.proofSent} {
		older(age)
	}
	for _, f := range []*flight{&w.now, &w.old} {
		if f.stage != noFlight {
			older(&f.age)
		}
	}
	if w.beaten >= 0 {
		older(&w.beaten)
	}
	if w.doubt {
		older(&w.doubted)
	}
	if w.armed {
		w.timer = max(w.timer-d, lowest)
	}
	for i := range w.claims {
		if c := &w.claims[i]; c.state == held || c.state == unreleased {
			c.due, c.told = max(c.due-d, lowest), max(c.told-d, lowest)
		}
	}
}

func (p *leaseModel) moves(w *leaseWorld, moves []leaseMove) []leaseMove {
	if w.closed {
		return moves
	}
	add := func(m leaseMove, may bool) {
		if may {
			moves = append(moves, m)
		}
	}
	overdue := w.armed && w.timer <= 0
	slow := w.now.stage != noFlight && w.now.age+1 >= w.now.patience
	add(fires, overdue)
	add(commits, w.now.stage == sent && w.up && !w.ended)
	add(commitsOld, w.now.stage == sent && w.up && !w.ended)
	add(writes, w.up && !w.ended && w.writes > 0)
	add(answers, w.now.stage == committed && w.up)
	add(saysGone, w.now.stage == sent && w.up && !w.ended && w.gone > 0 && w.claims[0].state == held)
	add(givesUp, w.now.stage != noFlight && w.now.stage != broken && w.now.age >= w.now.patience && !p.fair)
	add(reports, w.now.stage == broken)
	add(reportsOld, w.old.stage != noFlight)
	add(connects, !w.up && w.old.stage == noFlight && !w.ended)
	add(connectsShort, !w.up && w.old.stage == noFlight && !w.ended && w.shortens > 0)
	add(ends, !w.ended && w.heard >= w.life())
	add(cuts, w.up && w.cuts > 0)
	for i := range w.claims {
		add(releases0+leaseMove(i), w.claims[i].state == held || w.claims[i].state == unreleased)
	}
	may := w.bounds.claims > 0 && w.reading(p.bug).Left >= w.terms().Beat/2
	add(claims0, may && w.claims[0].state == unused)
	add(claims1, may && w.claims[1].state == unused)
	add(claimsShared, may && w.claims[1].state == unused && (w.claims[0].state == held || w.claims[0].state == unreleased))
	add(sleeps, w.sleeps > 0)
	add(restores, w.restores > 0)
	add(stepsOn, w.steps > 0)
	add(stepsBack, w.steps > 0)
	add(passes, !p.fair && (!overdue || w.freezes > 0) || p.fair && !overdue && !slow)
	return moves
}

func (p *leaseModel) apply(w *leaseWorld, move leaseMove) error {
	doubted, before := w.doubt, *w
	m, all := p.lease(w)
	t := w.reading(p.bug)
	arm := func() {
		if w.armed = !m.Idle(); w.armed {
			w.timer = quarters(m.Next(t))
		}
	}
	finish := func(number int, why error) { // as leaseKeeper.beat does
		if why != nil {
			m.Missed(number, why, epoch)
		}
		if p.bug == "any answer ends the wait" {
			number = m.awaited
		}
		m.Heard(number)
	}
	switch move {
	case passes:
		if w.armed && w.timer <= 0 && !p.fair {
			w.freezes--
		}
		if p.fair {
			w.pass(1)
		} else {
			w.pass(second)
		}
		return p.check(w, before)
	case sleeps:
		w.sleeps--
		w.drift(off{second, second, second})
		return p.check(w, before)
	case restores:
		w.restores--
		w.drift(off{true: second, wall: second})
		return p.check(w, before)
	case stepsOn:
		w.steps--
		w.drift(off{wall: second})
		return p.check(w, before)
	case stepsBack:
		w.steps--
		w.drift(off{wall: -second})
		return p.check(w, before)
	case ends:
		w.ended = true
		return p.check(w, before)
	case commits, commitsOld:
		w.now.stage, w.now.behind = committed, relay
		if move == commitsOld {
			w.now.behind += int16(w.terms().Beat / quarter)
		}
		w.heard = min(w.heard, w.now.age+w.now.off.true+w.now.behind)
		return p.check(w, before)
	case fires:
		ended := m.Expire(t)
		if p.fair && len(ended) > 0 {
			return errors.New("a hold ends although nothing went wrong")
		}
		if p.bug == "nodes go with the holds" {
			for _, h := range ended {
				h.due = epoch
			}
		}
		if m.Idle() {
			w.armed = false
			break
		}
		step := m.Look(t)
		if p.bug == "a session stays for ever" {
			step.End = false
		}
		switch since := min(before.proofSent, ageOrLongest(before.beaten)); {
		case !step.End && len(m.unreleased) > 0 && !t.Now.Before(m.Promised(t)):
			return errors.New("a holder that has not released keeps the session")
		case len(step.Remove) > 0 && t.Left <= 0:
			return errors.New("a node goes while the lease does not stand")
		case step.Beat != nil && len(m.holdings) == 0 && t.Left > 0:
			return errors.New("a heartbeat is sent for nobody")
		case step.Beat != nil && since == 0:
			return errors.New("a heartbeat comes at once behind another")
		case step.Beat != nil && (step.Beat.Number != m.awaited || step.Beat.Number <= 2):
			return errors.New("two heartbeats have one number")
		}
		if p.bug == "the session ends with the holds" && len(ended) > 0 {
			step.End = true
		}
		for i, h := range all {
			if p.bug == "nodes go that others have" && w.claims[i].state == unreleased && !slices.Contains(m.unreleased, h) {
				step.Remove = append(step.Remove, h.Full...)
			}
		}
		for i, h := range all {
			c := &w.claims[i]
			if (step.End || slices.Contains(step.Remove, h.Full[0])) && (c.state == unreleased || slices.Contains(ended, h)) && c.told > 0 {
				return errors.New("a node goes before the deadline that its holder was told")
			}
			if slices.Contains(step.Remove, h.Full[0]) && slices.Contains(m.holdings, h) {
				return errors.New("a node goes on which a hold relies")
			}
		}
		if step.End {
			*w = leaseWorld{closed: true}
			return nil
		}
		if t.Left > 0 && slices.ContainsFunc(m.unreleased, func(h *Holding) bool { return !h.due.After(epoch) }) {
			return errors.New("a node stays that nobody has released")
		}
		arm()
		if b := step.Beat; b != nil {
			if w.now.stage != noFlight {
				return errors.New("two heartbeats are awaited on one connection")
			}
			m.awaited = 1
			if !w.up {
				finish(1, errPlayed)
				arm()
				if m.Doubt() == nil || !m.doubted.Equal(epoch) {
					return errors.New("a heartbeat that was missed leaves no doubt")
				}
			} else {
				w.now = flight{stage: sent, patience: max(1, quarters(b.Patience))}
			}
		}
		if w.armed && w.timer <= 0 {
			return errors.New("the timer fires again at once")
		}
	case writes:
		w.writes--
		if w.heard = min(w.heard, relay); relay <= w.alive {
			w.alive, w.off, w.proofSent = relay, off{}, 0
		}
	case answers:
		if age := w.now.age + w.now.behind; age < w.alive {
			w.alive, w.off, w.proofSent = age, w.now.off, w.now.age
		}
		w.now = flight{}
		finish(1, nil)
	case saysGone:
		w.gone--
		w.now = flight{}
		m.Missing(w.node(0))
		finish(1, nil)
	case givesUp:
		w.now, w.up = flight{}, false // the shell drops the connection
		finish(1, errPlayed)
		if m.Doubt() == nil || !m.doubted.Equal(epoch) {
			return errors.New("a heartbeat that was missed leaves no doubt")
		}
	case reports:
		w.now = flight{}
		finish(1, errPlayed)
	case reportsOld:
		w.old = flight{}
		before, at := m.Doubt() != nil, m.doubted
		finish(2, errPlayed)
		if w.awaited != 2 && (before != (m.Doubt() != nil) || !at.Equal(m.doubted)) {
			return errors.New("an old heartbeat brings doubt on a newer connection")
		}
	case cuts:
		w.cuts--
		w.up = false
		if w.now.stage != noFlight {
			w.now.stage = broken
		}
		m.Endanger(errPlayed, epoch)
	case connects, connectsShort:
		if w.up = true; move == connectsShort { // the leader starts its timer again, for less
			w.shortens--
			w.short, w.heard = true, 0
		}
		w.old, w.now = w.now, flight{}
		if w.old.stage != noFlight && w.awaited == 1 {
			m.awaited = 2
		}
		if m.Up(); !m.Idle() {
			w.timer = 0
		}
		if len(m.holdings) == 0 && m.Doubt() != nil {
			return errors.New("a lease that nothing relies on stays in doubt")
		}
	case claims0, claims1, claimsShared:
		w.bounds.claims--
		i := min(int(move-claims0), 1)
		w.claims[i] = claim{state: held, shared: move == claimsShared}
		all[i].Full = []string{w.node(i)}
		if m.Add(all[i], t) && p.bug != "the timer is not set" {
			arm()
		}
		if m.Doubt() != nil && w.proofSent < w.doubted {
			return errors.New("a hold begins in doubt, and a newer proof is known")
		}
	case releases0, releases1:
		m.Remove(all[move-releases0])
		w.armed = w.armed && !m.Idle()
	}
	if p.bug == "any proof ends the doubt" && w.proofSent < before.proofSent+longest && move == fires {
		m.doubt = nil
	}
	w.keep(m, all)
	if doubted && !w.doubt && w.proofSent >= before.doubted && (move != connects && move != connectsShort || before.claims[0].state == held || before.claims[1].state == held) {
		return errors.New("the doubt ends without a newer proof")
	}
	return p.check(w, before)
}

// check compares what holders believe with what the server may do.
func (p *leaseModel) check(w *leaseWorld, before leaseWorld) error {
	t := w.reading(p.bug)
	for i := range w.claims {
		c := &w.claims[i]
		if before.claims[i].state > c.state {
			return errors.New("a hold that is over is valid again")
		}
		if c.state != held {
			continue
		}
		if t.Left > 0 { // a holder that asks now is told so, and when it must stop
			if w.ended || w.life()-w.heard < margin {
				return errors.New("a hold is valid when its session may soon end at the server")
			}
			c.told = max(c.told, quarters(t.Deadline().Sub(epoch)))
		}
		if !w.armed {
			return errors.New("no timer looks after a hold")
		}
		if left := w.life() - margin - w.alive; w.timer > max(second, lowest) || w.timer > max(left, 0) {
			return errors.New("the timer is late")
		}
	}
	return nil
}

func (p *leaseModel) machine() *explore.Machine[leaseWorld, leaseMove] {
	return &explore.Machine[leaseWorld, leaseMove]{
		Start: leaseWorld{
			up: true, beaten: -1, bounds: p.bounds,
		},
		Moves: p.moves,
		Apply: p.apply,
		Must:  func(leaseMove) bool { return false },
		Waits: func(*leaseWorld) string { return "" },
		Tell: func(w *leaseWorld, m leaseMove) string {
			return fmt.Sprintf("%s: alive %d%+v, heard %d, timer %d/%v, %v, doubt %v", moveNames[m], w.alive, w.off, w.heard, w.timer, w.armed, w.claims, w.doubt)
		},
	}
}

func leaseModels() map[string]*leaseModel {
	all := map[string]*leaseModel{
		"well":              {fair: true, bounds: bounds{writes: 1, claims: 2}},
		"a cut":             {bounds: bounds{cuts: 1, claims: 1}, large: true},
		"a shorter timeout": {bounds: bounds{cuts: 1, shortens: 1, claims: 1}, large: true},
		"sleep":             {bounds: bounds{sleeps: 1, freezes: 1, writes: 1, claims: 1}, large: true},
		"restored":          {bounds: bounds{restores: 1, freezes: 1, claims: 1}},
		"wall clock":        {bounds: bounds{steps: 2, claims: 1}, large: true},
		"two":               {bounds: bounds{writes: 1, claims: 2}},
		"gone":              {bounds: bounds{claims: 2, gone: 1}},
	}
	if os.Getenv("DOCENT_EXPLORE_LONG") != "" {
		all["a cut, a write"] = &leaseModel{bounds: bounds{cuts: 1, shortens: 1, writes: 1, claims: 1}}
		all["two, a cut"] = &leaseModel{bounds: bounds{cuts: 1, claims: 2}}
		all["cuts and freezes"] = &leaseModel{bounds: bounds{cuts: 2, freezes: 1, sleeps: 1, claims: 1}}
		all["all of it"] = &leaseModel{bounds: bounds{cuts: 1, freezes: 1, sleeps: 1, claims: 2, gone: 1}} // minutes
	}
	return all
}

// TestExploreLease walks all moves of a lease with holders, a connection, clocks and the server's
// timer of the session.
func TestExploreLease(t *testing.T) {
	t.Parallel()
	for name, p := range leaseModels() {
		if p.large && raced {
			continue // make explore walks it
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore.Whole(t, p.machine(), 60_000_000)
		})
	}
}

// Each planted bug is found.
func TestExploreLeaseFindsBugs(t *testing.T) {
	t.Parallel()
	for bug, of := range map[string]struct{ model, want string }{
		"no margin":                        {"a cut", "the timer is late"},
		"sleep does not count":             {"sleep", "may soon end"},
		"the wall clock does not count":    {"restored", "may soon end"},
		"a shorter timeout counts at once": {"a shorter timeout", "before the deadline"},
		"nodes go with the holds":          {"a cut", "before the deadline"},
		"the session ends with the holds":  {"a cut", "before the deadline"},
		"nodes go that others have":        {"two", "a node goes"},
		"any answer ends the wait":         {"a cut", "two heartbeats"},
		"the timer is not set":             {"well", "no timer"},
		"any proof ends the doubt":         {"a cut", "without a newer proof"},
		"a session stays for ever":         {"a cut", "keeps the session"},
	} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			p := *leaseModels()[of.model]
			p.bug = bug
			explore.Finds(t, p.machine(), 20_000_000, of.want)
		})
	}
}
