package simulation_test

import (
	"fmt"
	"time"

	sim "github.com/docent-go/docent/recipes/internal/simulation"
)

// operated is how the deeds of operators are drawn that strike a crowd.
var operated = style{least: 20, more: 60, patient: 2}

// operatorsMenu is what operators do, mostly.
var operatorsMenu = []fault{
	{"delete", deleteContender},
	{"delete", deleteContender},
	{"delete", deleteContender},
	{"delete", deleteContender},
	{"delete", deleteContender},
	{"delete", deleteContender},
	{"ask", askContender},
	{"ask", askContender},
	{"ask", askContender},
	{"ask", askContender},
	{"ask", askContender},
	{"ask", askContender},
	{"expire", expire},
	{"expire", expire},
	{"expire", expire},
	{"expire", expire},
}

// askContender is an operator that asks a contender to release.
func askContender(p *plan, w *world, n *node, at, _ time.Duration) {
	l := w.locks[p.r.IntN(len(w.locks))]
	place := p.r.IntN(4)
	p.add(at, fmt.Sprintf("ask contender %d of %s", place, l.path), func() {
		line := w.h.Standing(l.path)
		if len(line) == 0 || n.c.Load() == nil || n.closed.Load() {
			return
		}
		go func() { // ends with the schedule
			path, at := line[place%len(line)], w.now()
			if a := w.operator(n); a.requestAt(l, path) == nil {
				w.h.Note(func() { w.asked = append(w.asked, sim.Force{Path: path, At: at}) })
			}
		}()
	})
}

// operator is somebody at the keyboard who uses the client of a node.
func (w *world) operator(n *node) *actor { return &actor{w: w, n: n, name: "operator"} }
