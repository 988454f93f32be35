package ui

import (
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// limits bound what a model keeps.
type limits struct {
	nodes int
	depth int // levels below the top
}

// patience is how long the timeline of a lock waits for the names of contenders.
const patience = 2 * time.Second

// model is what is known of the nodes, of the locks on them, and of what has happened to the
// locks. It has no clock and does no I/O: events and answers go in, wants and pictures come
// out.
//
//	state     | what it means
//	empty     | nothing is known
//	reading   | some parts of nodes are wanted or asked: after begin, or after an event
//	current   | nothing is wanted: the picture has what the servers had at the last answer
//
//	event    | from             | to
//	begin    | any              | reading: events may have been missed, everything is wanted
//	heard    | current, reading | reading, for what the event names; a deleted node is forgotten at once
//	answered | reading          | reading, or current if it was the last
//	failed   | reading          | reading: what was asked is wanted again
//
// Events are taken after the answers that came behind them. So an event of which the answer
// knows already is told again, and what it names is read once more; none is lost.
type model struct {
	limits limits
	deep   bool // events name the nodes; else the lists of children do, and leave watches
	counts bool // a directory tells its newest change (pzxid), as it does on ZooKeeper

	tree  tree
	reads reading
	full  bool // there are more nodes than the limit

	locks   map[string]*lock
	changed map[string]bool // directories whose locks are to be looked at
	told    map[string]*lock
	untold  map[string]time.Time // locks of which the timeline lacks news, and since when
	past    timelines
	passed  map[string]int // by directory: nodes that came and went without being read
	lost    map[int64]int  // by session: nodes that are gone since the last look
	stands  map[int64]int  // by session: its nodes

	looked  time.Time     // when the locks were looked at last
	epoch   int           // counts the times that everything was wanted
	whole   int           // epoch of which everything was there at a look
	due     map[want]bool // what is wanted since then
	version int           // counts the changes of what pictures show
}

func newModel(top string, l limits) *model {
	return &model{
		limits: l, counts: true, tree: tree{top: top}, reads: newReading(),
		locks: map[string]*lock{}, changed: map[string]bool{}, told: map[string]*lock{}, untold: map[string]time.Time{},
		passed: map[string]int{}, lost: map[int64]int{}, stands: map[int64]int{}, due: map[want]bool{},
	}
}

// begin says that events may have been missed. deep says which events come from now on.
func (m *model) begin(deep bool) {
	m.deep, m.reads, m.full = deep, newReading(), false
	m.epoch++
	clear(m.due)
	m.again(want{m.tree.top, theData}, first)
	m.again(want{m.tree.top, theChildren}, first)
	m.version++
}

// again wants what may have changed while events were missed.
func (m *model) again(w want, u urgency) {
	m.due[w] = true
	m.reads.want(w, u)
}

// behind reports whether something is not read again yet that may have changed while events
// were missed.
func (m *model) behind() bool { return len(m.due) > 0 || m.epoch == 0 }

// undrawn reports whether everything was read again, and the locks were not looked at since.
func (m *model) undrawn() bool { return !m.behind() && m.whole != m.epoch }

// servers reports whether a path is below the nodes that the servers keep for themselves.
func servers(at string) bool { return at == "/zookeeper" || strings.HasPrefix(at, "/zookeeper/") }

// heard takes events, in their order.
func (m *model) heard(events []inside.FeedEvent) {
	for _, e := range events {
		if servers(e.Path) {
			continue
		}
		switch e.Kind {
		case inside.FeedCreated:
			m.created(e.Path)
		case inside.FeedDeleted:
			m.deleted(e.Path)
		case inside.FeedData:
			m.reads.want(want{e.Path, theData}, m.urgency(e.Path))
		case inside.FeedChildren:
			m.moved(above(e.Path + "/x"))
			m.reads.want(want{e.Path, theChildren}, first)
		case inside.FeedMissed:
		}
	}
}

func (m *model) created(at string) {
	switch {
	case m.depth(at) > m.limits.depth:
		return
	case m.tree.count >= m.limits.nodes:
		m.full = true
		return
	}
	m.reads.want(want{at, theData}, m.urgency(at))
	if at != m.tree.top {
		m.moved(above(at))
	}
}

func (m *model) deleted(at string) {
	if m.reads.wanted[want{at, theData}] && m.tree.find(at) == nil {
		m.passed[above(at)]++ // it came and went
	}
	if n := m.tree.find(at); n != nil {
		m.remove(n)
	}
	m.forget(at)
	if at != m.tree.top {
		m.moved(above(at))
	}
}

// moved says that the children of a directory have changed: the stat that is known of it is
// old.
func (m *model) moved(dir string) {
	if n := m.tree.find(dir); n != nil {
		n.stat.Pzxid = 0
		m.touch(dir)
	}
}

// touch has the lock at a directory looked at, and that of which the directory is a part.
func (m *model) touch(dir string) {
	m.changed[dir] = true
	if name := dir[strings.LastIndexByte(dir, '/')+1:]; name == "locks" || name == "leases" {
		m.changed[above(dir)] = true
	}
}

// urgency is how soon the data of a node are read: those of a contender after the lists, those that are the
// first in a line before all others.
func (m *model) urgency(at string) urgency {
	name := at[strings.LastIndexByte(at, '/')+1:]
	if !contends(name) {
		return soon
	}
	if n := m.tree.find(above(at)); n != nil {
		mine, _ := inLine(name, tagLock, tagRead, tagWrite, tagLatch, tagLease)
		if len(n.children) > 64 {
			return later
		}
		for other := range n.children {
			if p, ok := inLine(other, tagLock, tagRead, tagWrite, tagLatch, tagLease); ok && p.before(mine) {
				return later
			}
		}
	}
	return soon
}

// remove forgets a node.
func (m *model) remove(n *node) {
	at := m.tree.path(n)
	m.each(n, at, func(n *node, at string) {
		m.forget(at)
		if s := n.session(); s != 0 && n.read {
			m.lost[s]++
			if m.stands[s]--; m.stands[s] == 0 {
				delete(m.stands, s)
			}
		}
	})
	m.tree.remove(n)
	if len(n.children) > 0 {
		for lock := range m.locks {
			if strings.HasPrefix(lock, at+"/") {
				m.changed[lock] = true
			}
		}
	}
	m.touch(at)
	if at != m.tree.top {
		m.touch(above(at))
	}
	m.version++
}

func (m *model) each(n *node, at string, f func(*node, string)) {
	f(n, at)
	for _, c := range n.children {
		m.each(c, join(at, c.name), f)
	}
}

func (m *model) forget(at string) {
	m.reads.forget(at)
	delete(m.due, want{at, theData})
	delete(m.due, want{at, theChildren})
}

// next returns what is to be read next, at most most parts.
func (m *model) next(most int) []want { return m.reads.take(most) }

// failed says that there was no answer to what was asked.
func (m *model) failed() { m.reads.failed() }

// answered takes the answers to what was asked.
func (m *model) answered(asked []want, answers []inside.Answer) {
	for i, w := range asked {
		m.answer(w, answers[i])
	}
	m.reads.answered()
}

func (m *model) answer(w want, a inside.Answer) {
	if a.Err == nil || errors.Is(a.Err, zk.ErrNoNode) || errors.Is(a.Err, zk.ErrNoAuth) || errors.Is(a.Err, client.ErrReplyTooLarge) {
		delete(m.due, w)
	}
	switch {
	case errors.Is(a.Err, zk.ErrNoNode):
		if n := m.tree.find(w.path); n != nil {
			m.remove(n)
		}
		return
	case errors.Is(a.Err, zk.ErrNoAuth), errors.Is(a.Err, client.ErrReplyTooLarge):
		if n := m.add(w.path); n != nil {
			n.hidden = true
			m.touch(above(w.path))
			m.version++
		}
		return
	case a.Err != nil:
		m.reads.want(w, later) // the server was busy
		return
	}
	if w.what == theChildren {
		m.list(w.path, a)
		return
	}
	m.data(w.path, a)
}

// add makes a node below a known one, nil if there are too many or its directory is not known.
func (m *model) add(at string) *node {
	if m.tree.count >= m.limits.nodes && m.tree.find(at) == nil {
		m.full = true
		return nil
	}
	return m.tree.add(at)
}

// data takes the data of a node.
func (m *model) data(at string, a inside.Answer) {
	n := m.add(at)
	if n == nil {
		return // its directory is gone, or yet to be read
	}
	if s := n.session(); n.read && s != 0 {
		if m.stands[s]--; m.stands[s] == 0 {
			delete(m.stands, s)
		}
	}
	n.stat, n.size, n.read, n.hidden, n.epoch = a.Stat, len(a.Data), true, false, m.epoch
	n.data = string(a.Data[:min(len(a.Data), mostData)])
	if contends(n.name) {
		n.owner, n.asked = ownerOf(n.data)
	}
	if s := n.session(); s != 0 {
		m.stands[s]++
	}
	m.touch(at)
	if n.parent != nil {
		m.touch(above(at))
	}
	m.version++
	switch {
	case n.session() != 0, !m.deep && contends(n.name), n.listed == m.epoch:
	case a.Stat.NumChildren == 0 && m.deep:
		n.listed = m.epoch // later ones are told by events
		for _, c := range n.children {
			m.remove(c)
		}
	case n.parent != nil: // the top is wanted at the beginning
		m.again(want{at, theChildren}, first)
	}
}

// list takes the names of the children of a node.
func (m *model) list(at string, a inside.Answer) {
	n := m.add(at)
	if n == nil {
		return
	}
	n.listed = m.epoch
	if a.Stat.Czxid != 0 { // servers list many directories at once without it
		n.stat, n.read = a.Stat, true
	}
	names := make(map[string]bool, len(a.Names))
	for _, name := range a.Names {
		names[name] = true
	}
	for name, c := range n.children {
		if !names[name] {
			m.remove(c)
		}
	}
	deepest := m.tree.top == at && m.limits.depth == 0 || m.depth(at) >= m.limits.depth
	for _, name := range a.Names {
		below := join(at, name)
		if deepest || servers(below) {
			continue
		}
		known := n.children[name]
		if known == nil && m.tree.count >= m.limits.nodes {
			m.full = true
			continue
		}
		m.tree.child(n, name)
		if known == nil || known.epoch != m.epoch {
			m.again(want{below, theData}, m.rank(below, n))
		}
	}
	m.touch(at)
	m.version++
}

// rank is urgency for a list of which not all names are known yet.
func (m *model) rank(at string, dir *node) urgency {
	if name := at[strings.LastIndexByte(at, '/')+1:]; contends(name) && len(dir.children) > 1 {
		return later
	}
	return soon
}

// depth is how many levels a path is below the top.
func (m *model) depth(at string) int {
	return strings.Count(strings.TrimSuffix(at, "/"), "/") - strings.Count(strings.TrimSuffix(m.tree.top, "/"), "/")
}

// look looks at the locks that have changed, and writes their timelines. All that had happened
// at the time asof is known, unless the model is behind, or has heard that a list is another one.
func (m *model) look(now, asof time.Time) {
	for path := range m.changed {
		m.lookAt(path, now)
	}
	clear(m.changed)
	for path, since := range m.untold {
		if l := m.locks[path]; l == nil || now.Sub(since) >= patience || l.named() {
			m.tell(path, l, now)
		}
	}
	if !m.behind() {
		m.whole = m.epoch
	}
	if !m.behind() && !m.reads.lists() {
		m.looked = asof
		clear(m.lost)
	}
}

func (m *model) lookAt(path string, now time.Time) {
	var l *lock
	if n := m.tree.find(path); n != nil && !n.waitsForPermits() {
		changed := n.stat.Pzxid
		if !m.counts {
			changed = 0
		}
		l = lockAt(path, n, changed, m.locks[path], m.looked, now)
		if l != nil && n.stat.Pzxid == 0 && m.counts && m.deep && !n.hidden {
			m.reads.want(want{path, theData}, soon)
		}
	}
	if l == nil && m.locks[path] == nil {
		delete(m.passed, path)
		return
	}
	if l == nil {
		delete(m.locks, path)
	} else {
		m.locks[path] = l
	}
	m.version++
	if _, ok := m.untold[path]; !ok {
		m.untold[path] = now
	}
}

// named reports whether the nodes of all contenders were read.
func (l *lock) named() bool {
	for i := range l.queue {
		if c := &l.queue[i]; !c.read && !c.hidden {
			return false
		}
	}
	return true
}

// tell writes what has happened to a lock since its timeline was written last.
func (m *model) tell(path string, l *lock, now time.Time) {
	delete(m.untold, path)
	from := m.looked
	news := difference(m.told[path], l, from, now, func(session int64) int {
		if session == 0 || m.stands[session] > 0 {
			return 0
		}
		return m.lost[session]
	})
	if n := m.passed[path]; n > 0 {
		delete(m.passed, path)
		news = append(news, happening{from: from, by: now, what: didPass, n: n})
	}
	m.past.add(path, news...)
	if l == nil {
		delete(m.told, path)
		return
	}
	m.told[path] = l
}

// evicted says that a page has had a node deleted.
func (m *model) evicted(path string, c happening) {
	m.past.add(path, c)
	m.version++
}
