package seqqueue

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/explore"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// This file has a chain with its members, and all that can happen to them, as a machine
// for package explore. A state is a flat value. To make a move, the state is loaded into
// real members of a real chain, the product's functions run, and the state is read back.
// explore_internal_test.go has what must be true in each state.

const (
	mostMembers  = 4
	mostForeign  = 2
	foreign0     = mostMembers // the first id of a foreign contender's node
	read0        = mostMembers + mostForeign
	mostNodes    = read0 + mostMembers // with the read node of each member's downgrade
	mostNumbers  = 12
	mostGuards   = 3
	onlyStranger = mostNodes // an id that no node has, so that a list is not empty
)

// nodes are ids of nodes: of members, then of foreign contenders, then read nodes.
type nodes uint16

func node(id int) nodes         { return 1 << id }
func (s nodes) has(id int) bool { return s&node(id) != 0 }

// phase is where the goroutine of a member is.
type phase uint8

const (
	idle     phase = iota
	creating       // the create was sent
	created        // the server has made the node, and the answer is under way
	told           // made has read the answer, and Join has not returned
	running        // it is about to look at its state
	parked         // it waits in the process
	listing        // a list was sent
	answered       // the server has answered the list
	watching       // it waits for the end of the nearest contender ahead that blocks
	holding        // it believes to hold
	lostHold       // its hold was lost, and it has not released yet
	leaving        // leave was called, and the delete is sent
	done           // quit was called
)

// The bits of a member.
const (
	isBroken  uint16 = 1 << iota
	isNamed          // it knows its node
	isMember         // the chain has it by the name of its node
	isParked         // woken is not nil
	isWoken          // and has a token
	isEvicted        // an operator has deleted its node
	knowsThat        // and its watch on the node has fired
	wantsList        // that was sent with the create
	gaveUp           // before Join has returned
)

// reading is how far the downgrade of a write hold is.
type reading uint8

const (
	noRead reading = iota
	readAsked
	readHeld
	readOver
)

// member is all that there is to say of one member.
type member struct {
	phase           phase
	state           uint8
	session         uint8
	reading         reading
	bits            uint16
	list            nodes // that came with the create, or that follow is to read
	front           int8
	guard           int8
	nearest, second int8
	blockers        uint8
	number, life    uint8 // of its node at the server
	told, toldLife  uint8 // of the node that the member knows
	_               uint8
}

func (m *member) is(b uint16) bool { return m.bits&b != 0 }

func (m *member) set(b uint16, on bool) {
	if m.bits &^= b; on {
		m.bits |= b
	}
}

// foreign is a contender of another client.
type foreign struct{ came, gone bool }

// world is a state.
type world struct {
	m       [mostMembers]member
	f       [mostForeign]foreign
	number  [mostForeign]uint8
	stands  nodes // at the server
	dying   nodes // whose delete was sent
	next    uint8 // number
	life    uint8 // of the directory
	tail    int8
	guard   int8
	guards  uint8 // made so far
	fired   uint8 // guards, as the client knows
	lost    uint8 // guards of the first session, when the client has the next one
	on      [mostGuards]uint8
	of      [mostGuards]uint8 // the life of the directory in which it was set
	conn    uint8
	missed  bool
	over    bool // the first session, as the client knows
	expired bool // the first session, as the server knows
	used    may
}

// may is how often may happen what nobody has to do.
type may [chances]uint8

const (
	giveUp = iota
	evict
	cut
	anew
	forget
	forgetAll
	lose
	downgrade
	endSession
	arm
	chances
)

// kind is what happens in a move.
type kind uint8

const (
	sends kind = iota
	makes
	snapsWithCreate
	tells
	joins
	looks
	wakes
	snaps
	reads
	nearestEnds
	secondEnds
	releases
	deletes
	quits
	learns
	isToldGone
	readMade
	readReleases
	strangerLeaves
	fires
	fails
	expires
	// Nobody has to make those that follow.
	strangerComes
	givesUp
	isEvictedBy
	isCut
	isAnew
	looksLate
	forgetsAll
	isLost
	downgrades
	sessionEnds
	arms
)

