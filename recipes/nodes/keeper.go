package nodes

// keeper decides what is done with one node. It is a machine without I/O, clock, goroutine
// and context: [keeper.next] says the step, and [keeper.answered] takes its answer, which
// leads to the next step. [PersistentNode.run] takes the steps and publishes the status.
//
// Whether the node stands and why the newest try failed are two facts: a step that fails
// takes no node away that a look has shown.
//
//	step      answer                            then
//	decides                                     syncs if it is unsure, creates if nothing stands at the path,
//	                                            looks otherwise
//	syncs     done                              searches, confirms, counts, or decides
//	searches  there, or not                     decides
//	confirms  there, or not                     decides
//	counts    done: a number is free            decides, and creates with that number
//	creates   done: the node is made            looks
//	          the node exists                   syncs
//	looks     ours                              stands
//	          nothing                           creates, after eases if the node stood
//	          a ghost: of a lost session        replaces, after eases if the node stood
//	          a persistent node, maybe made     reads
//	          foreign                           probes; decides if the server gives another number
//	          not ours, with StopWhenRemoved    proves
//	reads     its data is ours, or not          stands: made, or adopted
//	stands    has the newest data               rests; is told as Ours
//	          has older data                    sets; is told as Ours
//	sets      done                              stands; looks if it met another node
//	          no node, or another version       syncs
//	replaces  done                              looks; the node of this session is ours
//	          no node                           creates
//	          another version                   syncs
//	probes    may be read                       rests, and is told as Foreign
//	          may not be read                   pauses, since no event comes
//	proves    done: the session goes on         removed, for good
//	rests, eases, pauses                        decides, or what comes after eases
//	any       the answer is lost                syncs, and finds the node that was made
//	          refused, or failed                pauses, then decides
//
// After [keeper.closes] the machine removes what this object has made:
//
//	decides                                     syncs if it is unsure, ended if nothing can be left, checks otherwise
//	checks    made by this object, or a ghost   deletes
//	          maybe made                        reads
//	          nothing, or another's             ended
//	deletes   done, or no node                  ended
//	          another version, or lost          syncs
//	any       refused                           ended
//	          failed                            pauses, then decides
//
// [keeper.opens] begins again after a start that has failed, with what is known.
type keeper struct {
	ephemeral, sequential, protected bool // of the mode and the options
	takeOver, stopWhenRemoved        bool

	at     step
	after  step // comes after eases
	claim  claim
	unsure unsure
	aim    aim
	stands bool  // a look has shown the node, and none has shown that it is gone
	czxid  int64 // of the node that is ours, 0 if none is known
	wrote  int   // the gen of the data that the node has
	sent   int   // the gen of the newest create
	closed bool  // the node is being removed
}

// step is what is to be done next.
type step uint8

const (
	decides step = iota
	syncs
	searches
	confirms
	counts // which numbers are taken, and takes a free one
	creates
	looks
	reads
	stands
	sets
	replaces
	probes
	proves
	rests
	eases // pauses, if the node did not stand for long
	pauses
	checks
	deletes
	removed // by another client, for good
	ended
)

// claim is by what right a node is this object's.
type claim uint8

const (
	unclaimed claim = iota
	past            // a node of a lost session may stand
	doubtful        // a node of this session at the path is ours: the answer to its create is lost
	adopted         // another client has made it
	made
)

// unsure is what must be found out before all else.
type unsure uint8

const (
	sure    unsure = iota
	behind         // the server may not know yet what another server has passed on
	crowded        // a node has the number that the server would give, and no other comes of it
	named          // a create in doubt may have made the node, whose name is known
	search         // the same, and its number is not known
)

// aim is what is known of the path.
type aim uint8

const (
	nowhere aim = iota // it is not known before a server gives it
	free               // nothing stands there, as far as is known
	taken              // something may stand there
)

// outcome is how a step has gone.
type outcome uint8

const (
	done outcome = iota
	noNode
	nodeExists
	badVersion
	noAuth
	unknown // the answer is lost
	denied  // for another reason
	failed  // without an answer, and nothing was done
)

// owner is whose session owns a node.
type owner uint8

const (
	noSession owner = iota
	present
	lost // of this object, and lost
	others
)

// answer is what a step has brought.
type answer struct {
	outcome outcome
	there   bool
	czxid   int64
	owner   owner
	first   bool // the node has version 0
	equal   bool // the node has the data of the newest create
	expired bool // the servers may have deleted the node after its time to live
	gen     int  // of the data that was sent
}

// news is what the status becomes.
type news uint8

const (
	nothing  news = iota // it stays
	isErr                // the newest try failed, and the node stands or does not
	isDenied             // the newest try was refused, and the node stands or does not
	isForeign
	isDeleted  // it is made again
	isReplaced // another client's node stands at the path
	isGone     // whether for good is not known yet
)

func newKeeper(mode Mode, set settings) keeper {
	k := keeper{
		ephemeral: mode.ephemeral(), sequential: mode.sequential(), protected: set.protected,
		takeOver: set.takeOver, stopWhenRemoved: set.stopWhenRemoved, aim: free,
	}
	if k.sequential || k.protected {
		k.aim = nowhere
	}
	return k
}

// state is what is told after a step that failed.
func (k *keeper) state(missing State) State {
	if k.stands {
		return Ours
	}
	return missing
}

// owes reports whether a node that this object has made may stand.
func (k *keeper) owes() bool {
	return k.claim != unclaimed && k.claim != adopted || k.unsure >= named
}

// begins notes a session. other says that it is not the one before; it returns whether a
// node of that one may stand, and its czxid if that is known.
func (k *keeper) begins(other bool) (remember bool, czxid int64) {
	k.at = decides
	if !other {
		return false, 0
	}
	k.stands = false
	if k.closed {
		k.unsure = max(k.unsure, behind)
	}
	if !k.ephemeral {
		return false, 0
	}
	if k.claim != unclaimed { // what was made, also in doubt, is a ghost by now
		remember, k.claim = k.claim != past, past
	}
	czxid, k.czxid = k.czxid, 0
	return remember || k.unsure >= named, czxid
}

// opens begins to keep the node, also again after [keeper.closes]. A node that a server has
// refused to delete is this object's still. If it is gone by now, that is no removal for
// StopWhenRemoved: it was to be deleted. So a server that is behind is not asked for it.
func (k *keeper) opens() {
	k.at, k.closed, k.stands = decides, false, false
	if k.owes() {
		k.unsure = max(k.unsure, behind)
	}
	if k.claim == made && k.stopWhenRemoved {
		k.claim = doubtful
	}
	if k.claim != made {
		k.czxid = 0
	}
}

// closes begins to remove the node.
func (k *keeper) closes() {
	k.at, k.closed, k.stands = decides, true, false
	if k.unsure == crowded {
		k.unsure = behind
	}
}

// next is the step that is to be taken. gen is that of the newest data.
func (k *keeper) next(gen int) step {
	switch {
	case k.at == stands && k.wrote < gen:
		k.at = sets
	case k.at == stands:
		k.at = rests
	case k.at != decides:
	case k.closed && !k.owes():
		k.at = ended
	case k.unsure != sure:
		k.at = syncs
	case k.closed && k.aim == taken:
		k.at = checks
	case k.closed:
		k.at = ended
	case k.aim == taken:
		k.at = looks
	default:
		k.at = creates
	}
	return k.at
}
