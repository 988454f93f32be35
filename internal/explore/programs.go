package explore

import (
	"fmt"
	"strings"
)

// Gate parks the steps of actors until they are let go on, one after the other. A
// zktest.Gate is one.
type Gate[P fmt.Stringer] interface {
	// Parked lists the steps that may be next. The text of each begins with the name of
	// its actor and a space, and is the same in each run.
	Parked() []P
	Let(step P)
}

// Deed is what somebody may do once, at any moment of a play.
type Deed struct {
	Name string
	Do   func()
}

// Programs are actors whose steps a gate parks. In a bubble of testing/synctest Rest is
// synctest.Wait, and Idle sleeps.
type Programs[P fmt.Stringer] struct {
	Gate Gate[P]
	// Rest waits until no actor can go on by itself.
	Rest func()
	// Over reports whether the play is over. It is asked at rest.
	Over func() bool
	// Deeds may be done, each once and in any order, or not at all.
	Deeds []Deed
	// Idle lets time pass while no step is parked. After Idles times in a row the play
	// is over.
	Idle  func()
	Idles int
}

// Play plays the programs in one order.
func (p Programs[P]) Play(o *Order) {
	done := make([]bool, len(p.Deeds))
	for idle := 0; ; {
		p.Rest()
		if p.Over() {
			return
		}
		steps := p.Gate.Parked()
		var options []Option
		var acts []func()
		add := func(actor, step string, act func()) {
			options, acts = append(options, Option{actor, step}), append(acts, act)
		}
		for _, step := range steps {
			actor, what, _ := strings.Cut(step.String(), " ")
			add(actor, what, func() { p.Gate.Let(step) })
		}
		if len(steps) > 0 {
			idle = 0
		} else if idle++; idle <= p.Idles {
			add("time", "passes", p.Idle)
		} else {
			return
		}
		for i, d := range p.Deeds {
			if !done[i] {
				add(d.Name, "now", func() { done[i] = true; d.Do() })
			}
		}
		acts[o.Choose(options)]()
	}
}
