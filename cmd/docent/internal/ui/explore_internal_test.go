package ui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/explore"
	"github.com/docent-go/docent/internal/inside"
)

// A move of a game: what contenders do at the server, and what passes between the server and
// the model.
type move uint8

const (
	moveJoin    move = iota // the next contender makes its node, and the directory if it is missing
	moveLeave0              // a contender's node is deleted
	moveLeave1              //
	moveLeave2              //
	moveAsk                 // the first contender is asked to release
	moveSweep               // the empty directory is deleted
	moveSend                // the model asks
	moveServe               // the server answers
	moveDeliver             // the oldest event, or the answer, arrives
	moveTake                // the model takes the answer, and the events that have arrived
	moveFail                // what the model has asked is too much for one answer
	moveLose                // the connection is cut, and is there again
	moveLook                // the model looks at the locks
	moves
)

var moveNames = [moves]string{"join", "leave 0", "leave 1", "leave 2", "ask", "sweep", "send", "serve", "deliver", "take", "fail", "lose", "look"}

const (
	mostMoves   = 6
	contenders3 = 3
)

// schedule is a state of the exploration: the moves that led to it.
type schedule struct {
	n     int8
	moves [mostMoves]move
}

// record is a node at the server of the game.
type record struct {
	data                 string
	made, changed, owner int64
	at                   time.Time // when it was made
}

// item is what is on its way to the model.
type item struct {
	event   inside.FeedEvent
	answers []inside.Answer // nil for an event
}

// game is a server of one lock, a model, and what is between them. The server is written
// from ZooKeeper's rules: events of a recursive watch come in the order of the changes, and
// an answer shows what was there when the server made it.
type game struct {
	zxid    int64
	nodes   map[string]*record
	joined  int
	asked   bool // somebody was asked
	request []want
	served  bool
	pipe    []item
	arrived []inside.FeedEvent
	got     []inside.Answer // it has arrived
	m       *model
	now     time.Time
	since   time.Time // of the hold
	sent    time.Time // the request
	asof    time.Time // the newest request with an answer
}

const lockDir = "/l"

func newGame() *game {
	g := &game{
		zxid: 1, nodes: map[string]*record{"/": {}, lockDir: {made: 1, changed: 1, at: time.UnixMilli(1)}},
		m: newModel("/", limits{nodes: 100, depth: 4}), now: time.UnixMilli(1_000_000),
	}
	g.m.begin(true)
	return g
}

func contenderNode(i int) string {
	return fmt.Sprintf("%s/_c_0c708091-6d54-8320-8594-%012x-lock-%010d", lockDir, i, i)
}

func (g *game) tell(kind inside.FeedKind, at string) {
	g.pipe = append(g.pipe, item{event: inside.FeedEvent{Kind: kind, Path: at, Zxid: g.zxid}})
}

func (g *game) change() { g.zxid++ }

// may reports whether a move is possible.
func (g *game) may(v move) bool {
	switch v {
	case moveJoin:
		return g.joined < contenders3
	case moveLeave0, moveLeave1, moveLeave2:
		return g.nodes[contenderNode(int(v-moveLeave0))] != nil
	case moveAsk:
		return !g.asked && g.nodes[contenderNode(0)] != nil
	case moveSweep:
		return g.nodes[lockDir] != nil && len(g.nodes) == 2 && g.joined > 0
	case moveSend:
		return g.request == nil && len(g.m.reads.wanted) > 0
	case moveServe:
		return g.request != nil && !g.served
	case moveDeliver:
		return len(g.pipe) > 0
	case moveTake:
		return g.request == nil && len(g.arrived) > 0 || g.got != nil
	case moveFail:
		return g.request != nil && !g.served
	case moveLook:
		return len(g.m.changed) > 0 || len(g.m.untold) > 0
	}
	return true
}