var sentences = [...]string{
	sends:           "%s sends its create",
	makes:           "the server makes the node of %s",
	snapsWithCreate: "the server answers the list that %s has sent with its create",
	tells:           "the answer of the create of %s is read (made)",
	joins:           "Join of %s returns (identify)",
	looks:           "%s looks at its state",
	wakes:           "%s is woken",
	snaps:           "the server answers the list of %s",
	reads:           "%s reads its list",
	nearestEnds:     "%s is told that the nearest is gone",
	secondEnds:      "%s is told that the second nearest is gone",
	releases:        "%s releases (leave)",
	deletes:         "the node of %s is deleted at the server",
	quits:           "%s has deleted its node (quit)",
	learns:          "the watch of %s on its own node fires",
	isToldGone:      "%s is told that its node was deleted",
	readMade:        "the read node of the downgrade of %s is made",
	readReleases:    "%s releases the read hold of its downgrade",
	strangerLeaves:  "%s leaves",
	fires:           "the guard fires",
	fails:           "%s fails, as its session is over",
	expires:         "the server ends the first session",
	strangerComes:   "%s comes",
	givesUp:         "%s gives up (leave)",
	isEvictedBy:     "an operator deletes the node of %s",
	isCut:           "the connection is lost",
	isAnew:          "the directory is deleted and made anew",
	looksLate:       "%s looks at its state, and its own node was not seen for long",
	forgetsAll:      "all that wait have to list (forgetAll)",
	isLost:          "%s loses its hold (breakOff)",
	downgrades:      "%s asks for the read node of a downgrade (breakOff)",
	sessionEnds:     "the first session is over for the client",
	arms:            "a new guard is set",
}

// move is one step of a schedule.
type move struct {
	kind kind
	id   uint8
}

// cast is who takes part, and what may happen.
type cast struct {
	modes   string // of members, R or W
	foreign string // of foreign contenders
	mutex   bool   // all are W
	may     may
	plant   plant
	// users leaves I1 to I5 out: only what a user may notice counts.
	users bool
}

// sessions are two sessions of a client, one after the other.
type sessions [2]*client.Session

func newSessions(t *testing.T) (s sessions) {
	t.Helper()
	srv := zktest.NewServer(t)
	for i := range s {
		c := testrig.Connect(t.Context(), t, "zk", srv.DialContext)
		var err error
		s[i], err = c.Session(t.Context())
		testrig.Check(t, err)
	}
	return s
}

// arena is a real chain with real members.
type arena struct {
	cast
	sessions sessions
	ctx      context.Context
	s        *world
	chain    chain
	q        Queue
	m        [mostMembers]Member
	woken    [mostMembers]chan struct{}
	guards   [mostGuards]fakeGuard
	names    [2][mostNodes][mostNumbers]Node
	ids      map[string]int
	bad      error
}

func newArena(ctx context.Context, s sessions, c cast) *arena {
	a := &arena{cast: c, ctx: ctx, sessions: s, ids: map[string]int{}}
	a.q.dir, a.q.tags, a.q.key = "/d", Tags{Contenders: []string{writer, reader}}, chainKey{dir: "/d", shared: reader}
	if c.mutex {
		a.q.tags, a.q.key = Tags{Contenders: []string{mutexTag}}, chainKey{dir: "/d", shared: ""}
	}
	a.chain.members, a.chain.key = map[string]*Member{}, a.q.key
	for i := range a.woken {
		a.woken[i] = make(chan struct{}, 1)
	}
	for life := range a.names {
		for id := range mostNodes {
			for n := range mostNumbers {
				name := fmt.Sprintf("x%d-%d-%s%010d", life, id, a.tag(id), n)
				a.names[life][id][n], _ = parse(a.tag(id), name)
				a.ids[name] = id
			}
		}
	}
	return a
}

