package simulation_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
)

func (w *world) leave(kind sim.ResidueKind, what string) {
	w.h.Note(func() { w.h.Left = append(w.h.Left, sim.Residue{Kind: kind, What: what}) })
}

// leftByActors looks for what calls have left behind while the sessions live.
func (w *world) leftByActors() {
	time.Sleep(2*w.h.Timeout + 2*w.h.Tick)
	for _, l := range w.locks {
		for _, dir := range l.kind.dirs {
			for _, name := range w.authority().Children(l.path + dir) {
				w.leave(sim.ResidueNode, l.path+dir+"/"+name)
			}
		}
	}
	for _, s := range w.servers {
		for _, watch := range s.Watches() {
			w.leave(sim.ResidueWatch, fmt.Sprint(watch))
		}
	}
	for _, s := range w.authority().Sessions() {
		if i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.name == s.Client }); w.nodes[i].closed.Load() {
			w.leave(sim.ResidueSession, fmt.Sprint(s))
		}
	}
	if s := w.authority().Sessions(); len(s) > len(w.nodes) {
		w.leave(sim.ResidueSession, fmt.Sprint(s))
	}
}

// closeAll closes the clients and looks for what they have left behind.
func (w *world) closeAll() {
	for _, n := range w.nodes {
		if n.c.Load() == nil || n.closed.Load() {
			continue
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), closeWithin)
		if err := n.c.Load().CloseContext(ctx); err != nil || ctx.Err() != nil {
			w.leave(sim.ResidueClose, fmt.Sprint(n.name, ": ", err))
		}
		cancel()
	}
	synctest.Wait()
	for _, s := range w.authority().Sessions() {
		w.leave(sim.ResidueSession, fmt.Sprint(s))
	}
	for _, stack := range testrig.Goroutines(w.t, clientFrames) {
		w.leave(sim.ResidueGoroutine, stack)
	}
}

// clientFrames are what the goroutines of clients run.
var clientFrames = regexp.MustCompile(`docent/(client|client/internal/\w+|recipes|recipes/internal/seqqueue|retry|internal/wire)\.|go-zookeeper/zk\.`)
