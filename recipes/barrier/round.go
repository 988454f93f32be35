package barrier

import "slices"

// round is a ready node as far as decisions need it. The zero round is none.
type round struct {
	opened int64    // czxid of the ready node
	names  []string // of the members that were counted, and of those that have joined since
	unread bool     // the names may not be read
}

// standing is a member's node as far as decisions need it.
type standing struct {
	name    string
	czxid   int64
	curator bool // it is not of this library, and does not say whether it is inside
	late    bool // it says that it has come into a round that was open
}

// stood reports whether a node that stands now stood when the round was opened.
func (r round) stood(czxid int64) bool { return czxid != 0 && czxid < r.opened }

// has is the one rule of who belongs to a round: whose node stood when it was opened, and
// whom the ready node names. A name stays the same when a member makes its node again after
// a lost session. If the names may not be read, everybody is taken for a member.
func (r round) has(m standing) bool {
	return r.opened != 0 && (r.unread || r.stood(m.czxid) || slices.Contains(r.names, m.name))
}

// deed is what an Enter or a Leave does next.
type deed int

// Deeds of an Enter, and of a Leave.
const (
	join        deed = iota // make the own node
	await                   // open the round, or wait for one
	pass                    // be inside
	register                // write the own name into the ready node, and pass
	withdraw                // remove the own node, and come again
	awaitEnd                // wait for the end of a round, without a node
	removeStale             // remove the ready node that a crash has left
	askLive                 // see whether a member of the round stands, and decide again

	awaitOther     // wait for another member
	removeAndAwait // watch another, remove the own node, and wait
	removeBoth     // the own node and the ready node
	removeOwn      // the own node; another member removes the ready node
	tidy           // remove the ready node of members that have died
	leftAll        // return
	deleted        // another client has deleted the own node
)

// entering decides for one Enter. It has no I/O.
//
//	own node          ready node           member of it stands  next
//	stands            made since           -                    pass
//	stands            none                 -                    await
//	stands            names this member    -                    register
//	stands            another              no                   removeStale
//	stands            another              yes                  register, as in Curator; with WithRounds withdraw
//	-, no WithRounds  -                    -                    join
//	-                 none, or names this  -                    join
//	-                 another              no                   removeStale
//	-                 another              yes                  awaitEnd
//
// "Made since" is made while the node stood, and may be gone again. Every change of who
// belongs to a round, and its end, is a write of the ready node in the version that was
// read before the members were listed. So the ready node stands while a member of the
// round is inside, unless Curator or an operator removes it.
type entering struct {
	name   string
	rounds bool
	czxid  int64 // of the node in this session, 0 without one
	passes bool  // a round was opened while the node stood, or has registered this member
}

// away begins a new session, in which the member has no node yet.
func (e *entering) away() { e.czxid, e.passes = 0, false }

// saw notes that a ready node was seen.
func (e *entering) saw(opened int64) {
	e.passes = e.passes || round{opened: opened}.stood(e.czxid)
}

// next decides. live says whether another member of the round stands, and is nil if that
// was not asked.
func (e *entering) next(r round, live *bool) deed {
	here, named := e.czxid != 0, slices.Contains(r.names, e.name)
	e.saw(r.opened)
	switch {
	case here && e.passes:
		return pass
	case here && r.opened == 0:
		return await
	case here && named:
		return register
	case !here && (!e.rounds || r.opened == 0 || named):
		return join
	case live == nil:
		return askLive
	case !*live:
		return removeStale
	case !here:
		return awaitEnd
	case e.rounds:
		return withdraw
	}
	return register
}

// leaving decides for one Leave, in Curator's order. It has no I/O.
//
//	own node  waits for      the round's ready node        next            for whom
//	stands    all higher     -                             awaitOther      the highest
//	stands    one is lower   -                             removeAndAwait  the lowest
//	stands    none           stands, names no other        removeBoth
//	stands    none           stands, names one that stands removeOwn
//	stands    none           gone                          removeOwn
//	gone      some           -                             awaitOther      the lowest
//	gone      none           stands, names no other        tidy
//	gone      none           else                          leftAll
//
// It waits for the members that stood when it began, as [leaving.awaits] says.
type leaving struct {
	own    string
	opened int64    // czxid of the ready node of its round, 0 if it was gone before it was read
	gone   bool     // the own node is deleted
	begin  int64    // the newest change of the directory when the call began
	wait   []string // the others that stood then and may stand yet, sorted
}

// next decides by the ready node, and the members that were listed after it was read.
func (l *leaving) next(r round, names []string, newest int64) (next deed, whom string) {
	if l.begin == 0 {
		l.begin, l.wait = newest, slices.Clone(names)
	}
	if !l.gone && !slices.Contains(names, l.own) {
		l.gone = true
		return deleted, ""
	}
	l.wait = slices.DeleteFunc(l.wait, func(name string) bool { return name == l.own || !slices.Contains(names, name) })
	open := r.opened != 0 && r.opened == l.opened
	ours := open && !slices.ContainsFunc(names, func(name string) bool { return name != l.own && r.has(standing{name: name}) })
	switch {
	case len(l.wait) > 0 && l.gone:
		return awaitOther, l.wait[0]
	case len(l.wait) > 0 && l.own < l.wait[0]:
		return awaitOther, l.wait[len(l.wait)-1]
	case len(l.wait) > 0:
		return removeAndAwait, l.wait[0]
	case !l.gone && ours:
		return removeBoth, ""
	case !l.gone:
		return removeOwn, ""
	case ours:
		return tidy, ""
	}
	return leftAll, ""
}

// awaits reports whether the Leave waits for another member, whose node stands. opened is
// the czxid of the ready node, read after that node, or 0 without one.
//
//	the other's node                       the round  awaits
//	is younger than the call               -          no
//	stood when the round was opened        -          yes
//	any, if the round is not known         -          yes
//	is Curator's, or says that it is late  -          yes
//	else                                   is open    yes: it is inside, or may yet come in
//	else                                   is over    no: it waits for another round
func (l *leaving) awaits(m standing, opened int64) bool {
	if m.czxid > l.begin {
		return false
	}
	return l.opened == 0 || m.curator || m.late || opened == l.opened || round{opened: l.opened}.stood(m.czxid)
}

// forget waits for a member no longer.
func (l *leaving) forget(name string) {
	l.wait = slices.DeleteFunc(l.wait, func(n string) bool { return n == name })
}
