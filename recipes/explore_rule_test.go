package recipes_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/docent-go/docent/recipes"
)

// Curator's rule on paper. It knows the calls of a program alone, one after the other, each
// after all has come to rest. From these it tells who stands in which line, and who holds.
//
//   - A mutex or a writer waits for every contender ahead, a reader for the writers ahead.
//   - The first that waits for permits is served when there is room, and nobody past it.
//   - An acquire inside a hold re-enters it, or is refused if it would wait for it. A reader
//     inside a write hold stands in the writer's place.
//   - Several locks are taken in order, and behind one that is not had stands nobody.
//   - A client has so many nodes in line; its further acquires come when one of them goes.

// paperNode stands in a line: a node of a queue, or the leases of one acquire.
type paperNode struct {
	line       int    // which of the lines
	by, number int    // the acquire that made it, and its place
	mode       string // L in a queue of a mutex or of permits, R, W, P of leases
	client     string
	units      int  // permits
	holds      int  // that rely on it
	asked      bool // to be released
}

// before is the order of a line. A writer's readers have its number.
func (n *paperNode) before(o *paperNode) int {
	return cmp.Or(cmp.Compare(n.number, o.number), -cmp.Compare(n.mode, o.mode), cmp.Compare(n.by, o.by))
}

// queues reports whether the node waits for permits.
func (n *paperNode) queues() bool { return n.units > 0 && n.mode != "P" }

func (n *paperNode) String() string { return n.mode + strconv.Itoa(n.by) }

type paperState int

const (
	waits paperState = iota
	holds
	over
)

// paperAcquire is one acquire and its hold.
type paperAcquire struct {
	client string
	wants  []paperNode // in each line in turn
	state  paperState
	err    error        // with which it is over: of the acquire, or of a hold that was lost
	nodes  []*paperNode // that it has got so far
	chain  []*paperNode // of the holds that its hold's context descends from, the innermost first
	write  bool         // its hold is to write, and has not been downgraded
}

// paper is where a program stands by the rule.
type paper struct {
	kind     *shortKind
	acquires []*paperAcquire
	lines    [3][]*paperNode // of permits: the queue, and the leases
	number   int
}

// on plays a program on paper.
func (k *shortKind) on(p program) *paper {
	s := &paper{kind: k}
	for _, c := range p {
		s.play(c)
	}
	return s
}

// play plays one call.
func (s *paper) play(c shortCall) {
	switch a := s.of(c); c.op {
	case "acquire", "try", "nest":
		s.acquire(c, a)
	case "cancel":
		s.end(a, context.Canceled)
	case "release":
		s.end(a, nil)
	case "downgrade":
		s.downgrade(a)
	case "delete":
		if a.state == waits {
			s.end(a, recipes.ErrNodeDeleted)
		} else {
			s.lose(a.nodes[len(a.nodes)-1])
		}
	case "ask":
		a.nodes[0].asked = true
	}
	s.serve()
}

// of is the acquire that a call is about, or inside which it is.
func (s *paper) of(c shortCall) *paperAcquire {
	if c.of < 0 {
		return nil
	}
	return s.acquires[c.of]
}

// acquire begins an acquire, inside the hold of outer if that is not nil.
func (s *paper) acquire(c shortCall, outer *paperAcquire) {
	a := &paperAcquire{client: c.client, wants: s.kind.modes[c.mode], write: strings.HasSuffix(c.mode, "W")}
	s.acquires = append(s.acquires, a)
	if outer != nil {
		a.client = outer.client
		a.chain = slices.DeleteFunc(slices.Clone(outer.chain), func(n *paperNode) bool { return n.holds == 0 })
	}
	switch {
	case c.op == "try" && s.busy(a):
		a.state, a.err = over, recipes.ErrBusy
	case outer != nil && s.kind.permits > 0:
		if s.busy(a) {
			a.state, a.err = over, recipes.ErrWouldDeadlock
		}
	case outer != nil:
		s.reenter(a)
	}
}

