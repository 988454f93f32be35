package watches

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/internal/explore"
	"github.com/docent-go/docent/internal/wire"
)

// What the table of watches can live through on one path: readers that come, give up, stop and
// leave, changes, answers late, connections and sessions that are lost. The reference is a
// server of its own, by the rules of ZooKeeper: a one-shot watch fires once and is gone, a
// persistent one stays, a removal takes all that stands on its side, and a request whose
// answer is lost has been carried out.

// The invariants.
var (
	errLeftHears = errors.New("a reader that has left hears of a change")
	errTwice     = errors.New("a watch is asked for twice while it stands")
	errReplaced  = errors.New("a request takes the place of a persistent watch")
	errNeeded    = errors.New("a watch is removed that a reader needs")
)

// Two more are about states in which nothing more happens.
const (
	waitsStale = "a reader that has missed a change"
	staysOn    = "a watch that nobody removes from the server"
)

// watchBug is planted around the calls of the table.
type watchBug string

const (
	bugUpTellsNobody   watchBug = "a new connection fires no one-shot watch"
	bugEarlyEvent      watchBug = "the event before the answer is taken for that of the new watch"
	bugGivenUpUnsent   watchBug = "a read that was given up counts as never sent"
	bugBusyIgnored     watchBug = "a read does not wait until the removal has ended"
	bugQueuedTooEarly  watchBug = "a read keeps no change of watches waiting before it is sent"
	bugSetAgainSilent  watchBug = "a persistent watch is set again, and its readers are not told"
	bugOldAnswerCounts watchBug = "the answer of a lost connection counts"
	bugCoveredForgot   watchBug = "a persistent watch is removed, and the readers that relied on it are not told"
	bugNeededRemoved   watchBug = "a watch is removed although one of its readers waits"
	bugFeedStays       watchBug = "a feed that is closed keeps its watches"
	bugAskedAgain      watchBug = "a read does not know that its watch stands"
	bugLostIsNever     watchBug = "a reader that stops is forgotten, and not its watch"
	bugLeftStays       watchBug = "a reader of a persistent watch leaves beside another one, and stays in the list"
)

type watcherKind uint8

const (
	oneShotReader watcherKind = iota
	feedReader
	flatReader
	deepReader
)

// watcher is a reader of a table, and what the test knows of it.
type watcher struct {
	kind   watcherKind
	side   side // of the one-shot watch
	rounds int8 // reads that it may still begin

	on       *sharedWatch
	listener *listener
	asks     bool // its read is to set a watch
	earlier  int  // the connection when its read began
	session  int
	reading  bool // its read is not over
	sent     bool
	conn     int8
	answer   int8 // what it has read, or 0
	got      bool // the answer has come
	late     bool

	waits bool    // it relies on a watch
	knows [2]int8 // by side
	gone  bool
	err   error
}

func (r *watcher) Tell(ev wire.Event) {
	if r.gone {
		r.err = errLeftHears
	}
	switch {
	case r.kind == feedReader:
		r.waits = false
	case ev.Type == zk.EventNodeDataChanged:
		r.knows[0] = max(r.knows[0], int8(ev.Zxid))
	default:
		r.knows[1] = max(r.knows[1], int8(ev.Zxid))
	}
}

func (r *watcher) Missed(error) {
	if r.gone {
		r.err = errLeftHears
	}
	r.waits = r.kind != feedReader
	r.knows = [2]int8{-1, -1} // the world says what it reads
}

func (r *watcher) End(err error) { r.err = err } // no client is closed here

// errand is a request on its way.
type errand struct {
	who     int // of a read; -1 if it was given up
	side    side
	flagged bool
	change  *watchChange
	set     bool
}

// parcel is what comes from the server: the news of a connection, an event, or an answer.
type parcel struct {
	up   bool
	ev   *wire.Event
	of   errand
	seen int8
}

// sets are the watches on the server.
type sets struct{ data, child, flat, flatChild, deep, deepChild bool }

