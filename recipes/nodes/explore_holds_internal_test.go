package nodes

import "errors"

var (
	errGhostly  = errors.New("is told as Ours, and the newest look has not shown it")
	errMissed   = errors.New("rests as Ours, and no such node stands")
	errHidden   = errors.New("the node stands and is known, and is not told as Ours")
	errOthers   = errors.New("another's node is told as Ours")
	errTwice    = errors.New("two nodes of this object stand")
	errRobbed   = errors.New("is told as Removed, and nobody has deleted it")
	errLeftover = errors.New("a node is left after Close")
)

// publish follows PersistentNode.inSession and remove.
func (m *model) publish(w *world, is news) {
	tell := func(s State) {
		w.told, w.toldOf = s, 0
		if s == Ours {
			w.toldOf, w.written = int8(w.k.czxid), int8(w.k.wrote)
		}
	}
	switch {
	case w.k.closed:
		if w.over {
			if m.mode.ephemeral() {
				w.k.at = ended
			} else {
				w.session++
				w.alive |= 1 << w.session
				w.over, w.watched = false, false
				w.k.begins(true)
			}
		}
	case w.closing:
		tell(Absent)
		w.k.closes()
	case w.k.at == removed:
		tell(Removed)
		w.closing = true
		w.k.closes()
	case w.over:
		tell(Absent)
	case is == isErr:
		tell(w.k.state(Absent))
	case is == isDenied:
		tell(w.k.state(Refused))
	case is == isForeign:
		tell(Foreign)
	case is != nothing:
		tell(Absent)
	}
	if !w.over {
		w.k.next(int(w.gen))
	}
	if w.k.at == rests && w.k.stands || w.k.at == sets && w.told != Ours {
		tell(Ours)
	}
}

// holds checks the state against the server.
func (m *model) holds(w *world) error {
	session := w.alive&(1<<w.session) != 0
	seen := w.tree.at[w.statAt]
	standing, left := 0, false
	for _, e := range w.tree.at {
		standing += int(b2i(e.mine))
		left = left || e.mine && (e.owner == 0 || e.owner == w.session && session && !w.over)
	}
	switch {
	case standing > 1:
		return errTwice
	case w.told == Ours && !w.shown:
		return errGhostly
	case w.told == Ours && m.mode.ephemeral() && w.stat.czxid == w.toldOf && !w.stat.mine && !w.met:
		return errOthers
	case w.told == Ours && seen.czxid != w.toldOf && w.k.at == rests && session && !w.fired && !w.late:
		return errMissed
	case w.told != Ours && w.shown && w.stat.mine && seen.czxid == w.stat.czxid && !w.closing && !w.over && session && w.k.claim != doubtful:
		return errHidden
	case w.told == Removed && !w.robbed:
		return errRobbed
	case w.k.at == ended && left && !w.left:
		return errLeftover
	}
	return nil
}

// waits says who waits where nothing more will happen.
func (m *model) waits(w *world) string {
	own := w.own()
	foreign := own.czxid != 0 && w.told == Foreign && !own.mine
	switch {
	case w.k.at == ended:
		return ""
	case w.closing:
		return "Close"
	case foreign && !m.mode.sequential():
		return ""
	case w.told != Ours || own.czxid == 0:
		return "Wait"
	case w.written < w.gen || own.data != w.gen && own.data != strangersData:
		return "Set"
	}
	return ""
}
