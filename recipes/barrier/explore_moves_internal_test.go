package barrier

import (
	"errors"
	"fmt"

	"github.com/docent-go/docent/internal/explore"
)

var (
	errEarly  = errors.New("passes and belongs to no round")
	errFew    = errors.New("a round is opened with too few")
	errAlone  = errors.New("works in a round whose ready node is gone")
	errLeft   = errors.New("a Leave returns while a member that it has seen works")
	errBehind = errors.New("was counted and fails")
)

type act uint8

const (
	step act = iota
	starts
	unanswered
	givesUp
	expires
	moves
	oldExpires
	removed // in the background
	operatorNode
	operatorReady
)

var actNames = [...]string{"", "enters: ", "the answer is lost: ", "gives up: ", "its session expires: ", "goes on in another session: ", "its old session expires: ", "its old node is removed: ", "an operator deletes its node: ", "an operator deletes ready: "}

type move struct {
	who  int8
	what act
}

// model is which members there are, what can happen, and which bug is planted.
type model struct {
	members int
	rounds  bool
	curator set
	enters  [three]int8
	faults  int8
	kinds   []act // of faults
	bug     string
}

func (m *model) machine() *explore.Machine[world, move] {
	start := world{faults: m.faults}
	for i := range start.p {
		start.p[i].enters = m.enters[i]
	}
	return &explore.Machine[world, move]{
		Start: start, Moves: m.moves, Waits: m.waits,
		Apply: func(w *world, mv move) error {
			err := m.apply(w, mv)
			if err == nil {
				err = m.check(w)
			}
			w.tidy()
			return err
		},
		Must: func(mv move) bool { return mv.what == step || mv.what == oldExpires || mv.what == removed },
		Tell: func(w *world, mv move) string {
			text := fmt.Sprintf("%d %s%s;", mv.who, actNames[mv.what], phaseNames[w.p[mv.who].at])
			for i := range w.p {
				text += fmt.Sprintf(" [%d %s, node %d]", i, phaseNames[w.p[i].at], w.node[i])
			}
			return text + fmt.Sprintf(" ready %+v", w.ready)
		},
	}
}

func (m *model) java(i int) bool { return m.curator.has(i) }

func (m *model) moves(w *world, all []move) []move {
	for i := range w.p {
		p, who := &w.p[i], int8(i)
		blocked := false
		switch p.at {
		case out, over:
			blocked = true
			if p.enters > 0 {
				all = append(all, move{who, starts})
			}
		case clearsSet, tidySet, registers:
			blocked = w.capped()
		case awaitsEnd, awaits, leaveAwaits, javaAwait, javaAwaitLeft:
			blocked = p.watched&p.fired == 0 && !p.lost
		}
		if !blocked {
			all = append(all, move{who, step})
		}
		if p.old && w.node[i] != 0 {
			all = append(all, move{who, oldExpires})
		}
		if w.node[i+three] != 0 {
			all = append(all, move{who, removed})
		}
		if w.faults == 0 {
			continue
		}
		for _, kind := range m.kinds {
			if m.may(w, i, kind) {
				all = append(all, move{who, kind})
			}
		}
	}
	return all
}

// may reports whether a fault can come to a member.
func (m *model) may(w *world, i int, kind act) bool {
	p := &w.p[i]
	switch kind {
	case unanswered:
		switch p.at {
		case creates, opens, withdraws, registers, leaveBoth, clearsSet:
			return !p.lost
		}
		return false
	case givesUp:
		return !m.java(i) && (p.entersNow() || p.leavesNow())
	case expires:
		return !p.lost && !p.old && (w.node[i] != 0 || p.entersNow() && !m.java(i))
	case moves:
		return !m.java(i) && !p.lost && !p.old && p.entersNow() && w.node[i] != 0
	case operatorNode:
		return w.node[i] != 0 && !m.java(i)
	default:
		return i == 0 && w.ready.opened != 0
	}
}

func (m *model) apply(w *world, mv move) (err error) {
	i := int(mv.who)
	p := &w.p[i]
	switch mv.what {
	case starts:
		p.enters--
		m.anew(w, i)
	case step:
		err = m.step(w, i, true)
	case unanswered:
		w.faults--
		err = m.step(w, i, false)
	case givesUp:
		w.faults--
		w.fails(i)
	case expires:
		w.faults--
		w.remove(i)
		p.counted = false // if the others leave meanwhile, it waits for another round
		if m.java(i) {
			*p = party{at: over, enters: p.enters}
		} else {
			p.lost = p.at != over && p.at != out
		}
	case moves:
		w.faults--
		m.away(w, i)
		p.old, p.counted = true, false
	case oldExpires:
		w.remove(i)
		p.old = false
	case removed:
		w.remove(i + three)
	case operatorNode:
		w.faults--
		w.remove(i)
		p.counted = false // it gets ErrNodeDeleted
	case operatorReady:
		w.faults--
		w.close()
		w.forced = true
		for j := range w.p {
			if q := &w.p[j]; !q.rule.passes && !q.fired.has(readyPlace) {
				q.counted = false // it has not seen the round, and counts again
			}
		}
	}
	for j := range w.p {
		q := &w.p[j]
		q.forget()
		if q.entersNow() && w.node[j] != 0 && w.ready.opened != 0 && w.stood&w.standing()&^of(j) != 0 {
			q.joined = true
		}
	}
	return err
}

// check compares members inside with the server's nodes.
func (m *model) check(w *world) error {
	for i := range w.p {
		p := &w.p[i]
		if p.at == isInside && !p.lost && w.node[i] != 0 && p.round != 0 && p.round != w.ready.opened && !w.forced && m.curator == 0 {
			return fmt.Errorf("%d %w", i, errAlone)
		}
	}
	return nil
}

// leaves checks that nobody works on whom a Leave has seen. A member of another round has
// waited when the Leave began. So has one that came later than the round and is not late,
// if an operator's delete has left it without knowing its round.
func (w *world) leaves(i int) error {
	begin, round := w.p[i].begin, w.p[i].round
	w.p[i] = party{at: over, enters: w.p[i].enters}
	for j := range w.p {
		q := &w.p[j]
		works := (q.at == isInside || q.at == javaInside) && !q.lost && w.node[j] != 0
		same := q.round == round || q.round == 0 || round == 0
		waited := w.forced && round != 0 && w.node[j] > round && !w.late.has(j)
		if works && same && !waited && w.node[j] <= begin {
			return errLeft
		}
	}
	return nil
}

// waits names who waits wrongly in a state in which nothing need happen.
func (m *model) waits(w *world) string {
	for i := range w.p {
		p := &w.p[i]
		switch {
		case w.capped():
			return ""
		case p.entersNow() && p.counted:
			return fmt.Sprintf("%d was counted and", i)
		case p.entersNow() && !m.java(i) && w.ready.opened != 0:
			return fmt.Sprintf("%d, beside a ready node that nobody removes,", i)
		case p.entersNow() && w.standing().count() >= m.members:
			return fmt.Sprintf("%d of enough that stand", i)
		case p.leavesNow() && !w.forced && m.curator == 0: // else it may wait for one that has not seen the round
			return fmt.Sprintf("the Leave of %d", i)
		}
	}
	return ""
}