// pond is a table with its readers and a server.
type pond struct {
	bug    watchBug
	single bool // as before ZooKeeper 3.9

	t       table
	readers []*watcher
	budget  budget

	// The server.
	version  [2]int8
	has      sets
	conn     int8
	linked   bool
	requests []errand
	parcels  []parcel

	// The client.
	told       bool // it knows of the connection
	session    int
	change     *errand // the request to change watches
	changeSent bool
	changeConn int // of the table, when it was taken
	changeGot  bool
	known      [2]bool // a one-shot watch is known to stand
	err        error
}

type budget struct{ changes, losses, ends, giveUps int8 }

type pondMove struct {
	what string
	who  int
}

var (
	pondNow   = time.Unix(1000, 0)
	pondLater = pondNow.Add(time.Hour)
	pondBusy  = make(<-chan struct{})
)

const pondPath = "/p"

func (p *pond) spot(r *watcher) spot { return spot{pondPath, r.side} }

func (p *pond) moves() (all []pondMove) {
	add := func(what string, who int) { all = append(all, pondMove{what, who}) }
	for i, r := range p.readers {
		switch {
		case r.gone:
			continue
		case r.reading && r.got:
			add("notes its answer", i)
			continue
		case r.reading && r.session != p.session:
			add("fails with its session", i)
			continue
		case r.reading && r.sent && r.conn != p.conn:
			add("fails with its connection", i)
			continue
		case r.reading && !r.sent && p.linked:
			add("sends", i)
		}
		if r.reading && p.budget.giveUps > 0 {
			add("gives up", i)
		}
		if r.reading {
			continue
		}
		if r.kind == oneShotReader && r.on != nil && r.on.fired() {
			add("wakes", i)
			continue
		}
		if r.rounds > 0 && p.told && (!r.waits || r.kind == feedReader) && (p.t.busy(pondPath) == nil || r.kind > feedReader || p.bug == bugBusyIgnored) && r.idle() {
			add("begins", i)
		}
		if r.waits || r.kind == feedReader || r.listening() {
			add("leaves", i)
		}
	}
	switch {
	case !p.linked:
		add("the client connects", -1)
	case len(p.requests) > 0:
		add("the server serves", -1)
	}
	if len(p.parcels) > 0 {
		add("the client gets", -1)
	}
	switch {
	case p.change != nil && p.changeGot:
		add("notes the change", -1)
	case p.change != nil && p.changeSent && p.changeConn < 0:
		add("loses the change", -1)
	case p.change != nil && !p.changeSent && p.linked:
		add("sends the change", -1)
	}
	if p.change == nil && p.told {
		if len(p.t.due) > 0 && p.t.free(pondPath) {
			add("sets", -1)
		}
		if _, some := p.t.nextRemoval(pondLater); some || p.bug == bugNeededRemoved && p.removable() {
			add("removes", -1)
		}
	}
	if p.budget.changes > 0 {
		add("data changes", -1)
		add("a child is made", -1)
	}
	if p.linked && p.budget.losses > 0 {
		add("the connection is lost", -1)
	}
	if p.linked && p.told && p.budget.ends > 0 {
		add("the session ends", -1)
	}
	return all
}

// removable reports whether the planted bug can show.
func (p *pond) removable() bool {
	o := p.t.one(spot{pondPath, dataSide})
	return o.on != nil && o.on.wanted > 0 && o.on.conn != 0 && p.t.lasting(pondPath) == nil && p.t.free(pondPath)
}

func (r *watcher) idle() bool { return r.kind <= feedReader || !r.listening() }

func (r *watcher) listening() bool { return r.kind > feedReader && r.asks }

func must(m pondMove) bool {
	switch m.what {
	case "begins", "leaves", "gives up", "data changes", "a child is made", "the connection is lost", "the session ends":
		return false
	default:
		return true
	}
}

func (p *pond) apply(m pondMove) error {
	if m.who >= 0 {
		p.act(p.readers[m.who], m)
	} else {
		p.happen(m.what)
	}
	for _, r := range p.readers {
		if r.knows[0] < 0 { // it was told to read, and does so after this moment
			r.knows = p.version
		}
		if r.err != nil {
			return r.err
		}
	}
	return p.err
}