// busy reports whether an acquire would wait.
func (s *paper) busy(a *paperAcquire) bool {
	for _, want := range a.wants {
		if want.units > 0 {
			if len(s.lines[want.line]) > 0 || s.held(want.line+1)+want.units > s.kind.permits {
				return true
			}
			continue
		}
		if slices.ContainsFunc(s.lines[want.line], func(n *paperNode) bool { return n.mode != "R" || want.mode != "R" }) {
			return true
		}
	}
	return false
}

// held counts the permits that are held, in the line of leases.
func (s *paper) held(leases int) (n int) {
	for _, lease := range s.lines[leases] {
		n += lease.units
	}
	return n
}

// reenter is an acquire inside a hold of the same lock.
func (s *paper) reenter(a *paperAcquire) {
	in := func(mode string) *paperNode {
		if i := slices.IndexFunc(a.chain, func(n *paperNode) bool { return n.mode == mode }); i >= 0 {
			return a.chain[i]
		}
		return nil
	}
	mode := a.wants[0].mode
	same, w := in(mode), in("W")
	switch {
	case same != nil:
		same.holds++
		s.grant(a, same)
	case mode == "R":
		s.grant(a, s.beside(w, a))
	default:
		a.state, a.err = over, recipes.ErrWouldDeadlock
	}
}

// beside puts a reader into the place of a writer.
func (s *paper) beside(w *paperNode, a *paperAcquire) *paperNode {
	r := &paperNode{by: slices.Index(s.acquires, a), number: w.number, mode: "R", client: w.client, holds: 1}
	s.lines[0] = append(s.lines[0], r)
	return r
}

// grant gives an acquire its hold.
func (s *paper) grant(a *paperAcquire, nodes ...*paperNode) {
	a.state, a.nodes, a.chain = holds, nodes, append(slices.Clone(nodes), a.chain...)
}

func (s *paper) downgrade(a *paperAcquire) {
	w := a.nodes[0]
	a.write, a.nodes, a.chain = false, nil, nil
	s.grant(a, s.beside(w, a))
	s.leave(w)
}

// end ends the wait or the hold of an acquire, with the error of the acquire.
func (s *paper) end(a *paperAcquire, err error) {
	a.state, a.err = over, err
	for _, n := range a.nodes {
		s.leave(n)
	}
}

// leave takes one hold off a node, and the node out of its line after the last.
func (s *paper) leave(n *paperNode) {
	if n.holds--; n.holds <= 0 {
		n.holds = 0
		for i := range s.lines {
			s.lines[i] = slices.DeleteFunc(s.lines[i], func(o *paperNode) bool { return o == n })
		}
	}
}

// lose ends the holds that rely on a node, and those inside of them.
func (s *paper) lose(n *paperNode) {
	n.holds = 1
	s.leave(n)
	for _, a := range s.acquires {
		if a.state == holds && slices.Contains(a.chain, n) {
			s.end(a, recipes.ErrLost)
		}
	}
}

// serve lets the acquires go on as far as they can.
func (s *paper) serve() {
	for again := true; again; {
		again = false
		for _, line := range s.lines {
			slices.SortFunc(line, (*paperNode).before)
		}
		for i, a := range s.acquires {
			if a.state == waits && s.step(i, a) {
				again = true
				break // in order, from the first
			}
		}
	}
}

// step lets one acquire go one step on. It reports false if it has to wait.
func (s *paper) step(i int, a *paperAcquire) bool {
	switch {
	case len(a.nodes) > 0 && s.blocked(a.nodes[len(a.nodes)-1]):
		return false
	case len(a.nodes) > 0 && a.nodes[len(a.nodes)-1].queues():
		return s.take(a)
	case len(a.nodes) == len(a.wants):
		s.grant(a, a.nodes...)
		return true
	case s.kind.most > 0 && s.inLine(a.client) >= s.kind.most:
		return false
	}
	n := a.wants[len(a.nodes)]
	s.number++
	n.by, n.number, n.client, n.holds = i, s.number, a.client, 1
	a.nodes = append(a.nodes, &n)
	s.lines[n.line] = append(s.lines[n.line], &n)
	return true
}

