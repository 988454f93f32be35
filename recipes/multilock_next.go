package recipes

// gathering is what an acquire of several locks has of those that ctx did not give. It
// decides what the acquire does next, and does no I/O.
//
// The locks stand in a row, in the order in which they are named. An acquire that waits
// holds locks from the front of the row, and stands in the queue of the next one alone. So
// no two acquires that share an order of locks wait for each other.
//
//	the acquire                                   event      it does
//	has all locks                                 any        done
//	stands in no queue, may wait, and             any        joinFirst
//	  is to join the next one alone
//	stands in no queue, otherwise                 any        joinRest: join or crowd
//	stands in queues, and must not wait           any        look
//	stands in several queues, and may wait        join,      look
//	                                              grant
//	stands in several queues, and may wait        block      withdraw
//	stands in one queue, and may wait             any        await
//
// look, withdraw and await are about the first of these queues. withdraw leaves all others.
// An acquire that must not wait ends if a look finds a contender ahead.
type gathering struct {
	wait    bool // for other contenders
	alone   bool // the first of the missing locks is to be joined alone
	missing int  // locks that it has not
	joined  int  // of these, from the first on: it stands in their queues
	has     int  // locks of the row
	blocked bool // a contender is ahead in the first queue
}

// gatherDeed is what an acquire of several locks does next.
type gatherDeed int

const (
	gatherDone gatherDeed = iota
	joinFirst             // join the queue of the first missing lock, as the lock itself does
	joinRest              // join the queues of the missing locks of one client, up to one that is contended, in one transaction
	look                  // take the turn in the first queue, if it has come
	withdraw              // delete the nodes behind the first
	await                 // wait for the turn in the first queue, and take it
)

// next is the deed that follows.
func (g *gathering) next() gatherDeed {
	switch {
	case g.missing == 0:
		return gatherDone
	case g.joined == 0 && g.wait && g.alone:
		return joinFirst
	case g.joined == 0:
		return joinRest
	case !g.wait || !g.blocked && g.joined > 1:
		return look
	case g.joined > 1:
		return withdraw
	default:
		return await
	}
}

// join notes that the acquire stands in the queues of n locks.
func (g *gathering) join(n int) { g.joined = n }

// crowd notes that another acquire of the client contends for the next lock.
func (g *gathering) crowd() { g.alone = true }

// block notes that a look has found a contender ahead.
func (g *gathering) block() { g.blocked = true }

// withdrawn notes that no node behind stands any more.
func (g *gathering) withdrawn() { g.joined = 1 }

// grant notes that the acquire has the first of the missing locks. only says that the next one
// cannot be joined together with another.
func (g *gathering) grant(only bool) {
	g.missing, g.joined, g.has, g.blocked, g.alone = g.missing-1, g.joined-1, g.has+1, false, only
}