func (p *pond) act(r *watcher, m pondMove) {
	switch m.what {
	case "begins":
		r.rounds--
		p.begin(r)
	case "sends":
		r.sent, r.conn = true, p.conn
		if r.kind == oneShotReader && r.asks && p.bug != bugQueuedTooEarly {
			p.t.queued(pondPath)
		}
		p.requests = append(p.requests, errand{who: m.who, side: r.side, flagged: r.asks})
	case "notes its answer":
		p.note(r, outcome{sent: true, answered: true, late: r.late && p.bug != bugEarlyEvent})
	case "fails with its session":
		r.reading, r.on, r.waits = false, nil, false
	case "fails with its connection":
		p.note(r, outcome{sent: true, err: errReconnected})
	case "gives up":
		p.budget.giveUps--
		if r.kind == oneShotReader && r.asks && !r.sent && p.bug != bugQueuedTooEarly {
			p.t.queued(pondPath)
		}
		p.note(r, outcome{sent: r.sent && p.bug != bugGivenUpUnsent, err: errStopped})
		for i := range p.requests {
			if p.requests[i].who == m.who && p.requests[i].change == nil {
				p.requests[i].who = -1
			}
		}
		for i := range p.parcels {
			if p.parcels[i].of.who == m.who && p.parcels[i].of.change == nil && p.parcels[i].ev == nil && !p.parcels[i].up {
				p.parcels[i].of.who = -1
			}
		}
	case "wakes":
		r.on, r.waits = nil, false
	case "leaves":
		p.leave(r)
	}
}

func (p *pond) begin(r *watcher) {
	switch r.kind {
	case oneShotReader:
		if p.bug == bugAskedAgain {
			if o := p.t.one(p.spot(r)); o.on != nil {
				o.on.conn = 0
			}
		}
		r.on, r.asks = p.t.share(p.spot(r))
		if r.asks && p.known[r.side.index()] {
			p.err = errTwice
		}
		if r.asks && p.bug == bugQueuedTooEarly {
			p.t.queued(pondPath)
		}
	case feedReader:
		r.asks = p.t.listen(r.listener, p.spot(r))
		r.waits = false
	default:
		r.asks = true
		p.t.add(pondPath, r, r.kind == deepReader)
		return
	}
	r.reading, r.sent, r.got, r.late, r.earlier, r.session = true, false, false, false, p.t.connection, p.session
}

// note tells the table what became of a read.
func (p *pond) note(r *watcher, f outcome) {
	f.asked, f.conn = r.asks, uint64(r.conn)
	r.reading, r.got = false, false
	at := p.spot(r)
	if r.session != p.session {
		r.on, r.waits = nil, false
		return
	}
	if r.kind == feedReader {
		if r.asks {
			p.t.listened(r.listener, at, f, r.earlier == p.t.connection, errors.Is(f.err, errStopped), pondNow)
		}
		if r.waits = f.err == nil && p.t.hears(r.listener, at) && r.earlier == p.t.connection; r.waits {
			r.knows = [2]int8{r.answer, r.answer}
		}
		return
	}
	stood := p.t.one(at).on == r.on
	p.t.answered(r.on, f, pondNow)
	if f.err != nil {
		r.on, r.waits = nil, false
		return
	}
	if stood && r.on.conn == f.conn && r.asks && !r.on.fired() {
		p.known[at.side.index()] = true
	}
	r.waits, r.knows = true, [2]int8{r.answer, r.answer}
}

func (p *pond) leave(r *watcher) {
	r.gone = true
	switch r.kind {
	case oneShotReader:
		if p.bug == bugLostIsNever {
			r.on.wanted--
		} else if !r.on.fired() {
			p.t.giveUp(r.on, pondNow)
		}
	case feedReader:
		if p.bug == bugFeedStays {
			delete(p.t.feeds, r.listener)
		} else {
			p.t.unfollow(r.listener, pondNow)
		}
	default:
		if e := p.t.lasting(pondPath); p.bug != bugLeftStays || e == nil || len(e.readers) == 1 {
			p.t.remove(pondPath, r, pondNow)
		}
	}
	r.waits, r.on = false, nil
}

