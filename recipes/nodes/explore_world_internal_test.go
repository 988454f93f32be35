package nodes

import (
	"errors"
	"fmt"
)

// The explorer walks all moves of a keeper with a server. The reference is what the server
// has: which nodes stand, which session owns each, whether this object made it, and its data.

// places is how many paths there may be. The only path of a node with the caller's name is
// 0. That of a node with a number is its number, that of a protected node is its UUID.
const places = 5

// none is a path that is not known.
const none = -1

// entry is a node on the server.
type entry struct {
	czxid   int8 // 0 if there is none
	owner   int8 // its session; 0 if it has none
	version int8
	data    int8 // the gen that this object has written, or a stranger's
	mine    bool // made by this object
}

// tree is the parent with its nodes.
type tree struct {
	at   [places]entry
	next int8 // the number that the server gives next
}

// String lists the nodes that stand.
func (t tree) String() string {
	text := fmt.Sprintf("next number %d", t.next)
	for at, e := range t.at {
		if e.czxid != 0 {
			text += fmt.Sprintf(", %d: %+v", at, e)
		}
	}
	return text
}

const (
	strangersData    = 100
	strangersSession = 9
)

// world is a keeper, the part of its goroutine that is no I/O, and the server.
type world struct {
	k      keeper
	tree   tree
	before tree // what a server shows that is behind
	late   bool // the client's server is behind
	zxid   int8

	path     int8 // as PersistentNode.path and so on
	prefix   int8
	next     int8
	numbered bool
	uuids    int8 // how many were given

	session int8
	over    bool // the client knows that its session is over
	alive   uint8
	past    uint8
	ghosts  [4]int8 // by their sessions, 0 if the czxid is not known
	gen     int8
	stat    entry // of the newest look
	statAt  int8
	watched bool
	fired   bool // an event of the watch is on its way
	heard   bool // and has arrived
	wake    bool
	closing bool
	left    bool // a server has refused the deletion
	robbed  bool // an operator has deleted a node
	faults  int8
	sets    int8
	starts  int8 // that can follow

	told    State
	toldOf  int8
	written int8
	shown   bool  // the newest look has shown the node that is told
	doubt   bool  // nobody can tell a sibling's node from that of the newest create or replacement
	met     bool  // the node that the newest look has shown was met in doubt
	doubted uint8 // sessions that were lost in doubt
}

// own is the node at the path, if it is known.
func (w *world) own() entry {
	if w.path == none {
		return entry{}
	}
	return w.tree.at[w.path]
}

// view is what the client's server shows.
func (w *world) view() *tree {
	if w.late {
		return &w.before
	}
	return &w.tree
}

// change is what the server does when a node changes.
func (w *world) change(at int8, to entry) {
	w.tree.at[at] = to
	w.fired = w.fired || w.watched && at == w.statAt
}

func (w *world) makes(at, owner, data int8, mine bool) {
	w.zxid++
	w.tree.next++
	w.change(at, entry{czxid: w.zxid, owner: owner, data: data, mine: mine})
}

// ends ends sessions on the server.
func (w *world) ends(sessions uint8) {
	w.alive &^= sessions
	for at, e := range w.tree.at {
		if e.owner != 0 && e.owner != strangersSession && sessions&(1<<e.owner) != 0 {
			w.change(int8(at), entry{})
		}
	}
}

// catchesUp is what happens when the client's server shows all that there is.
func (w *world) catchesUp() {
	w.late = false
	w.fired = w.fired || w.watched && w.before.at[w.statAt] != w.tree.at[w.statAt]
}

func b2i(b bool) int8 {
	if b {
		return 1
	}
	return 0
}

// owner is the session that owns the nodes of this object.
func (m *model) owner(w *world) int8 { return w.session * b2i(m.mode.ephemeral()) }

// lost reports whether a node is of a lost session of this object.
func (w *world) lost(e entry) bool {
	return e.owner != 0 && e.owner != strangersSession && e.owner != w.session &&
		w.past&(1<<e.owner) != 0 && (w.ghosts[e.owner] == 0 || w.ghosts[e.owner] == e.czxid)
}

