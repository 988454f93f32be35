// Package gathering decides in which queues an acquire of several locks stands next, and for
// which of them it waits. It does no I/O.
//
// Its face is [Acquire]: [Acquire.Next] says what to do, and the other methods note what came
// of it. The shell is multilock.go of package recipes, which has the nodes and the holds. On
// failure the shell notes nothing, gives all back, and throws the Acquire away.
package gathering

// Acquire is what an acquire of several locks has of those that its context did not give.
//
// The locks stand in a row, in the order in which they are named. An acquire that waits
// holds locks from the front of the row, and stands in the queue of the next one alone. So
// no two acquires that share an order of locks wait for each other.
//
//	the acquire                                   event      it does
//	has all locks                                 any        Done
//	stands in no queue, may wait, and             any        JoinFirst
//	  is to join the next one alone
//	stands in no queue, otherwise                 any        JoinRest: Join or Crowd
//	stands in queues, and must not wait           any        Look
//	stands in several queues, and may wait        Join,      Look
//	                                              Grant
//	stands in several queues, and may wait        Block      Withdraw
//	stands in one queue, and may wait             any        Await
//
// Look, Withdraw and Await are about the first of these queues. Withdraw leaves all others.
// An acquire that must not wait ends if a look finds a contender ahead.
type Acquire struct {
	wait    bool // for other contenders
	alone   bool // the first of the missing locks is to be joined alone
	missing int  // locks that it has not
	joined  int  // of these, from the first on: it stands in their queues
	has     int  // locks of the row
	blocked bool // a contender is ahead in the first queue
}

// Deed is what an acquire of several locks does next.
type Deed int

// What an acquire does.
const (
	Done      Deed = iota
	JoinFirst      // join the queue of the first missing lock, as the lock itself does
	JoinRest       // join the queues of the missing locks of one client, up to one that is contended, in one transaction
	Look           // take the turn in the first queue, if it has come
	Withdraw       // delete the nodes behind the first
	Await          // wait for the turn in the first queue, and take it
)

// Of returns an acquire of missing locks. With wait it waits for other contenders. alone says
// that the first lock is to be joined alone.
func Of(missing int, wait, alone bool) Acquire {
	return Acquire{wait: wait, alone: alone, missing: missing}
}

// None reports whether the acquire has none of the locks yet.
func (g *Acquire) None() bool { return g.has == 0 }

// Blocked reports whether a look has found a contender ahead in the first queue.
func (g *Acquire) Blocked() bool { return g.blocked }

// Next is the deed that follows.
func (g *Acquire) Next() Deed {
	switch {
	case g.missing == 0:
		return Done
	case g.joined == 0 && g.wait && g.alone:
		return JoinFirst
	case g.joined == 0:
		return JoinRest
	case !g.wait || !g.blocked && g.joined > 1:
		return Look
	case g.joined > 1:
		return Withdraw
	default:
		return Await
	}
}

// Join notes that the acquire stands in the queues of n locks.
func (g *Acquire) Join(n int) { g.joined = n }

// Crowd notes that another acquire of the client contends for the next lock.
func (g *Acquire) Crowd() { g.alone = true }

// Block notes that a look has found a contender ahead.
func (g *Acquire) Block() { g.blocked = true }

// Withdrawn notes that no node behind stands any more.
func (g *Acquire) Withdrawn() { g.joined = 1 }

// Grant notes that the acquire has the first of the missing locks. only says that the next one
// cannot be joined together with another.
func (g *Acquire) Grant(only bool) {
	g.missing, g.joined, g.has, g.blocked, g.alone = g.missing-1, g.joined-1, g.has+1, false, only
}
