package cache

import (
	"errors"
	"maps"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

const (
	mostKnown = 4096      // nodes whose size is known, in one round
	knownSize = 1 << 20   // bytes that the data of those may have, beyond the first
	statSize  = 85        // of those bytes, what comes with the data
	pathsSize = 256 << 10 // bytes that the paths of a round may have, beyond the first
)

// rounds decides what a cache knows, what it reads next, and what it publishes. It has no I/O
// and no clock; [keeper] is the shell around it.
//
// A round reads nodes. Its head is the last transaction that its last answer shows. The server
// sends the event of a transaction before any answer that shows it. So these rules suffice:
//
//  1. A reading that has a watch holds at the head if no event of the node came before it.
//  2. With a persistent watch one request reads all nodes of a round, and all of its answers
//     show the state at the head. So a node of the round holds at the head, whatever events
//     came before.
//  3. A node with an event, to which neither rule applies, is in doubt. It is read in the next
//     round. That reading also holds at the head of the round before, if it shows no newer
//     change: if no other event came, or with one-shot watches, if it has an older Mzxid.
//
// If no node is in doubt, the readings are the state at the head. By rule 3 they can also be
// the state at the head before, which is kept as a draft with holes. While changes come faster
// than rounds, the nodes that have changed lately are read in every round, so that by rule 2
// few of them become holes.
//
//	state    | what it means
//	reading  | some nodes were never read: from begin on
//	level    | every reading holds at the head, and that is published
//	behind   | some nodes are in doubt, and there is no draft
//	drafted  | some nodes are in doubt, and the state at the head lacks only their data
//
//	event    | from     | to
//	begin    | any      | reading; the node at the path is to be read
//	hear     | level    | behind
//	hear     | drafted  | behind if a hole has changed again, else drafted
//	answered | any      | level if nothing is in doubt
//	answered | drafted  | publishes the draft if rule 3 fills all of its holes, and goes on as any
//	answered | any      | drafted if only data is in doubt, else behind or reading
//	failed   | any      | the same, without a draft
type rounds[V any] struct {
	scope   scope
	drop    bool // the value of a node that cannot be read
	oneShot bool // each reading leaves a watch, and has a head of its own
	// decode makes a node of an answer; old is the node before, or nil.
	decode func(path string, old *kept[V], a inside.Answer) *kept[V]

	root   *treap[V]     // the newest readings
	old    *treap[V]     // those before begin, until all are read
	bytes  int64         // of data in root
	newest string        // the node that came into root last
	queue  []task        // what is in doubt; the last is read first
	doubts map[task]bool // true for what was never read, and may have been there before begin
	sent   map[task]bool // in the round under way, from doubts
	draft  draft[V]

	level      state[V] // what is to be published
	found      bool     // level is new
	loose      bool     // level may have newer readings than those at its zxid
	since      int64    // no reading is older
	last       int64    // the head of the round before
	unreadable map[string]struct{}

	// Nodes that change often: the round of the last event of each. Those of the last span
	// rounds are read in every round.
	stirred     map[string]int
	span, count int

	widest int   // how many nodes a round may have
	room   int64 // bytes that the answers to those of known size may have, beyond the first
}

// scope says which nodes belong to a cache.
type scope interface {
	top() string
	covers(path string) bool
	lists(path string) bool
}

// state is the tree after the transaction zxid.
type state[V any] struct {
	root *treap[V]
	zxid int64
}

// draft is a state but for its holes, which are data of nodes. Its zxid is 0 if there is none.
type draft[V any] struct {
	state[V]

	holes map[task]bool
}

func newRounds[V any](s scope, drop bool, decode func(string, *kept[V], inside.Answer) *kept[V]) *rounds[V] {
	return &rounds[V]{
		scope: s, drop: drop, decode: decode, widest: mostKnown, room: knownSize,
		doubts: map[task]bool{}, sent: map[task]bool{}, unreadable: map[string]struct{}{}, stirred: map[string]int{},
	}
}

// begin forgets everything, and wants the node at the path. Nodes of old that have not changed
// are taken again. No reading will be older than since.
func (r *rounds[V]) begin(old *treap[V], since int64) {
	path := r.scope.top()
	r.since, r.last = since, 0
	r.root, r.old, r.bytes, r.newest, r.queue = nil, old, 0, path, nil
	r.draft, r.level, r.found = draft[V]{}, state[V]{}, false
	clear(r.doubts)
	clear(r.sent)
	clear(r.unreadable)
	clear(r.stirred)
	r.span = 0
	r.doubt(task{path, ofData}, true)
}

// hear takes events between rounds.
func (r *rounds[V]) hear(events []inside.FeedEvent) {
	for _, e := range events {
		if t, ok := r.changed(e); ok {
			r.stir(t)
			r.doubt(t, false)
			if has(r.draft.holes, t) {
				r.draft = draft[V]{}
			}
		}
	}
}

// changed is the task that an event puts in doubt. The deletion of a node that is not known
// says nothing. A persistent watch also tells which child has come or gone.
func (r *rounds[V]) changed(e inside.FeedEvent) (t task, ok bool) {
	t = task{e.Path, ofData}
	switch {
	case !r.scope.covers(e.Path):
		return t, false
	case e.Kind == inside.FeedChildren:
		return task{e.Path, ofChildren}, r.oneShot && r.scope.lists(e.Path)
	case e.Kind == inside.FeedDeleted: // it may have ended the watch that waits for the node at the path
		return t, r.known(t) || r.oneShot && e.Path == r.scope.top()
	default:
		return t, true
	}
}

// known reports whether a task was read, or is to be.
func (r *rounds[V]) known(t task) bool {
	return has(r.doubts, t) || has(r.sent, t) || r.root.get(t.path) != nil
}

func has(set map[task]bool, t task) bool {
	_, there := set[t]
	return there
}

// doubt wants t to be read. If it is unread, there is no draft before that: changes below it may
// come and go without a trace.
func (r *rounds[V]) doubt(t task, unread bool) {
	was, there := r.doubts[t]
	if !there {
		r.queue = append(r.queue, t)
	}
	r.doubts[t] = was || unread
}

// stir notes that a node has changed in this round.
func (r *rounds[V]) stir(t task) {
	if len(r.stirred) >= mostKnown {
		clear(r.stirred) // too many to be read again and again
		r.span = 0
	}
	if t.what == ofData {
		r.stirred[t.path] = r.count
	}
}

// round returns what to read next: tasks in doubt, of which at most so many are of unknown size,
// and then nodes that change often.
func (r *rounds[V]) round(most int) (tasks []task) {
	clear(r.sent)
	unknown, bytes, paths := 0, int64(0), 0
	take := func(t task) bool {
		n := r.root.get(t.path)
		if len(tasks) >= r.widest || unknown >= most || bytes >= r.room || paths >= pathsSize {
			return false
		}
		if t.what != ofData || n == nil {
			unknown++
		}
		bytes, paths = bytes+sizeOf(n)+statSize, paths+len(t.path)
		tasks = append(tasks, t)
		r.sent[t] = r.doubts[t]
		return true
	}
	for len(r.queue) > 0 && take(r.queue[len(r.queue)-1]) {
		delete(r.doubts, r.queue[len(r.queue)-1])
		r.queue = r.queue[:len(r.queue)-1]
	}
	if len(r.queue) > 0 || r.span == 0 || r.oneShot {
		return tasks
	}
	for path, at := range r.stirred {
		t := task{path, ofData}
		switch {
		case r.count-at > r.span:
			delete(r.stirred, path)
		case !has(r.sent, t) && !take(t):
			return tasks
		}
	}
	return tasks
}

// failed puts back the tasks of a round without answers.
func (r *rounds[V]) failed() {
	for t, unread := range r.sent {
		r.doubt(t, unread)
	}
	clear(r.sent)
	r.draft = draft[V]{}
}

// answered ends a round with its head, with answers to its tasks, and with the events that came
// since the round before. A round without tasks is a sync.
func (r *rounds[V]) answered(head int64, tasks []task, answers []inside.Answer, events []inside.FeedEvent) {
	r.count++
	late := slices.IndexFunc(events, func(e inside.FeedEvent) bool { return e.After >= head })
	if late < 0 {
		late = len(events)
	}
	filled := r.draft
	r.draft = draft[V]{}
	whole := len(r.queue) == 0
	for _, e := range events[:late] {
		if t, ok := r.changed(e); ok {
			r.stir(t)
			if has(filled.holes, t) {
				filled = draft[V]{}
			}
			if r.oneShot || !has(r.sent, t) {
				r.doubt(t, r.sent[t])
			}
		}
	}
	found := r.take(tasks, answers, &filled)
	if len(r.queue) == 0 {
		r.level, r.found, r.old = state[V]{r.root, head}, true, nil
	} else {
		if filled.zxid > 0 && len(filled.holes) == 0 && !found {
			r.level, r.found = filled.state, true
		}
		if r.drafted(head); r.loose && whole && r.settled() {
			r.level, r.found = state[V]{r.root, max(r.level.zxid, r.since, r.last)}, true
		}
	}
	r.widen(whole, late)
	r.last = head
	clear(r.sent)
	r.hear(events[late:])
}

// take takes the answers into the readings, and fills the holes of a draft. It reports whether
// the answers have shown more that is to be read.
func (r *rounds[V]) take(tasks []task, answers []inside.Answer, filled *draft[V]) (found bool) {
	before := len(r.queue)
	for i, t := range tasks {
		if t.what != ofData {
			continue
		}
		e := r.data(t, answers[i])
		r.root = e.on(r.root)
		if has(filled.holes, t) && (!r.oneShot || answers[i].Err == nil && answers[i].Stat.Mzxid <= filled.zxid) {
			filled.root = e.on(filled.root)
			delete(filled.holes, t)
		}
	}
	for i, t := range tasks {
		switch {
		case t.what == ofChildren:
			r.children(t, answers[i])
		case t.what == ofBirth && answers[i].Err == nil:
			r.doubt(task{t.path, ofData}, true)
		}
	}
	found = len(r.queue) > before
	for i, t := range tasks {
		if a := answers[i]; a.Unwatched && (a.Err == nil || t.what == ofBirth) {
			r.doubt(t, false) // no watch stands
		}
	}
	return found
}

// drafted keeps the readings as a draft of the state at zxid, if only data is missing.
func (r *rounds[V]) drafted(zxid int64) {
	if len(r.queue) > mostKnown {
		return
	}
	for t, unread := range r.doubts {
		if unread || t.what != ofData {
			return
		}
	}
	r.draft = draft[V]{state[V]{r.root, zxid}, maps.Clone(r.doubts)}
}

// settled reports whether each node was read.
func (r *rounds[V]) settled() bool {
	for _, unread := range r.doubts {
		if unread {
			return false
		}
	}
	return true
}

// widen makes the next rounds wider while changes come too fast, and narrow again when they
// do not.
func (r *rounds[V]) widen(whole bool, early int) {
	const most = 64
	switch {
	case early == 0:
		r.span /= 2
	case whole && len(r.queue) > 0:
		r.span = min(2*r.span+1, most)
	}
}

// effect is what the data of a node does to a tree.
type effect[V any] struct {
	path  string
	node  *kept[V] // nil if it is gone
	again bool     // the node is another one than before
}

// on returns the tree with the effect. Nodes below an older node at the path are gone.
func (e effect[V]) on(t *treap[V]) *treap[V] {
	if e.node == nil {
		return t.remove(e.path)
	}
	for _, d := range e.gone(t) { // one by one: newer nodes may be below them
		t = t.cut(d.Path, d.Path+"/")
	}
	return t.put(e.node)
}

// gone are the nodes below an older node at the path.
func (e effect[V]) gone(t *treap[V]) (gone []*kept[V]) {
	if e.again {
		t.walk(e.path, behind(e.path), func(d *kept[V]) bool {
			if d.Path != e.path && d.Czxid < e.node.Czxid && !d.unread() {
				gone = append(gone, d)
			}
			return true
		})
	}
	return gone
}

// data is the effect of what was read of a node.
func (r *rounds[V]) data(t task, a inside.Answer) effect[V] {
	was := r.root.get(t.path)
	prior := was
	if prior == nil {
		prior = r.old.get(t.path)
	}
	delete(r.unreadable, t.path)
	list := task{t.path, ofChildren}
	switch {
	case errors.Is(a.Err, zk.ErrNoNode):
		if r.oneShot && t.path == r.scope.top() {
			r.discover(task{t.path, ofBirth})
		}
		r.root.walk(t.path, behind(t.path), func(n *kept[V]) bool {
			r.bytes -= int64(n.size)
			delete(r.unreadable, n.Path)
			return true
		})
		return effect[V]{path: t.path}
	case a.Err != nil: // the client may not read it, or takes no answer of that size
		r.unreadable[t.path] = struct{}{}
		large := errors.Is(a.Err, client.ErrReplyTooLarge)
		if large && r.scope.lists(t.path) {
			r.discover(list) // they may be read all the same
		}
		if was != nil && was.unread() && errors.Is(was.err(), client.ErrReplyTooLarge) == large {
			return effect[V]{path: t.path, node: was}
		}
		n := &kept[V]{Path: t.path}
		if prior != nil && !r.drop {
			*n = *prior
		}
		n.rare = &rare{n.owner(), &UnreadableError{Path: t.path, Err: a.Err}}
		r.bytes += int64(n.size) - sizeOf(was)
		return effect[V]{path: t.path, node: n}
	}
	n := prior
	if prior == nil || !prior.same(&a.Stat) {
		n = r.decode(t.path, prior, a)
	}
	e := effect[V]{path: t.path, node: n, again: was == nil || was.Czxid != n.Czxid || was.unread()}
	if was == n {
		return e
	}
	r.bytes += int64(n.size) - sizeOf(was)
	for _, d := range e.gone(r.root) {
		r.bytes -= int64(d.size)
	}
	r.newest = t.path
	if e.again && n.owner() <= 0 && (r.oneShot || a.Stat.NumChildren > 0) && r.scope.lists(t.path) {
		// The persistent watch tells of children that are made after it stands. But a server
		// that has just joined may have these already, before it runs the transactions that
		// make them.
		r.discover(list)
	}
	return e
}

func sizeOf[V any](n *kept[V]) int64 {
	if n == nil {
		return 0
	}
	return int64(n.size)
}

// discover doubts a task that no answer of this round shows as it is at the head.
func (r *rounds[V]) discover(t task) {
	if r.oneShot || !has(r.sent, t) {
		r.doubt(t, true)
	}
}

// children takes in the names of the children of a node.
func (r *rounds[V]) children(t task, a inside.Answer) {
	if a.Err != nil {
		if r.root.get(t.path) != nil && errors.Is(a.Err, zk.ErrNoNode) {
			r.discover(task{t.path, ofData})
		}
		if r.root.get(t.path) != nil && errors.Is(a.Err, zk.ErrNoAuth) {
			r.root = r.data(task{t.path, ofData}, a).on(r.root) // it is tried again
		}
		return
	}
	there := make(map[string]struct{}, len(a.Names))
	for _, name := range a.Names {
		path := t.path + "/" + name
		if t.path == "/" {
			path = t.path + name
		}
		if !r.scope.covers(path) {
			continue
		}
		there[path] = struct{}{}
		if r.root.get(path) == nil {
			r.discover(task{path, ofData})
		}
	}
	var gone []string
	r.root.children(t.path, func(c *kept[V]) bool {
		if _, ok := there[c.Path]; !ok {
			gone = append(gone, c.Path)
		}
		return true
	})
	for _, path := range gone {
		r.root = r.data(task{path, ofData}, inside.Answer{Err: zk.ErrNoNode}).on(r.root)
	}
}
