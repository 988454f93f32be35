package simulation

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The promises of a lock, each as the error that says it was broken.
var (
	ErrOverlap     = errors.New("two holders: one was granted, or entered, while another one still believed to hold the lock")
	ErrBelief      = errors.New("two believers: a hold was granted before the context of the one before had ended")
	ErrLateLoss    = errors.New("told too late: a hold's context ended after its node was gone")
	ErrDeadline    = errors.New("deadline broken: a hold's node was taken before the deadline that the hold had named")
	ErrTokenOrder  = errors.New("tokens out of order: a later hold has a token that is not greater")
	ErrOutOfTurn   = errors.New("out of turn: a hold was granted while an older contender's node stood")
	ErrTokenForged = errors.New("token of nothing: it is not the transaction that made the hold's node")
	ErrGuard       = errors.New("guard: a hold wrote after a later hold had written")
	ErrPermits     = errors.New("too many permits: more stood at once than there are")
	ErrDowngrade   = errors.New("downgrade: a writer could come in between the write hold and the read hold")
	ErrHalf        = errors.New("half: fewer permits or locks were granted than had been asked for")
	ErrKept        = errors.New("kept: a call that failed kept a node although everything was healed")
	ErrReentry     = errors.New("re-entry: it waited, failed, or got another token than the hold it entered")
	ErrStuck       = errors.New("stuck: a call did not come back although everything was healed")
	ErrOutlived    = errors.New("outlived: a call came back after its context had ended")
	ErrRefusal     = errors.New("refused in peace: a lock was not granted although nothing disturbed it")
	ErrLossInPeace = errors.New("lost in peace: a session was lost although nothing disturbed it")

	ErrFalseContext  = errors.New("dishonest: an error of a context that had not ended")
	ErrFalseLoss     = errors.New("dishonest: a session that was not lost is said to be")
	ErrFalseCause    = errors.New("dishonest: a hold that was lost before is said to be released")
	ErrFalseClosed   = errors.New("dishonest: a client is said to be closed and was not")
	ErrFalseDeletion = errors.New("dishonest: a node is said to be deleted and was not")
	ErrFalseFew      = errors.New("dishonest: a semaphore is said to have fewer permits than it had")
	ErrFalseBusy     = errors.New("dishonest: a holder is named that was not there")
	ErrFalseForeign  = errors.New("dishonest: another recipe is said to use the lock, and none did")
	ErrFalseAnswer   = errors.New("dishonest: a call has answered what was not so")
	ErrFalseRelease  = errors.New("dishonest: a release is said to be done while the node stands")
	ErrUnexplained   = errors.New("unexplained: an error of no documented kind")

	ErrSightBack   = errors.New("observed backwards: an observer of an election saw an older term after a newer one")
	ErrSightForged = errors.New("observed nothing: an observer saw the leader of a term that had not begun")
	ErrUnseen      = errors.New("unseen: an observer did not see a leader that stayed, or that no leader was left")

	ErrRestless = errors.New("restless: a client read a lock's nodes again and again although nothing had happened")

	ErrNodeLeft      = errors.New("left behind: a contender's node")
	ErrWatchLeft     = errors.New("left behind: a watch")
	ErrSessionLeft   = errors.New("left behind: a session of a closed client")
	ErrGoroutineLeft = errors.New("left behind: a goroutine of a closed client")
	ErrCloseFailed   = errors.New("close in peace: it failed or took long")

	ErrChain = errors.New("wrong knowledge: a client's chain of its own contenders breaks an invariant")
)

// facts is a history with what several checks ask of it.
type facts struct {
	*History
	nodes  map[string]*Node // by path
	stands map[*Hold][]*Node
}

func newFacts(h *History) *facts {
	f := &facts{History: h, nodes: map[string]*Node{}, stands: map[*Hold][]*Node{}}
	for _, n := range h.Nodes {
		f.nodes[n.Path] = n
	}
	return f
}

// forced returns when force first struck the node of a hold or its session,
// Never if it did not.
func (f *facts) forced(g *Hold) time.Duration {
	first := Never
	if len(f.Forces) == 0 {
		return first
	}
	nodes := f.nodesOf(g)
	for _, force := range f.Forces {
		strikes := force.Path == g.Path || slices.ContainsFunc(nodes, func(n *Node) bool {
			return force.Path == n.Path || force.Session != 0 && force.Session == n.Session
		})
		if strikes && (first == Never || force.At < first) {
			first = force.At
		}
	}
	return first
}

// hearing is how long a holder may take to hear of force. A connection that hangs
// is given up after two thirds of the timeout. Then there is another one and the
// node is read again. Without a connection the session ends in one timeout.
func (f *facts) hearing() time.Duration { return 2 * f.Timeout }

// excused reports whether g may believe at t to hold the lock. It may if force
// struck it so recently that it need not have heard of that.
func (f *facts) excused(g *Hold, t time.Duration) bool {
	at := f.forced(g)
	return at != Never && at <= t && t <= at+f.hearing()
}

// stopped returns when the holder whose node was gone at t has heard of it, if a
// server's stop took the node, and else t.
func (f *facts) stopped(t time.Duration) time.Duration {
	for _, s := range f.Stops {
		if s.At <= t && t <= s.Heard {
			return s.Heard
		}
	}
	return t
}

// endedBy reports whether a moment that may never have come came before t.
func endedBy(moment, t time.Duration) bool { return moment != Never && moment < t }

func broken(promise error, format string, args ...any) error {
	return fmt.Errorf("%w: %s", promise, fmt.Sprintf(format, args...))
}

// nodesOf returns the nodes that a hold stands on: its own, and the nodes of the
// other permits that it wanted. One transaction may make the permits of several holds,
// those of each behind its own node.
func (f *facts) nodesOf(g *Hold) []*Node {
	all, known := f.stands[g]
	if !known {
		all = f.find(g)
		f.stands[g] = all
	}
	return all
}

// find finds the nodes that nodesOf returns.
func (f *facts) find(g *Hold) []*Node {
	n := f.nodes[g.Path]
	switch {
	case n == nil:
		return nil
	case n.Role != RolePermit:
		return []*Node{n}
	}
	var all []*Node
	for _, o := range f.Nodes[slices.Index(f.Nodes, n):] {
		if o.Role == RolePermit && o.Lock == n.Lock && o.Czxid == n.Czxid && len(all) < g.units() {
			all = append(all, o)
		}
	}
	return all
}

// grants returns the holds that did not re-enter another one, by lock and in
// the order in which they were granted.
func (f *facts) grants() map[string][]*Hold {
	lines := map[string][]*Hold{}
	for _, g := range f.Holds {
		if !g.Nested {
			lines[g.Lock] = append(lines[g.Lock], g)
		}
	}
	for _, line := range lines {
		slices.SortStableFunc(line, func(a, b *Hold) int { return compare(a.Granted, b.Granted) })
	}
	return lines
}
