package simulation_test

import (
	"fmt"
	"strings"
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
	{"sweep queue", sweepQueue},
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
func (w *world) operator(n *node) *actor { return &actor{w: w, n: n, c: n.c.Load(), name: "operator"} }

// sweepQueue is an operator that deletes a queue with all that stand in it. The leases of a
// semaphore stay. The next contenders make the queue again, and its numbers begin at 0.
func sweepQueue(p *plan, w *world, _ *node, at, _ time.Duration) {
	l := w.locks[p.r.IntN(len(w.locks))]
	for range 1 + p.r.IntN(4) {
		p.add(at, "sweep queue of "+l.path, func() {
			queue := l.path
			if w.authority().Children(l.path+"/locks") != nil {
				queue += "/locks"
			}
			for _, path := range w.h.Standing(l.path) {
				if strings.HasPrefix(path, queue+"/") {
					w.remove(path)
				}
			}
			if w.authority().Delete(queue) == nil {
				w.h.Note(func() { w.sum.Anew++ })
			}
		})
		at = min(at+p.length(time.Second), disturbed-time.Millisecond)
	}
}
