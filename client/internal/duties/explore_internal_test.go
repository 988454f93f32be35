package duties

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/explore"
)

// known is a session of the explorer. The debt asks it nothing but its standing.
type known struct {
	Session

	is Standing
}

// Standing is what this client knows of the end of the session.
func (k *known) Standing() Standing { return k.is }

// due is a removal and its node. The node is made in the first session.
type due struct {
	state dueState
	early bool // its time has not come
	node  nodeState
	tried bool // by the round that goes on
}

type dueState int8

const (
	unknown dueState = iota
	owed
	over
	abandoned // over, and told that nobody removes the node
)

type nodeState int8

const (
	stands nodeState = iota
	gone
	swept // with its session
	anothers
)

// debtWorld is a debt, two sessions of a client and a server. The first session made the nodes,
// and the second does not end before the client is closed.
type debtWorld struct {
	dues    [2]due
	known   [2]Standing
	kept    [2]bool // by the server
	present int8    // the session that is connected, -1 if there is none
	round   int8    // the session in which a round goes on, -1 if there is none
	works   bool    // a goroutine does
	thinks  bool    // the debt does
	closed  bool
	lost    int8 // answers that may still be lost, and refusals
}

// kind is a removal before anything has happened.
type kind struct {
	unique   bool // no other client can give the name of its node to one of its own
	outlives bool // its session
	early    bool
}

// debtModel bounds what may happen. bug is planted.
type debtModel struct {
	kinds [2]kind
	bug   string
}

type debtAct int8

const (
	adds debtAct = iota
	comes
	makes
	deletes
	losesAnswer
	refuses
	ends
	lingers
	drops
	forgets
	connects
	begins
	rests
	closes
	givesUp
)

var actNames = []string{
	"is added", "is due", "another client makes the node", "is deleted", "is deleted, and the answer is lost", "is refused",
	"the session is over", "the session lingers", "the server drops session", "the client takes as over session", "the next session connects",
	"a round begins", "a round ends", "the client is closed", "the work ends",
}

type debtMove struct {
	act debtAct
	of  int8 // removal or session
}

func (p *debtModel) moves(w *debtWorld, moves []debtMove) []debtMove {
	add := func(act debtAct, of int8, may bool) {
		if may {
			moves = append(moves, debtMove{act, of})
		}
	}
	for i := range int8(2) {
		d := &w.dues[i]
		add(adds, i, d.state == unknown)
		add(comes, i, d.early)
		add(makes, i, d.node == swept && !p.kinds[i].unique)
		reached := d.tried && w.present == w.round && w.kept[w.round]
		add(deletes, i, reached)
		add(losesAnswer, i, reached && w.lost > 0)
		add(refuses, i, d.tried && (!reached || w.lost > 0))
		add(drops, i, w.kept[i] && w.known[i] != Stands)
		add(forgets, i, w.known[i] == Lingers && !w.kept[i])
	}
	add(ends, 0, w.present == 0)
	add(lingers, 0, w.present == 0)
	add(connects, 1, w.present < 0 && !w.closed)
	add(closes, 0, !w.closed)
	tried := w.dues[0].tried || w.dues[1].tried
	add(begins, 0, w.works && w.round < 0 && w.present >= 0 && !w.closed)
	add(rests, 0, w.round >= 0 && !tried)
	add(givesUp, 0, w.works && w.round < 0 && w.closed)
	return moves
}

// debt is the debt that w has.
func (p *debtModel) debt(w *debtWorld) (*debt, [2]*known, [2]*Removal) {
	sessions := [2]*known{{is: w.known[0]}, {is: w.known[1]}}
	d := &debt{work: w.thinks}
	var all [2]*Removal
	for i, k := range p.kinds {
		m := &Removal{Full: []string{fmt.Sprint("/q/n-", i)}}
		if !k.outlives && p.bug != "sessions are not looked at" {
			m.Owner = sessions[0]
		}
		if k.unique || p.bug == "names are not looked at" {
			m.Full[0] = "/q/_c_ab09cd3a-6a3c-4c3b-8d6a-7a3b0c6d2e1f-n-" + fmt.Sprint(i)
		}
		if w.dues[i].early && p.bug != "the time is not waited for" {
			m.Due = epoch.Add(time.Second)
		}
		if w.dues[i].state == owed && !w.dues[i].tried {
			d.owed = append(d.owed, m)
		}
		all[i] = m
	}
	return d, sessions, all
}

var epoch = time.Unix(1000, 0)

