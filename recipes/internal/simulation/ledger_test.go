package simulation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sim "github.com/docent-go/docent/recipes/internal/simulation"
)

// ledger counts the situations that came up: what a contender was, whether it waited or held,
// what happened to it then, and who stood behind it.
type ledger map[string]int

func (l ledger) add(o ledger) {
	for what, n := range o {
		l[what] += n
	}
}

// situation is one line of the ledger.
func situation(mode, state, what, behind string) string {
	return fmt.Sprintf("%s %s, %s, %s behind", mode, state, what, behind)
}

// situations reads them from the history: what ended nodes, and what operators asked for.
func (w *world) situations() ledger {
	all := ledger{}
	if w.k.actors == 0 {
		return all // it is no crowd
	}
	note := func(n *sim.Node, at time.Duration, what string) {
		mode, state := modeOf(n.Path), "waits"
		if slices.ContainsFunc(w.h.Holds, func(g *sim.Hold) bool { return g.Path == n.Path && g.Granted <= at }) || n.Role == sim.RolePermit {
			state = "holds"
		}
		all[situation(mode, state, what, w.behind(n, at))]++
	}
	for _, n := range w.h.Nodes {
		forced := slices.ContainsFunc(w.h.Forces, func(f sim.Force) bool { return f.Path == n.Path })
		held := slices.ContainsFunc(w.h.Holds, func(g *sim.Hold) bool { return g.Path == n.Path })
		turned := slices.ContainsFunc(w.h.Holds, func(g *sim.Hold) bool { return g.From != nil && g.From.Path == n.Path })
		for _, f := range w.asked {
			if f.Path == n.Path && f.At >= n.Made && f.At < n.Gone {
				note(n, f.At, "is asked")
			}
		}
		switch {
		case n.Gone == sim.Never || !forced && !n.Given:
		case forced:
			note(n, n.Gone, "is deleted")
		case turned:
			note(n, n.Gone, "reads on")
		case held:
			note(n, n.Gone, "releases")
		case n.Role == sim.RolePlace, n.Role == sim.RoleQueue && !w.served(n):
			note(n, n.Gone, "gives up")
		}
	}
	return all
}

// served reports whether permits were made when a node in the queue went.
func (w *world) served(n *sim.Node) bool {
	return slices.ContainsFunc(w.h.Nodes, func(o *sim.Node) bool {
		return o.Role == sim.RolePermit && o.Lock == n.Lock && o.Made == n.Gone && o.Session == n.Session
	})
}

// behind is the contender that stands next behind a node, or behind the permits. A reader in
// a writer's place stands beside the writer.
func (w *world) behind(n *sim.Node, at time.Duration) string {
	next := "nobody"
	least := ""
	for _, o := range w.h.Nodes {
		number := o.Path[len(o.Path)-10:]
		switch {
		case o.Lock != n.Lock || o == n || o.Made >= at || o.Gone <= at || o.Role == sim.RolePermit:
		case n.Role != sim.RolePermit && number <= n.Path[len(n.Path)-10:]:
		case least == "" || number < least:
			least, next = number, modeOf(o.Path)
		}
	}
	return next
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
	default:
		return "a contender"
	}
}

// possible are the situations of a kind of lock.
func possible(k *kind) (all []string) {
	waiting, holding, behind := []string{"a contender"}, []string{"a contender"}, []string{"nobody", "a contender"}
	switch k {
	case readWrite:
		waiting, holding = []string{"a reader", "a writer"}, []string{"a reader", "a writer"}
		behind = []string{"nobody", "a reader", "a writer"}
	case semaphores:
		holding = []string{"a permit"}
	}
	for _, next := range behind {
		for _, mode := range waiting {
			for _, what := range []string{"gives up", "is deleted", "is asked"} {
				all = append(all, situation(mode, "waits", what, next))
			}
		}
		for _, mode := range holding {
			for _, what := range []string{"releases", "is deleted", "is asked"} {
				all = append(all, situation(mode, "holds", what, next))
			}
			if mode == "a writer" {
				all = append(all, situation(mode, "holds", "reads on", next))
			}
		}
	}
	return all
}

// wantAll fails for each possible situation that has not come up.
func (l ledger) wantAll(t *testing.T, k *kind) {
	t.Helper()
	for _, what := range possible(k) {
		if l[what] == 0 {
			t.Errorf("no schedule has come to this: %s", what)
		}
	}
}