func (p *pond) happen(what string) {
	switch what {
	case "the client connects":
		p.conn++
		p.linked = true
		p.parcels = append(p.parcels, parcel{up: true})
	case "the server serves":
		q := p.requests[0]
		p.requests = slices.Delete(slices.Clone(p.requests), 0, 1)
		p.serve(q)
	case "the client gets":
		q := p.parcels[0]
		p.parcels = slices.Delete(slices.Clone(p.parcels), 0, 1)
		p.get(q)
	case "sets", "removes":
		p.take(what)
	case "sends the change":
		p.changeSent = true
		p.requests = append(p.requests, *p.change)
	case "notes the change", "loses the change":
		p.noteChange()
	case "data changes":
		p.budget.changes--
		p.version[0]++
		p.event(zk.EventNodeDataChanged, pondPath, p.has.data || p.has.flat || p.has.deep)
		p.has.data = false
	case "a child is made":
		p.budget.changes--
		p.version[1]++
		p.event(zk.EventNodeChildrenChanged, pondPath, p.has.child || p.has.flatChild)
		p.event(zk.EventNodeCreated, pondPath+"/c", p.has.deep)
		p.has.child = false
	case "the connection is lost":
		p.budget.losses--
		p.lose()
	case "the session ends":
		p.budget.ends--
		p.lose()
		p.session++
		p.change, p.changeGot, p.known = nil, false, [2]bool{}
		p.t.over(fate.ErrSessionLost, pondNow)
	}
}

func (p *pond) event(t zk.EventType, path string, heard bool) {
	if !heard || !p.linked {
		return
	}
	ev := wire.Event{Type: t, Path: path, Zxid: int64(p.version[0])}
	if t != zk.EventNodeDataChanged {
		ev.Zxid = int64(p.version[1])
	}
	p.parcels = append(p.parcels, parcel{ev: &ev})
}

func (p *pond) lose() {
	p.linked, p.told = false, false
	p.has, p.requests, p.parcels = sets{}, nil, nil
	if p.change != nil && p.changeSent && !p.changeGot {
		p.changeConn = -1 - p.changeConn
	}
	for _, r := range p.readers {
		if r.reading && r.sent && !r.got {
			r.conn = -1
		}
		r.waits = r.waits && r.kind <= feedReader
	}
}

// serve is what a server does with a request.
func (p *pond) serve(q errand) {
	answer := parcel{of: q}
	switch {
	case q.change == nil:
		answer.seen = p.version[q.side.index()]
		if q.flagged {
			p.setOneShot(q.side)
		}
	case q.set:
		p.setLasting(q.change.flag == wire.WatchRecursive)
	case q.change.at.side == 0:
		p.has = sets{}
	case q.change.at.side == dataSide:
		p.has.data, p.has.flat, p.has.deep = false, false, false
	default:
		p.has.child, p.has.flatChild, p.has.deepChild = false, false, false
	}
	p.parcels = append(p.parcels, answer)
}

func (p *pond) setOneShot(s side) {
	h := &p.has
	if p.single && (s == dataSide && (h.flat || h.deep) || s == childSide && h.flatChild) && slices.ContainsFunc(p.readers, (*watcher).relies) {
		p.err = errReplaced
	}
	if s == dataSide {
		h.data = true
	} else {
		h.child = true
	}
}

// relies reports whether the reader of a persistent watch was told that this stands.
func (r *watcher) relies() bool { return r.kind > feedReader && r.waits }

func (p *pond) setLasting(deep bool) {
	h := &p.has
	if p.single {
		*h = sets{}
	}
	if deep {
		h.deep, h.deepChild = true, true
	} else {
		h.flat, h.flatChild = true, true
	}
}

func (p *pond) get(q parcel) {
	switch {
	case q.up:
		p.told = true
		p.known = [2]bool{}
		if p.bug == bugUpTellsNobody {
			p.t.connection++
			if e := p.t.lasting(pondPath); e != nil {
				e.due = len(e.readers) > 0
				p.t.settle(pondPath)
			}
			return
		}
		p.t.up(errReconnected, pondNow)
	case q.ev != nil:
		for _, s := range []side{dataSide, childSide} {
			if q.ev.Path == pondPath && sides(q.ev.Type)&s != 0 {
				p.known[s.index()] = false
			}
		}
		p.t.heard(*q.ev, pondNow)
	case q.of.change != nil:
		p.changeGot = true
	case q.of.who >= 0:
		r := p.readers[q.of.who]
		r.got, r.answer = true, q.seen
		if r.on != nil {
			r.late = r.on.fired()
		}
	}
}

