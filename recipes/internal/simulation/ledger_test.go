package simulation_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sim "github.com/docent-go/docent/recipes/internal/simulation"
)

// ledger counts what came up, by its name.
type ledger map[string]int

func (l ledger) add(o ledger) {
	for what, n := range o {
		l[what] += n
	}
}

// situation is one line of the ledger of situations: what a contender was, whether it waited or
// held, what happened to it, and next to whom it stood then.
func situation(mode, state, what, ahead, behind string) string {
	return fmt.Sprintf("%s; behind %s, before %s", amongAny(mode, state, what), ahead, behind)
}

// amongAny is a situation whoever the neighbours are.
func amongAny(mode, state, what string) string {
	return fmt.Sprintf("%s %s, %s", mode, state, what)
}

// situations reads them from the history: what ended nodes, and what was asked for.
func (w *world) situations() ledger {
	all := ledger{}
	if !w.k.whole {
		return all
	}
	for _, n := range w.h.Nodes {
		if n.Session == 0 {
			continue // an operator's
		}
		for _, f := range w.asked {
			if f.Path == n.Path && f.At >= n.Made && (n.Gone == Never || f.At < n.Gone) {
				w.count(all, n, f.At, "is asked")
			}
		}
		if what := w.end(n); what != "" {
			w.count(all, n, n.Gone, what)
		}
	}
	return all
}

// end says how a node has ended.
func (w *world) end(n *sim.Node) string {
	on := func(f func(g *sim.Hold) bool) bool { return slices.ContainsFunc(w.h.Holds, f) }
	switch {
	case n.Gone == Never:
		return ""
	case slices.ContainsFunc(w.h.Forces, func(f sim.Force) bool { return f.Path == n.Path && f.At == n.Gone }):
		return "is deleted"
	case w.moved[n.Path]:
		return "is sent behind"
	case !n.Given && !n.Inherited:
		return "loses its session"
	case !n.Given:
		return "" // in a later session, after the loss
	case on(func(g *sim.Hold) bool { return g.From != nil && g.From.Path == n.Path }):
		return "reads on"
	case on(func(g *sim.Hold) bool { return g.Path == n.Path && w.handed[g] }):
		return "hands over"
	case on(func(g *sim.Hold) bool { return g.Path == n.Path && g.Released != Never }):
		return "releases"
	case n.Role == sim.RolePlace, n.Role == sim.RoleQueue && !w.served(n):
		return "gives up"
	default:
		return ""
	}
}

// served reports whether permits were made when a node in the queue went.
func (w *world) served(n *sim.Node) bool {
	return slices.ContainsFunc(w.h.Nodes, func(o *sim.Node) bool {
		return o.Role == sim.RolePermit && o.Lock == n.Lock && o.Made == n.Gone && o.Session == n.Session
	})
}

// count counts the situation of a node at a time, also without its neighbours.
func (w *world) count(l ledger, n *sim.Node, at time.Duration, what string) {
	state := w.state(n, at)
	ahead, behind := w.neighbours(n, at)
	l[situation(modeOf(n.Path), state, what, ahead, behind)]++
	l[amongAny(modeOf(n.Path), state, what)]++
	if w.ofSeveral(n) {
		l[amongAny(modeOf(n.Path), state, what)+ofSeveral]++
	}
}

// ofSeveral is said of a hold that is one of a multi-lock's.
const ofSeveral = "; one of several"

// ofSeveral reports whether a node became a hold of a multi-lock's.
func (w *world) ofSeveral(n *sim.Node) bool {
	return slices.ContainsFunc(w.h.Attempts, func(a *sim.Attempt) bool {
		return len(a.Holds) > 1 && slices.ContainsFunc(a.Holds, func(g *sim.Hold) bool { return g.Path == n.Path })
	})
}

// state is what the owner of a node had of its lock at a time.
func (w *world) state(n *sim.Node, at time.Duration) string {
	state := "waits"
	if n.Role == sim.RolePermit {
		state = "holds"
	}
	for _, g := range w.h.Holds {
		switch {
		case g.Path != n.Path || g.Granted > at:
		case g.Nested && (g.ContextEnded == Never || g.ContextEnded >= at):
			state = "holds twice"
		case state == "waits":
			state = "holds"
		}
	}
	return state
}

// neighbours are the contenders next to a node. Before permits stands nobody, behind them the
// queue. A writer and its readers, who have one place, are no neighbours.
func (w *world) neighbours(n *sim.Node, at time.Duration) (ahead, behind string) {
	var before, after *sim.Node
	for _, o := range w.h.Nodes {
		if o.Lock != n.Lock || o.Path[len(o.Path)-10:] == n.Path[len(n.Path)-10:] && o.Role == n.Role || o.Made >= at || o.Gone != Never && o.Gone < at || o.Role == sim.RolePermit {
			continue
		}
		if n.Role != sim.RolePermit && inLine(o, n) < 0 {
			if before == nil || inLine(before, o) < 0 {
				before = o
			}
		} else if after == nil || inLine(o, after) < 0 {
			after = o
		}
	}
	return w.beside(n, before), w.beside(n, after)
}

// inLine compares the places of two nodes.
func inLine(a, b *sim.Node) int {
	return strings.Compare(a.Path[len(a.Path)-10:], b.Path[len(b.Path)-10:])
}

// beside is what a neighbour of a node is.
func (w *world) beside(n, o *sim.Node) string {
	switch {
	case o == nil:
		return "nobody"
	case w.h.Sessions[o.Session] == w.h.Sessions[n.Session]:
		return modeOf(o.Path) + " of its client"
	default:
		return modeOf(o.Path) + " of another"
	}
}

// modeOf is what the name of a node says of its owner.
func modeOf(path string) string {
	switch {
	case strings.Contains(path, "__READ__"):
		return "a reader"
	case strings.Contains(path, "__WRIT__"):
		return "a writer"
	case strings.Contains(path, "-lease-"):
		return "a permit"
	case queueDir.MatchString(path):
		return "one in a queue"
	default:
		return "a contender"
	}
}

// queueDir is the directory of those who wait for permits.
var queueDir = regexp.MustCompile(`^/locks/.*/locks/`)

// wantAll fails for each situation that is possible and has not come up.
func (l ledger) wantAll(t *testing.T, k setting) {
	t.Helper()
	all := k.possible()
	for _, what := range all {
		if l[what] == 0 {
			t.Errorf("no schedule has come to this: %s", what)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(l[a], l[b]) })
	t.Logf("%d situations; the rarest, %d times: %s", len(all), l[all[0]], all[0])
	for _, what := range all[1:min(len(all), 12)] {
		t.Logf("%d times: %s", l[what], what)
	}
}