// machine is the arena as a machine.
func (a *arena) machine() *explore.Machine[world, move] {
	start := world{tail: -1, guards: 1}
	for i := range start.m {
		m := &start.m[i]
		m.front, m.guard, m.nearest, m.second = -1, -1, -1, -1
	}
	return &explore.Machine[world, move]{
		Start: start,
		Moves: a.moves,
		Apply: a.apply,
		Must:  func(m move) bool { return m.kind != sends && m.kind < strangerComes },
		Waits: a.waits,
		Tell:  a.tell,
	}
}

// shared reports whether the contender with the node id is a reader.
func (a *arena) shared(id int) bool {
	switch {
	case id >= read0:
		return true
	case id >= foreign0:
		return id-foreign0 < len(a.foreign) && a.foreign[id-foreign0] == 'R'
	default:
		return id < len(a.modes) && a.modes[id] == 'R'
	}
}

func (a *arena) tag(id int) string {
	switch {
	case a.shared(id):
		return reader
	case a.mutex:
		return mutexTag
	default:
		return writer
	}
}

// place is the life of the directory in which a node was made, and its number.
func (a *arena) place(id int) (life, number uint8) {
	switch {
	case id >= read0:
		return a.s.m[id-read0].life, a.s.m[id-read0].number
	case id >= foreign0:
		return a.s.life, a.s.number[id-foreign0]
	default:
		return a.s.m[id].life, a.s.m[id].number
	}
}

func (a *arena) node(id int) Node {
	life, number := a.place(id)
	return a.names[life][id][number]
}

// children is a list of nodes, as a server would answer.
func (a *arena) children(s nodes) []string {
	list := make([]string, 0, mostNodes)
	for s &^= node(onlyStranger); s != 0; s &= s - 1 {
		list = append(list, a.node(bits.TrailingZeros16(uint16(s))).Name)
	}
	return list
}

func (a *arena) who(id int) string {
	switch {
	case id < 0:
		return "nobody"
	case id >= read0:
		return fmt.Sprintf("R'%d", id-read0)
	case id >= foreign0:
		return fmt.Sprintf("stranger %c%d", a.foreign[id-foreign0], id-foreign0)
	default:
		return fmt.Sprintf("%c%d", a.modes[id], id)
	}
}