func (p *pond) take(what string) {
	var batch []watchChange
	if what == "sets" {
		var listed []string
		if e := p.t.lasting(pondPath); p.t.stands(e) && (e.deep || !e.recursive()) {
			p.err = errTwice
		}
		batch = p.t.takeDue(&listed, pondBusy)
	} else {
		if p.bug == bugNeededRemoved && p.removable() {
			o := p.t.one(spot{pondPath, dataSide})
			o.on.wanted = 0
			p.t.leave(o.on.at, false, pondNow)
			p.t.settle(pondPath)
		}
		listed := p.t.listIdle(pondLater)
		batch = p.t.takeIdle(&listed, pondBusy, pondLater)[:1]
		p.need(batch[0].at)
	}
	p.change = &errand{who: -1, change: &batch[0], set: what == "sets"}
	p.changeSent, p.changeGot, p.changeConn = false, false, p.t.connection
}

// need checks that no reader needs the watch that is about to be removed.
func (p *pond) need(at spot) {
	if at.side == 0 {
		p.known = [2]bool{}
	} else {
		p.known[at.side.index()] = false
	}
	for _, r := range p.readers {
		lasts := r.kind > feedReader
		if !r.gone && (at.side == 0 && lasts && r.asks || at.side != 0 && !lasts && r.side == at.side && (r.waits || r.reading && r.asks && r.session == p.session)) {
			if r.on == nil || !r.on.fired() || p.bug == bugNeededRemoved {
				p.err = errNeeded
			}
		}
	}
}

func (p *pond) noteChange() {
	u, got := *p.change.change, p.changeGot
	connection := p.changeConn
	if connection < 0 {
		connection = -1 - connection
	}
	if p.bug == bugOldAnswerCounts {
		connection = p.t.connection
	}
	set := p.change.set
	if u.at.side == 0 {
		p.known = [2]bool{}
	}
	p.change, p.changeGot, p.changeSent = nil, false, false
	switch {
	case set && p.bug == bugSetAgainSilent && got && p.t.connection > 1:
		e := p.t.lasting(pondPath)
		all := e.readers
		e.readers = nil
		for _, r := range all {
			e.readers = append(e.readers, lastingReader{&watcher{}, r.deep})
		}
		p.t.stand(u, response{carriedOut: got}, connection, pondNow)
		e.readers = all
		for _, r := range p.readers {
			r.waits = r.waits || r.listening()
		}
	case set:
		p.t.stand(u, response{carriedOut: got}, connection, pondNow)
	case p.bug == bugCoveredForgot && u.at.side == 0:
		p.t.details(pondPath).busy = nil
		p.t.abandon(pondPath, pondNow)
		p.t.settle(pondPath)
	default:
		p.t.removed(u, response{}, connection, pondNow)
	}
}

// waiting returns who waits for something.
func (p *pond) waiting() string {
	lasts := false
	var wanted [2]bool
	for _, r := range p.readers {
		if r.gone {
			continue
		}
		stale := [2]bool{r.knows[0] < p.version[0], r.knows[1] < p.version[1]}
		switch {
		case r.kind > feedReader:
			lasts = lasts || r.asks
			if r.asks && (!r.waits || stale[0] || stale[1]) {
				return waitsStale
			}
		case r.waits && stale[r.side.index()]:
			return waitsStale
		case r.waits:
			wanted[r.side.index()] = true
		}
	}
	h := p.has
	if !lasts && (h.flat || h.flatChild || h.deep || h.data && !wanted[0] || h.child && !wanted[1]) {
		return staysOn
	}
	return ""
}

