package nodes_test

import (
	"fmt"
	"slices"

	"github.com/docent-go/docent/recipes/nodes"
)

// kind is what the objects of a program are.
type kind struct {
	name    string
	mode    nodes.Mode
	opts    []nodes.Option
	clients int
	objects int
	own     bool // each object has a node of its own
	group   bool // the objects are members, and an onlooker follows them
	stops   bool // with StopWhenRemoved
	less    int  // how many calls less than usual a program has
}

func kinds() []kind {
	stop := []nodes.Option{nodes.StopWhenRemoved()}
	protect := []nodes.Option{nodes.WithProtection()}
	return []kind{
		{name: "ephemeral alone", mode: nodes.Ephemeral, clients: 1, objects: 1},
		{name: "stopped alone", mode: nodes.Ephemeral, opts: stop, stops: true, clients: 1, objects: 1},
		{name: "taking over, alone", mode: nodes.Ephemeral, opts: []nodes.Option{nodes.TakeOver()}, clients: 1, objects: 1},
		{name: "persistent alone", mode: nodes.Persistent, clients: 1, objects: 1},
		{name: "container alone", mode: nodes.Container, clients: 1, objects: 1},
		{name: "ephemeral by one client", mode: nodes.Ephemeral, clients: 1, objects: 2, less: 1},
		{name: "ephemeral by two clients", mode: nodes.Ephemeral, clients: 2, objects: 2, less: 1},
		{name: "stopped by two clients", mode: nodes.Ephemeral, opts: stop, stops: true, clients: 2, objects: 2, less: 1},
		{name: "persistent by one client", mode: nodes.Persistent, clients: 1, objects: 2, less: 2},
		{name: "persistent by two clients", mode: nodes.Persistent, clients: 2, objects: 2, less: 1},
		{name: "protected by one client", mode: nodes.Ephemeral, opts: protect, clients: 1, objects: 2, own: true, less: 2},
		{name: "sequential by one client", mode: nodes.EphemeralSequential, clients: 1, objects: 2, own: true, less: 2},
		{name: "sequential by two clients", mode: nodes.EphemeralSequential, clients: 2, objects: 2, own: true, less: 1},
		{name: "persistent sequential by two clients", mode: nodes.PersistentSequential, opts: protect, clients: 2, objects: 2, own: true, less: 2},
		{name: "members by one client", mode: nodes.Ephemeral, clients: 1, objects: 2, own: true, group: true, less: 2},
		{name: "members by two clients", mode: nodes.Ephemeral, clients: 2, objects: 2, own: true, group: true, less: 1},
	}
}

func (k *kind) ephemeral() bool { return k.mode <= nodes.EphemeralSequential }

func (k *kind) clientOf(object int) int { return min(object, k.clients-1) }

// phase is where an object is, as the rule has it.
type phase int

const (
	fresh phase = iota
	waits       // in Start, while another's node stands
	live
	removed
	closed
)

// paper is the rule: what must be so at rest after some calls. Whose node stands, when
// several objects may have made it, the server says.
type paper struct {
	kind  *kind
	at    [2]phase
	gen   [2]int // of the data that Set has given
	owner int    // whose node stands at the path that all share; -1 if none does
	free  bool   // any object that wants the node may have made it
	shy   bool   // nobody can tell which of two has made a persistent node
}

// wanting are the objects that want a node.
func (p *paper) wanting() (all []int) {
	for i, at := range p.at {
		if at == live || at == waits {
			all = append(all, i)
		}
	}
	return all
}

// calls are those that come next.
func (p *paper) calls() (all []string) {
	add := func(what string, of int) { all = append(all, fmt.Sprint(what, " ", of)) }
	for i, at := range p.at[:p.kind.objects] {
		if i == 1 && p.at[0] == fresh && p.gen[0] == 0 {
			break // the objects are alike
		}
		if at == fresh {
			add("start", i)
		}
		if at == waits {
			add("cancel", i)
		}
		if at == fresh && p.gen[i] == 0 || at != fresh && at != closed {
			add("set", i)
		}
		if at != fresh && at != closed {
			add("close", i)
		}
	}
	if len(p.wanting()) > 0 {
		all = append(all, "delete")
	}
	for c := range p.kind.clients {
		if slices.ContainsFunc(p.wanting(), func(i int) bool { return p.kind.clientOf(i) == c }) {
			add("expire", c)
		}
	}
	return all
}

// play says what must be so after a call.
func (p *paper) play(call string) {
	what, i := parse(call)
	p.free = false
	switch what {
	case "start":
		if p.at[i] != fresh {
			return
		}
		switch p.at[i] = live; {
		case p.owner < 0:
			p.owner = i
		case p.kind.ephemeral() && !p.kind.own:
			p.at[i] = waits
		}
	case "cancel":
		if p.at[i] == waits {
			p.at[i] = fresh
		}
	case "set":
		p.gen[i]++
	case "close":
		if p.at[i] = closed; p.shy && len(p.wanting()) > 0 {
			p.owner, p.shy, p.free = p.wanting()[0], false, true
			return
		}
		p.gone(p.owner == i)
	case "delete":
		for j := range p.at {
			if p.kind.stops && p.owner == j {
				p.at[j] = removed
			}
		}
		p.gone(true)
	case "expire":
		p.gone(p.kind.ephemeral() && p.owner >= 0 && p.kind.clientOf(p.owner) == i)
	}
}

// gone says that the node at the shared path is gone, if it is, and made again.
func (p *paper) gone(gone bool) {
	if !gone {
		return
	}
	p.owner, p.shy = -1, false
	if all := p.wanting(); len(all) > 0 {
		p.free = len(all) > 1
		p.shy = p.free && !p.kind.ephemeral()
		p.owns(all[0])
	}
}

// owns notes whose node stands. Unless that is open, its Start returns.
func (p *paper) owns(i int) {
	p.owner = i
	if !p.free && p.at[i] == waits {
		p.at[i] = live
	}
}

// remade reports whether a call has made the node of an object again.
func (p *paper) remade(call string, i int) bool {
	what, of := parse(call)
	return what == "delete" || what == "expire" && p.kind.ephemeral() && p.kind.clientOf(i) == of
}

// parse splits a call. One without a number has 0.
func parse(call string) (what string, of int) {
	_, _ = fmt.Sscan(call, &what, &of) // "delete" has no number
	return what, of
}

// programs yields each program of n calls. Where the server says whose node stands, the
// program is that for one of them; a call that the other would not make does nothing then.
func (k *kind) programs(n int, yield func([]string) bool) {
	var more func(p paper, calls []string) bool
	more = func(p paper, calls []string) bool {
		next := p.calls()
		if len(calls) == n || len(next) == 0 {
			return yield(slices.Clone(calls))
		}
		for _, call := range next {
			after := p
			if after.play(call); after.free {
				after.free = false
				after.owns(after.owner) // a guess; the rest of the program fits each winner
			}
			if !more(after, append(calls, call)) {
				return false
			}
		}
		return true
	}
	more(paper{kind: k, owner: -1}, nil)
}