// take turns the first place in the queue into leases, if there is room.
func (s *paper) take(a *paperAcquire) bool {
	last := len(a.nodes) - 1
	place := a.nodes[last]
	if s.held(place.line+1)+place.units > s.kind.permits {
		return false
	}
	leases := *place
	leases.mode, leases.line = "P", place.line+1
	s.leave(place)
	s.lines[leases.line] = append(s.lines[leases.line], &leases)
	a.nodes[last] = &leases
	return true
}

func (s *paper) inLine(client string) (n int) {
	for _, node := range s.lines[0] {
		if node.client == client {
			n++
		}
	}
	return n
}

// blocked reports whether a contender ahead of n has to go first.
func (s *paper) blocked(n *paperNode) bool {
	return n.mode != "P" && slices.ContainsFunc(s.lines[n.line], func(o *paperNode) bool {
		return o.before(n) < 0 && (o.mode != "R" || n.mode != "R")
	})
}

// options are the calls that a program may go on with.
func (s *paper) options() (all []shortCall) {
	k := s.kind
	more := len(s.acquires) < k.acquires
	for _, word := range k.begins {
		op, mode, tries := strings.Cut(word, " ")
		if !tries {
			op, mode = "acquire", word
		}
		for i, client := range []string{"a", "b"}[:k.clients] {
			if more && (i == 0 || len(s.acquires) > 0) { // the first client is as good as the second
				all = append(all, shortCall{op, mode, client, -1})
			}
		}
	}
	for i, a := range s.acquires {
		for _, mode := range k.nested {
			if more && a.state == holds {
				all = append(all, shortCall{"nest", mode, "", i})
			}
		}
		for _, op := range k.calls {
			if s.may(op, a) {
				all = append(all, shortCall{op, "", "", i})
			}
		}
	}
	return all
}

// may reports whether a call makes sense now for an acquire.
func (s *paper) may(op string, a *paperAcquire) bool {
	switch op {
	case "cancel":
		return a.state == waits
	case "release":
		return a.state == holds
	case "downgrade":
		return a.state == holds && a.write
	case "delete":
		return a.state != over && len(a.nodes) > 0
	default: // ask
		return a.state != over && len(a.nodes) > 0 && !a.nodes[0].asked
	}
}

// shortCall is one call of a program.
type shortCall struct {
	op     string // acquire, try, nest, cancel, release, downgrade, delete or ask
	mode   string // of an acquire
	client string
	of     int // the acquire that it is about, or in whose hold it is; -1 for none
}

func (c shortCall) String() string {
	text := c.mode
	switch c.op {
	case "acquire":
	case "try":
		text = "try " + c.mode
	case "nest":
		return fmt.Sprintf("%s in %d", c.mode, c.of)
	default:
		return fmt.Sprintf("%s %d", c.op, c.of)
	}
	if c.client != "a" {
		text += " by " + c.client
	}
	return text
}

// program is a list of calls, each of which comes when the one before has come to rest.
type program []shortCall

func (p program) String() string {
	words := make([]string, len(p))
	for i, c := range p {
		words[i] = c.String()
	}
	return strings.Join(words, ", ")
}

// parse reads what String has written.
func (k *shortKind) parse(text string) (p program, err error) {
next:
	for word := range strings.SplitSeq(text, ",") {
		all := *k
		all.clients, all.acquires = 2, 100
		var could []string
		for _, c := range all.on(p).options() {
			if c.String() == strings.TrimSpace(word) {
				p = append(p, c)
				continue next
			}
			could = append(could, c.String())
		}
		return nil, fmt.Errorf("after %q there is no call %q; there are %q", p, word, could)
	}
	return p, nil
}

// programs are the longest ones within the kind's bounds: all others are how these begin.
func (k *shortKind) programs(yield func(program) bool) { k.from(nil, yield) }

func (k *shortKind) from(p program, yield func(program) bool) bool {
	var options []shortCall
	if len(p) < k.length {
		options = k.on(p).options()
	}
	if len(options) == 0 {
		return yield(p)
	}
	for _, c := range options {
		if !k.from(append(slices.Clone(p), c), yield) {
			return false
		}
	}
	return true
}