// key tells states apart.
func (p *pond) key() string {
	var b strings.Builder
	fmt.Fprint(&b, p.version, p.has, p.linked, p.told, p.budget, p.known, p.err, p.changeSent, p.changeGot, p.changeConn-p.t.connection, p.t.lastings, len(p.t.due), len(p.t.idle))
	one := func(w *sharedWatch) {
		if w == nil {
			fmt.Fprint(&b, "-")
		} else {
			fmt.Fprint(&b, w.fired(), int(w.conn)-int(p.conn), w.conn == 0, w.wanted, w.stray, errors.Is(w.err, errReconnected))
		}
	}
	errands := func(q errand) {
		fmt.Fprint(&b, "|", q.who, q.side, q.flagged, q.set)
		if q.change != nil {
			fmt.Fprint(&b, *q.change)
		}
	}
	for _, r := range p.readers {
		fmt.Fprint(&b, "/", r.rounds, r.asks, p.t.connection-r.earlier, r.session == p.session, r.reading, r.sent, p.conn-r.conn, r.answer, r.got, r.late, r.waits, r.knows, r.gone)
		one(r.on)
		if r.listener != nil {
			fmt.Fprint(&b, r.listener.hearing)
		}
	}
	for _, q := range p.requests {
		errands(q)
	}
	for _, q := range p.parcels {
		fmt.Fprint(&b, "<", q.up, q.seen)
		if q.ev != nil {
			fmt.Fprint(&b, *q.ev)
		}
		errands(q.of)
	}
	if p.change != nil {
		errands(*p.change)
	}
	if at := p.t.places[pondPath]; at != nil {
		fmt.Fprint(&b, "#", at.asking)
		for _, ls := range at.feeds {
			if ls != nil {
				fmt.Fprint(&b, len(ls.all))
			}
		}
		if d := at.more; d != nil {
			fmt.Fprint(&b, d.busy != nil)
			for _, o := range d.one {
				one(o.on)
				fmt.Fprint(&b, !o.left.since.IsZero(), o.left.coming)
			}
			if e := d.last; e != nil {
				fmt.Fprint(&b, len(e.readers), p.t.connection-e.connection, e.deep, e.due, !e.since.IsZero())
			}
		}
	}
	return b.String()
}

// scene is who reads, and what may happen.
type scene struct {
	readers []watcher
	single  bool
	budget  budget
}

func (s scene) start(bug watchBug) *pond {
	p := &pond{
		bug: bug, single: s.single, t: newTable(), budget: s.budget, conn: 1, linked: true, told: true, session: 1,
	}
	p.t.up(fate.ErrSessionLost, pondNow)
	for _, r := range s.readers {
		own := r
		if own.kind == feedReader {
			own.listener = newListener(&own)
			p.t.follow(own.listener)
		}
		p.readers = append(p.readers, &own)
	}
	return p
}

type pondState struct{ key string }

// machine plays a scene. A state is reached again by the moves that led to it.
func (s scene) machine(bug watchBug) *explore.Machine[pondState, pondMove] {
	type way struct {
		moves, next []pondMove
		waits       string
	}
	ways := map[string]way{}
	keep := func(p *pond, moves []pondMove) pondState {
		k := pondState{p.key()}
		if _, ok := ways[k.key]; !ok {
			ways[k.key] = way{moves, p.moves(), p.waiting()}
		}
		return k
	}
	at := func(k pondState) (*pond, []pondMove) {
		p := s.start(bug)
		moves := ways[k.key].moves
		for _, m := range moves {
			_ = p.apply(m)
		}
		return p, moves
	}
	return &explore.Machine[pondState, pondMove]{
		Start: keep(s.start(bug), nil),
		Moves: func(k *pondState, all []pondMove) []pondMove { return append(all, ways[k.key].next...) },
		Apply: func(k *pondState, m pondMove) error {
			p, moves := at(*k)
			err := p.apply(m)
			*k = keep(p, append(slices.Clone(moves), m))
			return err
		},
		Must:  must,
		Waits: func(k *pondState) string { return ways[k.key].waits },
		Tell: func(k *pondState, m pondMove) string {
			p, _ := at(*k)
			return fmt.Sprintf("%d %s: %+v, at %v", m.who, m.what, p.has, p.version)
		},
	}
}