// target is as PersistentNode.target.
func (m *model) target(w *world) (at int8, whole bool) {
	if m.set.protected {
		if w.prefix == none {
			w.prefix = w.uuids
			w.uuids++
		}
		return w.prefix, !m.mode.sequential() || w.numbered
	}
	return w.path, w.path != none
}

func (w *world) stands(at int8) { w.path, w.numbered = at, true }

var errNoPath = errors.New("looks for a node whose path is not known")

// serve is the server's part of a step, and the bookkeeping of PersistentNode.take.
func (m *model) serve(w *world, at step, a *answer) error {
	switch at {
	case syncs:
		w.catchesUp()
	case confirms:
		if w.next == none {
			return errNoPath
		}
		if a.there = w.view().at[w.next].czxid != 0; a.there {
			w.stands(w.next)
		}
	case searches:
		newest := int8(0)
		for i, e := range w.view().at {
			own := e.owner == w.session || w.lost(e)
			if m.set.protected {
				own = int8(i) == w.prefix
			}
			if own && e.czxid > newest {
				newest, a.there = e.czxid, true
				w.stands(int8(i))
			}
		}
	case counts:
		free := 0
		for i, e := range w.view().at {
			if e.czxid != 0 {
				free = i + 1
			}
		}
		w.stands(int8(free))
	case creates:
		m.create(w, a)
	case looks, checks:
		if w.path == none {
			return errNoPath
		}
		now := w.view().at[w.path]
		a.there, a.czxid, a.first, a.owner = now.czxid != 0, int64(now.czxid), now.version == 0, others
		switch {
		case now.owner == 0:
			a.owner = noSession
		case now.owner == w.session:
			a.owner = present
		case w.lost(now):
			a.owner = lost
		}
	case reads:
		now := w.view().at[w.path]
		if now.czxid == 0 {
			a.outcome = noNode
			return nil
		}
		a.czxid, a.equal = int64(w.stat.czxid), now.czxid == w.stat.czxid && int(now.data) == w.k.sent
	case sets, deletes, replaces:
		return m.write(w, at, a)
	}
	return nil
}

// create is the server's part of a create, with the bookkeeping of PersistentNode.create.
func (m *model) create(w *world, a *answer) {
	w.catchesUp()
	at, whole := m.target(w)
	if !whole && !m.set.protected {
		at = w.tree.next
	}
	if w.tree.at[at].czxid != 0 {
		a.outcome, w.path = nodeExists, w.next
		return
	}
	w.makes(at, m.owner(w), w.gen, true)
	w.stands(at)
	a.czxid = int64(w.zxid)
}

var (
	errTaken   = errors.New("another's node is deleted or replaced")
	errWritten = errors.New("another's node is written")
)

// write is the server's part of a step that has the version of the newest look.
func (m *model) write(w *world, at step, a *answer) error {
	w.catchesUp()
	target := w.path
	if at == replaces {
		target, _ = m.target(w)
	}
	node := w.own()
	switch {
	case node.czxid == 0:
		a.outcome = noNode
		return nil
	case node.version != w.stat.version:
		a.outcome = badVersion
		return nil
	}
	// The node is ours, or took its place since the look.
	mayHit := node.mine || node.czxid != w.stat.czxid || m.set.takeOver || w.met ||
		node.owner != strangersSession && w.doubted&(1<<node.owner) != 0
	if at == sets {
		if !mayHit && m.mode.ephemeral() {
			return errWritten
		}
		node.version, node.data = node.version+1, w.gen
		w.change(w.path, node)
		a.czxid = int64(node.czxid)
		return nil
	}
	if !mayHit {
		return errTaken
	}
	w.change(w.path, entry{})
	if at == replaces {
		w.makes(target, m.owner(w), w.gen, true)
		w.stands(target)
	}
	return nil
}
