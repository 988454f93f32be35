package duties

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

// State says what has become of a removal.
type State int

// The states of a removal. Owed comes once and first. Failed comes after every try that failed.
// One of the others comes once, at the end.
const (
	Owed        State = iota // the remover has taken it on
	Failed                   // a try failed, and another follows
	Done                     // the node is gone, or never was
	WithSession              // the session is over, and the server deletes the node with it
	GivenUp                  // the client is closed, or no server accepts it
)

// Removal is one node to delete, or what one protected create may have left.
type Removal struct {
	Owner Session   // nil if the nodes outlive their session
	What  string    // the node, or the directory in which it may be
	Full  []string  // the nodes, once they are known
	From  *Lost     // the create that may have made them; nil if Full is known
	Due   time.Time // not before then
	Gone  func()    // is called at the end, or nil

	Begun   time.Time
	Tries   int
	backoff backoff.BackOff
	refused bool  // and that was logged
	err     error // of the newest try
}

// Lost is a create of protected nodes whose answer did not come.
type Lost struct {
	Request *wire.Exchange
	Dirs    []string        // where the nodes may be
	Prefix  string          // of their names; "" if they are not protected
	Made    func() []string // the nodes that the answer names
}

// over says that there is nothing left to remove, or that nobody will.
func (m *Removal) over() {
	if m.Gone != nil {
		m.Gone()
	}
}

// debt is the removals that a remover owes, and decides which it tries next. It sends nothing and
// reads no clock: [Remover] does, and says what came of it. These are the states of a removal:
//
//	owed   it waits for its time, for a session that may delete its nodes, and for a round
//	tried  a round in one session works on it
//	over   it has ended
//
// and these are the moves. A removal is pointless when its session is over, because the server
// deletes the nodes with it. It is also pointless when its session lingers, and other clients can
// give the names of its nodes to nodes of their own.
//
//	       add     owed; the remover leaves out what is pointless
//	owed   begin   over, if it is pointless
//	owed   begin   tried, if its time has come, and the round's session may delete its nodes: they
//	               outlive their session, or that is the round's, or it lingers
//	owed   begin   owed otherwise
//	tried  again   owed, until a later time: the try has failed
//	tried  -       over: its nodes are gone, or never were
//	owed   giveUp  over: nobody will try it again
//
// Somebody works from the first add until rest finds nothing that is owed, or until giveUp.
type debt struct {
	owed []*Removal
	work bool
}

// add takes m on.
func (d *debt) add(m *Removal, now time.Time) {
	m.Begun = now
	d.owed, d.work = append(d.owed, m), true
}

// begin returns what a round in s tries: the removals whose nodes are known, in the order of the
// queue, and those whose nodes have to be sought. ended are those that are pointless.
func (d *debt) begin(s Session, now time.Time) (known, sought, ended []*Removal) {
	var later []*Removal
	for _, m := range d.owed {
		switch {
		case m.pointless():
			ended = append(ended, m)
		case m.Due.After(now) || !m.within(s):
			later = append(later, m)
		case m.From == nil:
			known = append(known, m)
		default:
			sought = append(sought, m)
		}
	}
	d.owed = later
	slices.SortStableFunc(known, inLine)
	slices.SortStableFunc(sought, inLine)
	return known, sought, ended
}

// again puts m off after a try that failed.
func (d *debt) again(m *Removal, due time.Time) {
	m.Due = due
	d.owed = append(d.owed, m)
}

// rest ends a round. It returns when the next is to begin. If nothing is owed, there is none.
func (d *debt) rest() (next time.Time, more bool) {
	for i, m := range d.owed {
		if i == 0 || m.Due.Before(next) {
			next = m.Due
		}
	}
	d.work = len(d.owed) > 0
	return next, d.work
}

// giveUp forgets what is owed. ended are the removals that are pointless.
func (d *debt) giveUp() (left, ended []*Removal) {
	for _, m := range d.owed {
		if m.pointless() {
			ended = append(ended, m)
		} else {
			left = append(left, m)
		}
	}
	*d = debt{}
	return left, ended
}

// pointless reports that m's nodes are deleted with their session, or have been.
func (m *Removal) pointless() bool {
	if m.Owner == nil {
		return false
	}
	is := m.Owner.Standing()
	return is == Over || is == Lingers && !m.unique()
}

// within reports whether s may delete m's nodes.
func (m *Removal) within(s Session) bool {
	return m.Owner == nil || m.Owner == s || m.Owner.Standing() == Lingers
}

// unique reports whether no other client can have made a node with the name of one of
// m's: the names are protected.
func (m *Removal) unique() bool {
	if m.From != nil {
		return m.From.Prefix != ""
	}
	return !slices.ContainsFunc(m.Full, func(full string) bool {
		return !strings.HasPrefix(path.Base(full), inside.ProtectedPrefix)
	})
}

// inLine orders removals by directory and number.
func inLine(a, b *Removal) int {
	position := func(m *Removal) (dir, number string) {
		if len(m.Full) == 0 {
			return m.What, ""
		}
		return path.Dir(m.Full[0]), Ending(m.Full[0])
	}
	aDir, aNumber := position(a)
	bDir, bNumber := position(b)
	return cmp.Or(strings.Compare(aDir, bDir), strings.Compare(aNumber, bNumber))
}