var (
	dataTwice = watcher{kind: oneShotReader, side: dataSide, rounds: 2}
	dataOnce  = watcher{kind: oneShotReader, side: dataSide, rounds: 1}
	childOnce = watcher{kind: oneShotReader, side: childSide, rounds: 2}
	dataFeed  = watcher{kind: feedReader, side: dataSide, rounds: 2}
	feedOnce  = watcher{kind: feedReader, side: dataSide, rounds: 1}
	flat      = watcher{kind: flatReader, rounds: 1}
	deep      = watcher{kind: deepReader, rounds: 1}
)

// scenes are played whole.
var scenes = map[string]scene{
	"two readers":             {[]watcher{dataOnce, dataOnce}, true, budget{1, 1, 0, 1}},
	"two readers, calm":       {[]watcher{dataTwice, dataTwice}, true, budget{1, 0, 0, 0}},
	"a session ends":          {[]watcher{dataTwice, dataFeed}, true, budget{1, 0, 1, 0}},
	"reader and feed":         {[]watcher{dataOnce, feedOnce}, true, budget{1, 1, 0, 1}},
	"persistent and data":     {[]watcher{dataOnce, flat}, true, budget{1, 1, 0, 1}},
	"persistent and children": {[]watcher{childOnce, deep}, true, budget{1, 1, 0, 0}},
	"flat and deep":           {[]watcher{flat, deep}, true, budget{1, 1, 1, 0}},
	"flat and deep 3.9":       {[]watcher{flat, deep}, false, budget{2, 1, 0, 0}},
	"feed and persistent":     {[]watcher{feedOnce, flat}, true, budget{1, 1, 0, 1}},
}

const mostPondStates = 100_000

// longScenes are played with DOCENT_EXPLORE_LONG.
var longScenes = map[string]scene{
	"two readers":         {[]watcher{dataTwice, dataTwice}, true, budget{2, 1, 0, 1}},
	"reader and feed":     {[]watcher{dataTwice, dataFeed}, true, budget{1, 1, 0, 1}},
	"persistent and data": {[]watcher{dataTwice, flat}, true, budget{1, 1, 0, 1}},
	"feed and persistent": {[]watcher{dataFeed, flat}, true, budget{1, 1, 1, 1}},
	"flat and deep":       {[]watcher{flat, deep}, true, budget{2, 1, 1, 0}},
}

// TestExploreWatchTable plays all schedules of readers on one path. With DOCENT_EXPLORE_LONG there
// are more, and fewer under the race detector: it is one goroutine.
func TestExploreWatchTable(t *testing.T) {
	t.Parallel()
	all, most := scenes, mostPondStates
	if underRace {
		all = map[string]scene{"two readers, calm": scenes["two readers, calm"]}
	}
	if os.Getenv("DOCENT_EXPLORE_LONG") != "" {
		all, most = longScenes, 5_000_000
	}
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore.Whole(t, s.machine(""), most)
		})
	}
}

// Each planted bug breaks the invariant that it is about.
func TestExploreWatchTableFindsBugs(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("it is one goroutine")
	}
	for bug, tt := range map[watchBug]struct{ scene, want string }{
		bugUpTellsNobody:   {"two readers", waitsStale},
		bugEarlyEvent:      {"reader and feed", staysOn},
		bugGivenUpUnsent:   {"two readers", staysOn},
		bugBusyIgnored:     {"two readers, calm", waitsStale},
		bugQueuedTooEarly:  {"persistent and data", errReplaced.Error()},
		bugSetAgainSilent:  {"flat and deep", waitsStale},
		bugOldAnswerCounts: {"flat and deep", waitsStale},
		bugCoveredForgot:   {"persistent and data", waitsStale},
		bugNeededRemoved:   {"two readers", errNeeded.Error()},
		bugFeedStays:       {"feed and persistent", staysOn},
		bugLeftStays:       {"flat and deep", errLeftHears.Error()},
		bugAskedAgain:      {"two readers", errTwice.Error()},
		bugLostIsNever:     {"two readers", staysOn},
	} {
		t.Run(string(bug), func(t *testing.T) {
			t.Parallel()
			explore.Finds(t, scenes[tt.scene].machine(bug), mostPondStates, tt.want)
		})
	}
}