func (g *game) make(v move) {
	g.now = g.now.Add(time.Second)
	switch v {
	case moveJoin:
		g.join()
	case moveLeave0, moveLeave1, moveLeave2:
		at := contenderNode(int(v - moveLeave0))
		before := g.first()
		delete(g.nodes, at)
		if g.first() != before {
			g.since = g.now
		}
		g.change()
		g.nodes[lockDir].changed = g.zxid
		g.tell(inside.FeedDeleted, at)
	case moveAsk:
		g.asked = true
		g.change()
		g.nodes[contenderNode(0)].data = revocation
		g.tell(inside.FeedData, contenderNode(0))
	case moveSweep:
		g.change()
		delete(g.nodes, lockDir)
		g.tell(inside.FeedDeleted, lockDir)
	case moveSend:
		g.request, g.served, g.sent = slices.Clone(g.m.next(2)), false, g.now
	case moveServe:
		g.served = true
		g.pipe = append(g.pipe, item{answers: g.answer()})
	case moveDeliver:
		g.deliver()
	case moveTake:
		g.take()
	case moveFail:
		g.m.failed()
		g.request = nil
	case moveLose:
		g.pipe, g.arrived, g.got = nil, nil, nil
		if g.request != nil {
			g.m.failed()
			g.request = nil
		}
		g.m.begin(true)
	case moveLook:
		g.m.look(g.now, g.asof)
	}
}

// first is the node of who holds.
func (g *game) first() string {
	for i := range contenders3 {
		if at := contenderNode(i); g.nodes[at] != nil {
			return at
		}
	}
	return ""
}

func (g *game) join() {
	if g.nodes[lockDir] == nil {
		g.change()
		g.nodes[lockDir] = &record{made: g.zxid, changed: g.zxid, at: g.now}
		g.tell(inside.FeedCreated, lockDir)
	}
	at := contenderNode(g.joined)
	g.joined++
	g.change()
	if g.first() == "" {
		g.since = g.now
	}
	g.nodes[at] = &record{data: fmt.Sprint("contender ", g.joined), made: g.zxid, owner: int64(g.joined), at: g.now}
	g.nodes[lockDir].changed = g.zxid
	g.tell(inside.FeedCreated, at)
}

func (g *game) answer() []inside.Answer {
	answers := make([]inside.Answer, len(g.request))
	for i, w := range g.request {
		n := g.nodes[w.path]
		if n == nil {
			answers[i].Err = zk.ErrNoNode
			continue
		}
		var names []string
		for at := range g.nodes {
			if at != w.path && above(at) == w.path {
				names = append(names, at[strings.LastIndexByte(at, '/')+1:])
			}
		}
		if w.what == theChildren {
			answers[i].Names = names
			continue
		}
		answers[i].Data = []byte(n.data)
		answers[i].Stat = zk.Stat{Czxid: n.made, Ctime: n.at.UnixMilli(), Pzxid: n.changed, EphemeralOwner: n.owner, NumChildren: int32(len(names))}
	}
	return answers
}

func (g *game) deliver() {
	it := g.pipe[0]
	g.pipe = g.pipe[1:]
	if it.answers == nil {
		g.arrived = append(g.arrived, it.event)
		return
	}
	g.got = it.answers
}

// take is what a collector does after a read: first the answer, then all events so far.
func (g *game) take() {
	if g.got != nil {
		g.m.answered(g.request, g.got)
		g.request, g.got, g.asof = nil, nil, g.sent
	}
	g.m.heard(g.arrived)
	g.arrived = nil
}

// rest makes the moves that are bound to happen, until none is left.
func (g *game) rest() error {
	for range 200 {
		moved := false
		for _, v := range []move{moveDeliver, moveServe, moveTake, moveSend, moveLook} {
			if g.may(v) {
				g.make(v)
				moved = true
				break
			}
		}
		if !moved {
			return nil
		}
	}
	return errors.New("the model does not come to rest")
}

func (g *game) settle(t *testing.T) {
	t.Helper()
	if err := g.rest(); err != nil {
		t.Fatal(err)
	}
}

