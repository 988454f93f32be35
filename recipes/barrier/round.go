package barrier

import "slices"

// round is a ready node as far as decisions need it. The zero round is none.
type round struct {
	opened int64    // czxid of the ready node
	named  []string // the members that were counted; nil if Curator has opened it
}

// standing is a member's node as far as decisions need it.
type standing struct {
	name  string
	czxid int64
}

// stood reports whether a node stood when the round was opened, if it stands now.
func (r round) stood(czxid int64) bool { return czxid < r.opened }

// has is the one rule of who belongs to a round: whose node stood when the round was
// opened, and whom the ready node names. A name stays the same when a member makes its node
// again after a lost session.
func (r round) has(m standing) bool {
	return r.opened != 0 && (r.stood(m.czxid) || slices.Contains(r.named, m.name))
}

// awaits reports whether a Leave waits for another member, of which the node stood when it
// began. r is the round that the leaver works in, or none if it is not known.
//
//	the other                           a ready node stands  waits
//	stood at r, or r is not known       -                    yes
//	its node says that it joined late   -                    yes
//	is Curator's, which writes nothing  -                    yes
//	any other                           yes                  yes: it may yet join late
//	any other                           no                   no: it waits for another round
func (r round) awaits(m standing, says, open bool) bool {
	return r.opened == 0 || r.stood(m.czxid) || says || open
}

// entering decides for one Enter. It has no I/O.
//
//	state    ready node                           member of it stands  next
//	away     none, or it has the member           -                    join
//	away     another                              yes                  awaitEnd
//	away     another                              no                   clearReady
//	joined   the node stood when one was made     -                    pass
//	joined   it has the member                    -                    joinLate, and pass
//	joined   none                                 -                    await
//	joined   another                              no                   clearReady
//	joined   another, without WithRounds          yes                  joinLate, and pass as in Curator
//	joined   another, with WithRounds             yes                  withdraw
//
// Away is a member without a node in this session. Only a member with WithRounds looks at
// the ready node then; any other joins. "Has" is [round.has].
type entering struct {
	name   string
	rounds bool
	czxid  int64 // of the node in this session, 0 while away
	first  int64 // of the first node, in whatever session
	// passed says that a round was opened while the node stood in this session.
	passed bool
}

// deed is what an Enter does next.
type deed int

const (
	join deed = iota + 1
	awaitEnd
	clearReady
	pass
	await
	withdraw
	joinLate // note in the node that it works in a round that was open before
	askLive  // whether a member of the round stands, and decide again
)

// away begins a new session, in which the member has no node yet.
func (e *entering) away() { e.czxid, e.passed = 0, false }

// joined notes the node of this session.
func (e *entering) joined(czxid int64) {
	e.czxid = czxid
	if e.first == 0 {
		e.first = czxid
	}
}

// saw notes a ready node that was seen, and may be gone again.
func (e *entering) saw(r round) {
	if e.czxid != 0 && r.opened != 0 && r.stood(e.czxid) {
		e.passed = true
	}
}

// created notes the event that a ready node was made while the node stood. Which one is
// not known.
func (e *entering) created() { e.passed = true }

// has reports whether the member belongs to a round. Curator names no members: then a
// member that has lost its session passes with any round opened during this Enter.
func (e *entering) has(r round) bool {
	if r.opened != 0 && r.named == nil && e.first != 0 && e.first < r.opened {
		return true
	}
	return e.czxid != 0 && r.has(standing{e.name, e.czxid}) || e.czxid == 0 && slices.Contains(r.named, e.name)
}

// joinedLate notes that the node says so.
func (e *entering) joinedLate() { e.passed = true }

// next decides. live is whether another member of the round stands, nil if that was not
// asked yet.
func (e *entering) next(r round, live *bool) deed {
	here := e.czxid != 0
	e.saw(r)
	switch {
	case here && e.passed:
		return pass
	case here && e.has(r):
		return joinLate
	case !here && (!e.rounds || r.opened == 0 || e.has(r)):
		return join
	case r.opened == 0:
		return await
	case live == nil:
		return askLive
	case !*live:
		return clearReady
	case !here:
		return awaitEnd
	case e.rounds:
		return withdraw
	}
	return joinLate
}

// Deeds of a Leave.
const (
	removeBoth     deed = iota + 100 // the own node and the ready node
	awaitOther                       // that another member's node is gone
	removeAndAwait                   // watch, remove the own node, and await
	tidy                             // remove a ready node that a crash has left
)

// leaveNext decides for one Leave, in Curator's order. wait are the others that are still
// waited for, sorted. It has no I/O.
//
//	own node  others         next            of whom
//	stands    none           removeBoth      -
//	stands    all higher     awaitOther      the highest
//	stands    one is lower   removeAndAwait  the lowest
//	gone      some           awaitOther      the lowest
//	gone      none           tidy            -
func leaveNext(own string, gone bool, wait []string) (next deed, whom string) {
	switch {
	case len(wait) == 0 && gone:
		return tidy, ""
	case len(wait) == 0:
		return removeBoth, ""
	case gone:
		return awaitOther, wait[0]
	case own < wait[0]:
		return awaitOther, wait[len(wait)-1]
	}
	return removeAndAwait, wait[0]
}