// tell is a move, and what each member is after it.
func (a *arena) tell(s *world, mv move) string {
	id := int(mv.id)
	if mv.kind == strangerComes || mv.kind == strangerLeaves {
		id += foreign0
	}
	text := sentences[mv.kind]
	if strings.Contains(text, "%s") {
		text = fmt.Sprintf(text, a.who(id))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  [", text)
	for i := range a.modes {
		m := &s.m[i]
		if m.phase == idle {
			continue
		}
		fmt.Fprintf(&b, " %s:%s", a.who(i), [...]string{"unknown", "linked", "first", "over", "left"}[m.state])
		if m.front >= 0 {
			fmt.Fprintf(&b, ">%s", a.who(int(m.front)))
		}
		if m.phase == holding {
			b.WriteString(" HOLDS")
		}
		if m.reading == readHeld {
			fmt.Fprintf(&b, " %s HOLDS", a.who(read0+i))
		}
	}
	b.WriteString(" ]")
	return b.String()
}

// load puts the state into the chain and its members.
func (a *arena) load() {
	c, s := &a.chain, a.s
	clear(c.members)
	c.tail, c.guard, c.missed, c.busy, c.arming, c.joining = nil, nil, s.missed, false, false, 0
	for i := range a.guards {
		a.guards[i] = fakeGuard{uint64(s.on[i]), s.fired&(1<<i) != 0}
	}
	if s.guard >= 0 {
		c.guard = a.guardOf(s.guard)
	}
	for i := range a.modes {
		a.m[i] = Member{}
	}
	for i := range a.modes {
		m, from := &a.m[i], &s.m[i]
		m.q, m.chain, m.shared = &a.q, c, a.shared(i)
		m.Own = Own{Session: a.sessions[from.session], member: m}
		m.Node.Tag = a.tag(i)
		m.state, m.broken = state(from.state), from.is(isBroken)
		m.blockers = int(from.blockers)
		if from.is(isNamed) {
			m.Node = a.names[from.toldLife][i][from.told]
			m.Path, m.number = "/d/"+m.Node.Name, int64(from.told)
		}
		if from.guard >= 0 {
			m.guard = a.guardOf(from.guard)
		}
		if from.front >= 0 {
			m.front = &a.m[from.front]
			m.front.followers = append(m.front.followers, m)
		}
		if from.is(isMember) {
			c.members[m.Node.Name] = m
		}
		if from.is(isParked) {
			a.park(i, from.is(isWoken))
		}
	}
	if s.tail >= 0 {
		c.tail = &a.m[s.tail]
	}
}

// park gives a member a channel, with a token or without.
func (a *arena) park(i int, token bool) {
	a.m[i].woken = a.woken[i]
	select {
	case <-a.woken[i]:
	default:
	}
	if token {
		a.woken[i] <- struct{}{}
	}
}

func (a *arena) index(m *Member) int8 {
	for i := range a.modes {
		if m == &a.m[i] {
			return int8(i)
		}
	}
	return -1
}

// save reads the state back from the chain and its members.
func (a *arena) save() {
	c, s := &a.chain, a.s
	s.tail, s.missed, s.guard = a.index(c.tail), c.missed, a.guardIndex(c.guard)
	for i := range a.modes {
		m, to := &a.m[i], &s.m[i]
		to.state, to.front, to.blockers = uint8(m.state), a.index(m.front), uint8(m.blockers)
		to.set(isBroken, m.broken)
		if to.set(isNamed, m.Path != ""); m.Path != "" {
			to.toldLife, to.told = m.Node.Name[1]-'0', uint8(m.Node.Sequence())
		}
		to.set(isMember, m.Node.Name != "" && c.members[m.Node.Name] == m)
		to.set(isParked, m.woken != nil)
		to.set(isWoken, len(m.woken) > 0)
		to.guard = a.guardIndex(m.guard)
		if err := m.audit(); err != nil {
			a.assert("%s: %w", a.who(i), err)
		}
	}
}

// assert fails unless only what a user may notice counts.
func (a *arena) assert(format string, args ...any) {
	if !a.users {
		a.fail(format, args...)
	}
}

func (a *arena) fail(format string, args ...any) {
	if a.bad == nil {
		a.bad = fmt.Errorf(format, args...)
	}
}

// ended reports whether the client knows that the session of m is over.
func (s *world) ended(m *member) bool { return s.over && m.session == 0 && m.phase != idle }

// waits names a member that has not finished.
func (a *arena) waits(s *world) string {
	for i := range a.modes {
		if p := s.m[i].phase; p != idle && p != done {
			return a.who(i)
		}
	}
	return ""
}

// moves appends what a state allows.
func (a *arena) moves(s *world, out []move) []move {
	add := func(k kind, id int) { out = append(out, move{k, uint8(id)}) }
	left := func(chance int) bool { return s.used[chance] < a.may[chance] }
	for i := range a.modes {
		m := &s.m[i]
		if s.ended(m) {
			a.movesAfterEnd(s, i, add)
			continue
		}
		// Requests of one connection are answered in their order.
		mayMake := i == 0 || s.m[i-1].phase > creating
		mayTell := i == 0 || s.m[i-1].phase > created
		switch m.phase {
		case idle:
			if i == 0 || s.m[i-1].phase != idle {
				add(sends, i)
			}
		case creating:
			if mayMake {
				add(makes, i)
			}
		case created:
			if mayTell && !s.fireComesFirst(m) {
				add(tells, i)
			}
			if m.is(wantsList) && m.list == 0 {
				add(snapsWithCreate, i)
			}
		case told:
			switch {
			case m.is(wantsList) && m.list == 0 && !m.is(gaveUp):
				add(snapsWithCreate, i)
			default:
				add(joins, i)
			}
		case running:
			add(looks, i)
			if left(forget) && state(m.state) != unknown && state(m.state) != linked {
				add(looksLate, i)
			}
		case parked:
			if m.is(isWoken) {
				add(wakes, i)
			}
		case listing:
			add(snaps, i)
		case answered:
			add(reads, i)
		case watching:
			if !s.stands.has(int(m.nearest)) {
				add(nearestEnds, i)
			}
			if m.second >= 0 && !s.stands.has(int(m.second)) {
				add(secondEnds, i)
			}
		case holding:
			if m.reading == readAsked {
				break
			}
			add(releases, i)
			if left(lose) {
				add(isLost, i)
			}
			if m.reading == noRead && left(downgrade) && a.modes[i] == 'W' && !a.mutex {
				add(downgrades, i)
			}
		case lostHold:
			if m.reading != readAsked {
				add(releases, i)
			}
		case leaving:
			add(quits, i)
		case done:
		}
		switch m.reading {
		case readAsked:
			add(readMade, i)
		case readHeld:
			add(readReleases, i)
		case noRead, readOver:
		}
		if m.phase >= creating && m.phase <= watching && !m.is(gaveUp) && left(giveUp) {
			add(givesUp, i)
		}
		if m.is(isEvicted) && m.phase >= running && m.phase <= holding && m.reading != readAsked {
			add(isToldGone, i)
			if m.phase < holding && m.list == 0 && !m.is(knowsThat) {
				add(learns, i)
			}
		}
	}
	for id := range mostNodes {
		if s.dying.has(id) {
			add(deletes, id)
		} else if s.stands.has(id) && id < foreign0 && left(evict) {
			add(isEvictedBy, id)
		}
	}
	for f := range a.foreign {
		switch {
		case !s.f[f].came && (f == 0 || s.f[f-1].came):
			add(strangerComes, f)
		case s.f[f].came && !s.f[f].gone:
			add(strangerLeaves, f)
		}
	}
	if s.guard >= 0 && (s.old(s.guard) || s.lost&^s.fired&(1<<s.guard) != 0) {
		add(fires, int(s.guard))
	}
	if left(cut) && a.mayCut(s) {
		add(isCut, 0)
	}
	if left(anew) && s.life == 0 && s.stands != 0 {
		add(isAnew, 0)
	}
	if left(forgetAll) && slices.ContainsFunc(s.m[:], func(m member) bool { return state(m.state) == linked }) {
		add(forgetsAll, 0)
	}
	if left(endSession) && !s.over && s.stands != 0 {
		add(sessionEnds, 0)
	}
	if s.over && !s.expired {
		add(expires, 0)
	}
	if left(arm) && s.guards < mostGuards && (s.guard < 0 || s.fired&(1<<s.guard) != 0 || s.on[s.guard] != s.conn) {
		add(arms, 0)
	}
	return out
}

// movesAfterEnd are those of a member whose session is over.
func (a *arena) movesAfterEnd(s *world, i int, add func(kind, int)) {
	m := &s.m[i]
	switch {
	case m.phase == lostHold && m.reading != readAsked:
		add(releases, i)
	case m.phase == running:
		add(looks, i)
	case m.phase == leaving:
		add(quits, i)
	}
	if m.phase > idle && m.phase < leaving {
		add(fails, i)
	}
}

// old reports whether a guard is about to fire, as the directory is a new one.
func (s *world) old(guard int8) bool {
	return s.of[guard] < s.life && (s.fired|s.lost)&(1<<guard) == 0 && s.on[guard] == s.conn
}

// fireComesFirst reports whether the event of the guard is read before the answer of m's
// create. The server sends both on one connection, and has applied that which fires first.
func (s *world) fireComesFirst(m *member) bool {
	return s.guard >= 0 && m.life > s.of[s.guard] && s.old(s.guard)
}

// mayCut leaves out losses of the connection after which a member makes a second node while
// another member has the name of the first. A node has one id.
func (a *arena) mayCut(s *world) bool {
	for i := range a.modes {
		m := &s.m[i]
		if m.phase != created && m.phase != told || s.stands.has(i) || s.ended(m) {
			continue
		}
		for j := range a.modes {
			o := &s.m[j]
			if j != i && (o.nearest == int8(i) || o.second == int8(i) || o.list.has(i)) {
				return false
			}
		}
	}
	return true
}

// apply makes a move.
func (a *arena) apply(s *world, mv move) error {
	old := *s
	a.s, a.bad = s, nil
	a.load()
	i := int(mv.id)
	switch {
	case mv.kind == deletes || mv.kind == isEvictedBy || mv.kind == strangerComes || mv.kind == strangerLeaves:
		a.atServer(mv.kind, i)
	case mv.kind == fires || mv.kind >= isCut && mv.kind <= isAnew || mv.kind == forgetsAll || mv.kind >= sessionEnds || mv.kind == expires:
		a.all(mv.kind, i)
	default:
		a.one(mv.kind, i)
	}
	a.save()
	a.check(&old)
	return a.bad
}

// atServer is what happens to one node.
func (a *arena) atServer(k kind, id int) {
	s := a.s
	switch k {
	case deletes:
		s.stands &^= node(id)
		s.dying &^= node(id)
	case isEvictedBy:
		s.used[evict]++
		a.evict(id)
	case strangerComes:
		s.f[id].came, s.number[id] = true, s.next
		s.next++
		s.stands |= node(foreign0 + id)
	case strangerLeaves:
		s.f[id].gone = true
		s.stands &^= node(foreign0 + id)
	}
}

// evict deletes a node that its owner does not delete.
func (a *arena) evict(id int) {
	a.s.stands &^= node(id)
	a.s.dying &^= node(id)
	if id < foreign0 {
		a.s.m[id].set(isEvicted, true)
	}
}

// all is what happens to more than one member.
func (a *arena) all(k kind, guard int) {
	s := a.s
	switch k {
	case fires:
		s.fired |= 1 << guard
	case isAnew:
		s.used[anew]++
		for id := range mostNodes {
			if s.stands.has(id) {
				a.evict(id)
				if id >= foreign0 && id < read0 {
					s.f[id-foreign0].gone = true
				}
			}
		}
		s.next, s.life = 0, 1
	case forgetsAll:
		s.used[forgetAll]++
		a.forgetAll()
	case isCut:
		s.used[cut]++
		s.conn++
		for i := range a.modes {
			a.cutOff(i)
		}
	case arms:
		s.used[arm]++
		g := s.guards
		s.guards++
		s.on[g], s.of[g] = s.conn, s.life
		a.chain.guard = a.guardOf(int8(g))
	case sessionEnds:
		s.used[endSession]++
		s.over = true
		// Each session counts its connections anew. The client ends the guards of the first a
		// moment later.
		s.conn, s.lost = 0, 1<<s.guards-1
	case expires:
		s.expired = true
		for i := range a.modes {
			if s.m[i].session == 0 && s.m[i].phase != idle {
				s.stands &^= node(i) | node(read0+i)
				s.dying &^= node(i) | node(read0+i)
			}
		}
	}
}

// cutOff is what the loss of a connection does to one member.
func (a *arena) cutOff(i int) {
	m := &a.s.m[i]
	switch m.phase {
	case created, told: // the client looks for the node, and makes another if it finds none
		m.set(wantsList, false)
		m.list = 0
		if m.phase = told; !a.s.stands.has(i) {
			m.phase = creating
		}
	case answered:
		m.phase, m.list = listing, 0
	case watching:
		m.phase, m.nearest, m.second = running, -1, -1
	}
}

// one is what one member does, or is told.
func (a *arena) one(k kind, i int) {
	s, m, at := a.s, &a.m[i], &a.s.m[i]
	switch k {
	case sends:
		if at.phase = creating; s.over {
			at.session = 1
			m.Session = a.sessions[1]
		}
		list, _ := a.chain.ready() // whether a guard is set is a move of its own
		at.set(wantsList, list)
	case makes:
		at.number, at.life, at.phase = s.next, s.life, created
		at.set(isEvicted, false)
		s.next++
		s.stands |= node(i)
		if at.is(gaveUp) {
			s.dying |= node(i)
		}
	case snapsWithCreate:
		at.list = s.stands | node(onlyStranger)
	case snaps:
		at.list, at.phase = s.stands|node(onlyStranger), answered
	case tells:
		a.made(m, a.node(i))
		at.phase = told
	case joins:
		if at.is(gaveUp) {
			at.phase, at.list = done, 0
			break
		}
		m.identify(a.node(i), "/d/"+a.node(i).Name, 1)
		at.phase = running
	case looks:
		a.step(i, event{stands: !at.is(knowsThat)})
	case looksLate:
		s.used[forget]++
		a.step(i, event{})
	case wakes:
		<-m.woken
		at.phase = running
	case reads:
		if !at.list.has(i) || at.is(knowsThat) {
			a.leaves(i) // as listAgain has returned ErrGone
			break
		}
		a.step(i, event{stands: true})
	case nearestEnds:
		a.step(i, event{news: nearestEnd, nearest: a.node(int(at.nearest)), orderly: true, stands: !at.is(knowsThat)})
	case secondEnds:
		a.step(i, event{news: secondEnd, stands: !at.is(knowsThat)})
	case releases:
		a.leaves(i)
	case givesUp:
		s.used[giveUp]++
		if at.phase > told {
			a.leaves(i)
			break
		}
		a.leave(m)
		at.set(gaveUp, true)
		s.dying |= node(i) & s.stands
	case quits:
		m.quit()
		at.phase = done
	case learns:
		at.set(knowsThat, true)
	case isToldGone:
		if at.phase == holding {
			a.breakOff(m)
			at.phase = lostHold
			break
		}
		a.leaves(i)
	case isLost:
		s.used[lose]++
		a.breakOff(m)
		at.phase = lostHold
	case downgrades:
		s.used[downgrade]++
		a.breakOff(m)
		at.reading = readAsked
	case readMade:
		if s.stands.has(i) {
			s.stands |= node(read0 + i)
			at.reading = readHeld
		} else {
			at.reading, at.phase = noRead, lostHold
		}
	case readReleases:
		at.reading = readOver
		s.dying |= node(read0+i) & s.stands
	case fails:
		a.leaves(i)
		s.dying &^= node(i) // it is deleted with the session
		if at.reading == readAsked {
			at.reading = readOver
		}
		if at.phase == leaving {
			m.quit()
			at.phase = done
		}
	}
}

// leaves ends the wait or the hold of a member.
func (a *arena) leaves(i int) {
	at := &a.s.m[i]
	a.leave(&a.m[i])
	a.s.dying |= node(i) & a.s.stands
	if at.phase, at.list, at.nearest, at.second = leaving, 0, -1, -1; !at.is(isMember) {
		at.phase = done
	}
}

// step is what a member does when it is told of an event: see Await.
func (a *arena) step(i int, ev event) {
	m, at := &a.m[i], &a.s.m[i]
	if m.children = nil; at.list != 0 {
		m.children = a.children(at.list)
	}
	ev.over = a.s.ended(at)
	do := a.next(m, ev)
	at.nearest, at.second = -1, -1
	if m.children == nil {
		at.list = 0
	}
	switch do.deed {
	case park:
		a.park(i, len(m.woken) > 0)
		at.phase = parked
	case list:
		at.phase, at.list = listing, 0
	case watch:
		at.phase, at.nearest = watching, a.idOf(do.nearest)
		if do.second.Name != "" {
			at.second = a.idOf(do.second)
		}
	case take:
		at.phase, at.list = holding, 0
	case fail:
		a.leaves(i)
	case check, stop:
		a.fail("%s is to do %d", a.who(i), do.deed)
	}
}

func (a *arena) idOf(n Node) int8 { return int8(a.ids[n.Name]) }