// right compares what the model shows with what the server has.
func (g *game) right() error {
	var there []string
	for at := range g.nodes {
		if above(at) == lockDir {
			there = append(there, at)
		}
	}
	slices.Sort(there)
	l := g.m.locks[lockDir]
	if len(there) == 0 {
		if l != nil {
			return fmt.Errorf("shown: %+v; nobody is there", l.queue)
		}
		return g.rightPast(nil)
	}
	if l == nil {
		return fmt.Errorf("no lock is shown; %v are there", there)
	}
	for i, at := range there {
		n := g.nodes[at]
		if i >= len(l.queue) || l.queue[i].path != at || l.queue[i].holds != (i == 0) || l.queue[i].session != n.owner || l.queue[i].asked != (n.data == revocation) {
			return fmt.Errorf("shown: %+v; %v are there", l.queue, there)
		}
	}
	if len(l.queue) != len(there) || g.m.behind() || g.m.stands[g.nodes[there[0]].owner] != 1 {
		return fmt.Errorf("shown: %+v; %v are there; behind %v, sessions %v", l.queue, there, g.m.behind(), g.m.stands)
	}
	if h := l.queue[0].held; h.from.After(g.since) || h.by.Before(g.since) {
		return fmt.Errorf("held after %v and by %v; it is held since %v", h.from, h.by, g.since)
	}
	return g.rightPast(&l.queue[0])
}

// rightPast holds the timeline against the rule of a mutex: one holds, then it is gone, and then
// another one holds.
func (g *game) rightPast(holder *contender) error {
	holds := ""
	for _, h := range g.m.past.of[lockDir] {
		switch h.what {
		case didHold:
			if holds != "" {
				return fmt.Errorf("%s holds while %s does: %+v", h.node, holds, g.m.past.of[lockDir])
			}
			holds = h.node
		case didRelease, didEnd:
			if holds != h.node {
				return fmt.Errorf("%s left, and %q held: %+v", h.node, holds, g.m.past.of[lockDir])
			}
			holds = ""
		}
		if h.from.After(h.by) && h.what != didHold {
			return fmt.Errorf("it happened after %v and by %v: %+v", h.from, h.by, h)
		}
	}
	switch {
	case holder == nil && holds != "":
		return fmt.Errorf("the timeline says that %s holds, and nobody does", holds)
	case holder != nil && holds != holder.name:
		return fmt.Errorf("the timeline says that %q holds, and %s does", holds, holder.name)
	}
	return nil
}

// From every state that some moves lead to, a model that is left alone comes to show what the server has, and
// its timeline has one holder after the other.
func TestExploreModel(t *testing.T) {
	t.Parallel()
	for name, start := range map[string][]move{
		"from the beginning": nil,
		"from rest":          {moveJoin, moveJoin},
		"after a loss":       {moveJoin, moveJoin, moveLose, moveSend, moveServe},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := func(s *schedule) *game {
				g := newGame()
				for i, v := range start {
					if i == 2 { // after the contenders have joined
						g.settle(t)
					}
					g.make(v)
				}
				if len(start) == 2 {
					g.settle(t)
				}
				for _, v := range s.moves[:s.n] {
					g.make(v)
				}
				return g
			}
			m := explore.Machine[schedule, move]{
				Moves: func(s *schedule, all []move) []move {
					if s.n == mostMoves {
						return all
					}
					g := begun(s)
					for v := range moves {
						if g.may(v) {
							all = append(all, v)
						}
					}
					return all
				},
				Apply: func(s *schedule, v move) error {
					s.moves[s.n] = v
					s.n++
					g := begun(s)
					if err := g.rest(); err != nil {
						return err
					}
					return g.right()
				},
				Must:  func(move) bool { return false },
				Waits: func(*schedule) string { return "" },
				Tell:  func(_ *schedule, v move) string { return moveNames[v] },
			}
			w := m.Walk(1 << 22)
			t.Log(w)
			if w.Failure != nil {
				t.Fatal(w.Failure)
			}
			if !w.Complete || w.States < 1000 {
				t.Errorf("not all was explored: %v", w)
			}
		})
	}
}
