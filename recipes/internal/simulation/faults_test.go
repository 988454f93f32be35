package simulation_test

import (
	"math/rand/v2"
	"slices"
	"time"

	sim "github.com/docent-go/docent/recipes/internal/simulation"
	"github.com/docent-go/docent/zktest"
)

// style is how a schedule is drawn.
type style struct {
	least, more int // faults
	lasting     int // of 4 and so many faults, so many and one may outlast a session
	patient     int // of 18 and so many visits, so many may
}

var (
	stirring = style{least: 4, more: 12, patient: 2}
	// With a few faults that last, holders lose what they hold in all the ways
	// in which a session ends.
	parting = style{least: 2, more: 5, lasting: 8, patient: 18}
)

// plan is what happens to the network, the server and the tree, and when.
type plan struct {
	steps []step
	spans []span // partitions
	r     *rand.Rand
}

// step is one deed of the plan.
type step struct {
	at   time.Duration
	what string
	do   func()
}

// span is a time in which a client, or every client, was cut off.
type span struct {
	client   string // "" is every client
	from, to time.Duration
	hit      bool
}

// newPlan draws a plan from the seed.
func newPlan(w *world, r *rand.Rand) *plan {
	p := &plan{r: r}
	for range w.style.least + r.IntN(w.style.more) {
		at := time.Duration(r.Int64N(int64(disturbed * 9 / 10)))
		lasts := []time.Duration{300 * time.Millisecond, 2 * time.Second, w.h.Timeout, 5 * w.h.Timeout / 2}[min(r.IntN(4+w.style.lasting), 3)]
		to := min(at+1+time.Duration(r.Int64N(int64(lasts))), disturbed-time.Millisecond)
		f := w.menu[r.IntN(len(w.menu))]
		f.plan(p, w, w.nodes[r.IntN(len(w.nodes))], at, to)
	}
	slices.SortStableFunc(p.steps, func(a, b step) int { return int(a.at - b.at) })
	return p
}

func (p *plan) add(at time.Duration, what string, do func()) {
	p.steps = append(p.steps, step{at, what, do})
}

// during plans a deed and its opposite.
func (p *plan) during(at, to time.Duration, what string, do, undo func()) {
	p.add(at, what, do)
	p.add(to, "end of "+what, undo)
}

func (p *plan) cutOff(client string, at, to time.Duration) {
	p.spans = append(p.spans, span{client: client, from: at, to: to})
}

// partitioned returns how many partitions a client noticed for the first time.
func (p *plan) partitioned(client string, at time.Duration) int {
	n := 0
	for i := range p.spans {
		s := &p.spans[i]
		if !s.hit && (s.client == "" || s.client == client) && s.from <= at && at <= s.to {
			s.hit = true
			n++
		}
	}
	return n
}

// carryOut does what is planned and then heals everything.
func (p *plan) carryOut(w *world) {
	for _, s := range p.steps {
		time.Sleep(time.Until(w.start.Add(s.at)))
		w.trace.note(w.now(), nil, text("plan: "+s.what))
		s.do()
	}
	time.Sleep(time.Until(w.start.Add(disturbed)))
	w.trace.note(w.now(), nil, text("plan: heal"))
	w.heal()
}

func (w *world) heal() {
	for _, s := range w.servers {
		s.ClearRules()
	}
	for _, n := range w.nodes {
		n.link.Heal()
		n.link.Thaw()
		n.link.Accept()
		n.link.Resume()
		n.link.SetLatency(latencyLo, latencyHi)
	}
	for _, s := range w.servers {
		s.Heal()
		s.Thaw()
		s.Accept()
		s.Resume()
		s.SlowLog(0)
		s.DelayEvents(0)
	}
	if w.ensemble != nil {
		w.healEnsemble()
	}
	for _, l := range w.locks {
		w.setCount(l, l.of)
		for _, name := range l.kind.foreign {
			w.remove(l.path + "/" + name)
		}
	}
}

// remove deletes a node as an operator does.
func (w *world) remove(path string) {
	if _, ok := w.authority().Node(path); !ok {
		return
	}
	at := w.now()
	if w.authority().Delete(path) == nil {
		w.h.Note(func() { w.h.Forces = append(w.h.Forces, sim.Force{Path: path, At: at}) })
	}
}

// fault is one dish of the menu.
type fault struct {
	name string
	plan func(p *plan, w *world, n *node, at, to time.Duration)
}

// requests are the types of requests that faults strike.
var requests = []zktest.Op{
	zktest.OpCreate, zktest.OpCreate, zktest.OpDelete, zktest.OpDelete, zktest.OpGetData, zktest.OpGetChildren2,
	zktest.OpSync, zktest.OpExists, zktest.OpCreateContainer, zktest.OpConnect, zktest.OpPing, 0,
}

// requestsOfMany are the requests of locks that need transactions.
var requestsOfMany = append(slices.Clone(requests), zktest.OpMulti, zktest.OpMulti, zktest.OpMulti)

// ruled is a fault of single requests. It strikes from at to to.
func ruled(name string, set func(w *world, s server, m zktest.Match) *zktest.Rule) fault {
	return fault{name, func(p *plan, w *world, n *node, at, to time.Duration) {
		m := zktest.Match{Client: n.name, Op: w.game.requests[p.r.IntN(len(w.game.requests))], Times: 1 + p.r.IntN(3)}
		if p.r.IntN(4) == 0 {
			m.Times, m.Prob = 0, 0.3
		}
		var rules []*zktest.Rule
		p.during(at, to, name+" "+m.Op.String()+" of "+n.name, func() {
			for _, s := range w.servers {
				rules = append(rules, set(w, s, m))
			}
		}, func() {
			for _, rule := range rules {
				rule.Remove()
			}
		})
	}}
}

// linked is a fault of one client's network.
func linked(name string, cuts bool, do, undo func(n *node)) fault {
	return fault{name, func(p *plan, w *world, n *node, at, to time.Duration) {
		if cuts {
			p.cutOff(n.name, at, to)
		}
		p.during(at, to, name+" "+n.name, func() { do(n) }, func() { undo(n) })
	}}
}

// general is a fault of a server on its own.
func general(name string, cuts bool, do, undo func(s *zktest.Server)) fault {
	return fault{name, func(p *plan, w *world, _ *node, at, to time.Duration) {
		if cuts {
			p.cutOff("", at, to)
		}
		p.during(at, to, name, func() { do(w.alone) }, func() { undo(w.alone) })
	}}
}