func (p *debtModel) apply(w *debtWorld, move debtMove) error {
	d, sessions, all := p.debt(w)
	at := &w.dues[move.of]
	done := func(ms []*Removal, state dueState) error {
		for _, m := range ms {
			i := slices.Index(all[:], m)
			if w.dues[i].state != owed {
				return errors.New("a removal ends twice")
			}
			w.dues[i].state, w.dues[i].tried = state, false
			if state == over && w.dues[i].node == stands && (p.kinds[i].outlives || w.known[0] == Stands) {
				return errors.New("a removal ends, and its node stands")
			}
		}
		return nil
	}
	again := func() {
		at.tried, at.early = false, true
		if p.bug != "a failed try is forgotten" {
			d.again(all[move.of], epoch.Add(time.Second))
		}
	}
	var err error
	switch move.act {
	case adds:
		switch m := all[move.of]; {
		case m.pointless() || !d.work && w.closed:
			at.state = over
		default:
			w.works = w.works || !d.work
			d.add(m, epoch)
			at.state = owed
		}
	case comes:
		at.early = false
	case makes:
		at.node = anothers
	case deletes, losesAnswer:
		switch {
		case at.node == anothers:
			return errors.New("the node of another client is deleted")
		case at.early:
			return errors.New("a node is deleted before its time")
		case at.node == stands:
			at.node = gone
		}
		if move.act == deletes {
			err = done(all[move.of:move.of+1], over)
			break
		}
		w.lost--
		again()
	case refuses:
		w.lost = max(w.lost-1, 0)
		if p.bug == "any answer is the end" {
			err = done(all[move.of:move.of+1], over)
			break
		}
		again()
	case ends, lingers:
		w.known[0], w.present = Over, -1
		if move.act == lingers {
			w.known[0] = Lingers
		}
	case drops:
		w.kept[move.of] = false
		for i := range w.dues {
			if d := &w.dues[i]; move.of == 0 && !p.kinds[i].outlives && d.node == stands {
				d.node = swept
			}
		}
	case forgets:
		w.known[move.of] = Over
	case connects:
		w.present, w.kept[1] = 1, true
	case begins:
		tries, sought, ended := d.begin(sessions[w.present], epoch)
		w.round = w.present
		for _, m := range slices.Concat(tries, sought) {
			w.dues[slices.Index(all[:], m)].tried = true
		}
		err = done(ended, over)
	case rests:
		w.round = -1
		_, w.works = d.rest()
		d.work = d.work || p.bug == "nobody notes that the work ends"
	case closes:
		w.closed = true
		if w.present >= 0 {
			w.known[w.present], w.present = Over, -1
		}
	case givesUp:
		w.works = false
		left, ended := d.giveUp()
		err = errors.Join(done(left, abandoned), done(ended, over))
	}
	w.thinks = d.work
	for i, m := range all {
		due := &w.dues[i]
		if due.state == owed && !due.tried && !slices.Contains(d.owed, m) {
			return errors.New("a removal is forgotten")
		}
		if due.state == owed && !w.works {
			return errors.New("nobody works on a removal")
		}
	}
	return err
}

func (p *debtModel) machine() *explore.Machine[debtWorld, debtMove] {
	start := debtWorld{kept: [2]bool{true, false}, round: -1, lost: 2}
	for i, k := range p.kinds {
		start.dues[i].early = k.early
	}
	return &explore.Machine[debtWorld, debtMove]{
		Start: start,
		Moves: p.moves,
		Apply: p.apply,
		Must: func(m debtMove) bool {
			return !slices.Contains([]debtAct{adds, makes, losesAnswer, ends, lingers, closes}, m.act)
		},
		Waits: func(w *debtWorld) string {
			for i := range w.dues {
				if w.dues[i].state == owed {
					return fmt.Sprint("removal ", i)
				}
			}
			return ""
		},
		Settles: 30,
		Tell: func(w *debtWorld, m debtMove) string {
			return fmt.Sprintf("%d %s: %+v", m.of, actNames[m.act], *w)
		},
	}
}

func debtModels() map[string]*debtModel {
	released, sequential := kind{unique: true}, kind{}
	return map[string]*debtModel{
		"released, and a plain name":     {kinds: [2]kind{released, sequential}},
		"lost with its lease, released":  {kinds: [2]kind{{unique: true, early: true}, released}},
		"outlives its session, released": {kinds: [2]kind{{unique: true, outlives: true}, released}},
		"a plain name, outlives":         {kinds: [2]kind{sequential, {unique: true, outlives: true}}},
	}
}

// TestExploreDebt walks all moves of two removals with two sessions and a server, which loses or
// refuses two answers.
func TestExploreDebt(t *testing.T) {
	t.Parallel()
	for name, p := range debtModels() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore.Whole(t, p.machine(), 5_000_000)
		})
	}
}

// Each planted bug is found.
func TestExploreDebtFindsBugs(t *testing.T) {
	t.Parallel()
	for bug, of := range map[string]struct{ model, want string }{
		"names are not looked at":         {"released, and a plain name", "another client"},
		"sessions are not looked at":      {"a plain name, outlives", "another client"},
		"the time is not waited for":      {"lost with its lease, released", "before its time"},
		"a failed try is forgotten":       {"released, and a plain name", "forgotten"},
		"any answer is the end":           {"outlives its session, released", "its node stands"},
		"nobody notes that the work ends": {"released, and a plain name", "nobody works"},
	} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			p := *debtModels()[of.model]
			p.bug = bug
			explore.Finds(t, p.machine(), 5_000_000, of.want)
		})
	}
}
