package simulation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
)

// together lets a hold its lock still when b is granted.
func together(p *peace) {
	p.a.ContextEnded, p.a.Leaving, p.a.Released, p.nodeA.Gone = 7*second, 7*second, 8*second, 8*second
	p.takeB.Ended, p.b.Granted = 6*second, 6*second
}

// shares gives a and b parts of the lock.
func shares(p *peace, a, b, of int) {
	p.a.Units, p.inner.Units, p.b.Units = a, a, b
	p.a.Of, p.inner.Of, p.b.Of = of, of, of
}

// permitted makes the nodes nodes of permits.
func permitted(p *peace) {
	for _, n := range p.Nodes {
		n.Role, n.Of, n.Placed = sim.RolePermit, 3, true
	}
	shares(p, 1, 1, 3)
}

// downgraded lets b read in the place of a, which wrote.
func downgraded(p *peace) {
	shares(p, 1000, 1, 1000)
	p.Attempts = []*sim.Attempt{p.takeA, p.again, p.cs}
	p.b.From, p.b.Token, p.nodeB.Made, p.b.Granted = p.a, p.a.Token, 3*second, 6*second
}

// between is a writer that was granted then.
func between(p *peace) {
	n := &sim.Node{Path: "/l/d", Lock: "/l", Session: 3, Czxid: 11, Made: 5 * second, Gone: 6 * second}
	g := &sim.Hold{
		Client: "three", Lock: "/l", Path: n.Path, Token: 11, Granted: 5 * second, ContextEnded: 5*second + 1,
		Leaving: 5 * second, Released: 6 * second, Units: 1000, Of: 1000,
	}
	p.Nodes, p.Holds = append(p.Nodes, n), append(p.Holds, g)
}

// hopeless makes a re-entry one that must be refused.
func hopeless(p *peace, err error) {
	p.again.Hopeless, p.again.Hold, p.again.Err = true, nil, err
	p.Holds = []*sim.Hold{p.a, p.b}
}

// shareCases break one promise each of locks that are shared, or come as near
// as they may.
var shareCases = map[string]struct {
	edit func(p *peace)
	want []error
}{
	"two readers":       {func(p *peace) { together(p); shares(p, 1, 1, 1000) }, nil},
	"reader and writer": {func(p *peace) { together(p); shares(p, 1, 1000, 1000) }, []error{sim.ErrBelief}},
	"writer and reader": {func(p *peace) { together(p); shares(p, 1000, 1, 1000) }, []error{sim.ErrBelief}},
	"all permits":       {func(p *peace) { together(p); shares(p, 1, 2, 3) }, nil},
	"one permit too many": {func(p *peace) {
		together(p)
		shares(p, 2, 2, 3)
	}, []error{sim.ErrBelief}},
	"one permit too many by force": {func(p *peace) {
		together(p)
		shares(p, 2, 2, 3)
		p.force("/l/a", 0, 5*second)
	}, nil},
	"too many inside": {func(p *peace) { meet(p); shares(p, 2, 2, 3) }, []error{sim.ErrOverlap}},
	"not every visitor believes": {func(p *peace) {
		meet(p)
		shares(p, 2, 1, 3)
		p.Visits[0].In = append(p.Visits[0].In, &sim.Hold{Path: "/l/c", Units: 1, Of: 3})
		p.force("/l/c", 0, 5*second)
	}, nil},
	"readers with older tokens": {func(p *peace) { shares(p, 1, 1, 1000); p.b.Token, p.nodeB.Czxid = 10, 10 }, nil},
	"writer with an older token": {func(p *peace) {
		shares(p, 1, 1000, 1000)
		p.b.Token, p.nodeB.Czxid = 10, 10
	}, []error{sim.ErrTokenOrder}},
	"reader with an older token": {func(p *peace) {
		shares(p, 1000, 1, 1000)
		p.b.Token, p.nodeB.Czxid = 10, 10
	}, []error{sim.ErrTokenOrder}},
	"permits": {permitted, nil},
	"too many permits": {func(p *peace) {
		permitted(p)
		p.nodeA.Of, p.nodeB.Of = 1, 1
		shares(p, 1, 1, 1)
		p.nodeA.Gone, p.a.Released = p.b.Granted+1, p.b.Granted+1
	}, []error{sim.ErrPermits}},
	"too many permits, one of them not granted": {func(p *peace) {
		permitted(p)
		p.nodeB.Of = 1
		shares(p, 1, 1, 1)
		p.nodeC.Gone = p.b.Granted + 1
	}, nil},
	"a permit at once": {func(p *peace) { permitted(p); p.nodeB.Placed = false }, nil},
	"a permit at once, past a waiter": {func(p *peace) {
		permitted(p)
		p.nodeB.Placed, p.nodeB.Ahead = false, []string{"/l/c"}
		p.nodeC.Role, p.nodeC.Gone = sim.RoleQueue, p.b.Granted+1
	}, []error{sim.ErrOutOfTurn}},
	"a permit at once, after a waiter": {func(p *peace) {
		permitted(p)
		p.nodeB.Placed, p.nodeB.Ahead = false, []string{"/l/c"}
		p.nodeC.Role, p.nodeC.Gone = sim.RoleQueue, p.b.Granted
	}, nil},
	"a permit that is not granted": {func(p *peace) {
		permitted(p)
		p.nodeC.Placed, p.nodeC.Made, p.nodeC.Gone = false, 141*second, 143*second
	}, []error{sim.ErrKept}},
	"permit out of turn": {func(p *peace) { permitted(p); p.nodeB.Ahead = []string{"/l/x"} }, []error{sim.ErrOutOfTurn}},
	"two permits": {func(p *peace) {
		permitted(p)
		shares(p, 1, 2, 3)
		p.nodeC.Czxid, p.nodeC.Gone = p.nodeB.Czxid, p.nodeB.Gone
	}, nil},
	"a permit of two holds": {func(p *peace) {
		permitted(p)
		together(p)
		shares(p, 2, 1, 3)
		p.nodeB.Czxid, p.b.Token = p.nodeA.Czxid, p.a.Token
	}, []error{sim.ErrHalf, sim.ErrFalseRelease}},
	"half of two permits": {func(p *peace) { permitted(p); shares(p, 1, 2, 3) }, []error{sim.ErrHalf}},
	"the second permit goes early": {func(p *peace) {
		permitted(p)
		shares(p, 1, 2, 3)
		p.nodeC.Czxid, p.nodeC.Gone = p.nodeB.Czxid, 7*second
	}, []error{sim.ErrLateLoss}},
	"the second permit stays": {func(p *peace) {
		permitted(p)
		shares(p, 1, 2, 3)
		p.nodeC.Czxid, p.nodeC.Gone = p.nodeB.Czxid, sim.Never
	}, []error{sim.ErrFalseRelease}},
	"two locks":         {func(p *peace) { p.takeA.Locks, p.takeA.Holds = []string{"/l", "/m"}, []*sim.Hold{p.a, p.b} }, nil},
	"half of two locks": {func(p *peace) { p.takeA.Locks, p.takeA.Holds = []string{"/l", "/m"}, []*sim.Hold{p.a} }, []error{sim.ErrHalf}},
	"kept":              {func(p *peace) { p.nodeC.Gone = sim.Never }, []error{sim.ErrKept}},
	"kept for long":     {func(p *peace) { p.nodeC.Gone = 181 * second }, []error{sim.ErrKept}},
	"kept by an operator": {func(p *peace) {
		p.nodeC.Gone, p.nodeC.Session = sim.Never, 0
	}, nil},
	"downgrade": {downgraded, nil},
	"downgrade with another token": {func(p *peace) {
		downgraded(p)
		p.b.Token = 12
	}, []error{sim.ErrTokenForged}},
	"read after the writer had gone": {func(p *peace) { downgraded(p); p.nodeB.Made = 5*second + 1 }, []error{sim.ErrDowngrade}},
	"read after the writer was taken": {func(p *peace) {
		downgraded(p)
		p.nodeB.Made = 5*second + 1
		p.force("/l/a", 0, 5*second)
	}, nil},
	"writer in between": {func(p *peace) { downgraded(p); between(p) }, []error{sim.ErrDowngrade, sim.ErrTokenOrder}},
	"writer in between, whose session an operator ended": {func(p *peace) {
		downgraded(p)
		between(p)
		p.force("", 3, 5*second)
	}, nil},
	"refused what is hopeless": {func(p *peace) { hopeless(p, failed(recipes.ErrWouldDeadlock)) }, nil},
	"waited for what is not":   {func(p *peace) { hopeless(p, failed(recipes.ErrWouldDeadlock)); p.again.Ended = 3 * second }, []error{sim.ErrReentry}},
	"refused by the servers": {func(p *peace) {
		hopeless(p, failed(recipes.ErrWouldDeadlock))
		p.again.Asks, p.again.Ended = true, 3*second
	}, nil},
	"another error of the servers'": {func(p *peace) {
		hopeless(p, failed(recipes.ErrBusy))
		p.again.Call, p.again.Asks = "try", true
	}, []error{sim.ErrReentry}},
	"another error":            {func(p *peace) { hopeless(p, failed(recipes.ErrBusy)); p.again.Call = "try" }, []error{sim.ErrReentry}},
	"deadlock where none is":   {func(p *peace) { p.cs.Err = failed(recipes.ErrWouldDeadlock) }, []error{sim.ErrUnexplained}},
	"granted what is hopeless": {func(p *peace) { p.again.Hopeless = true }, []error{sim.ErrReentry}},
	"granted after force": {func(p *peace) {
		p.again.Hopeless, p.again.Asks = true, true
		p.again.Hold.Granted = 2*second + 1
		p.force("/l/a", 0, 2*second)
	}, nil},
	"granted without force": {func(p *peace) { p.again.Hopeless, p.again.Asks = true, true }, []error{sim.ErrReentry}},
	"granted before force": {func(p *peace) {
		p.again.Hopeless, p.again.Asks = true, true
		p.again.Hold.Granted = 2 * second
		p.force("/l/a", 0, 2*second)
	}, []error{sim.ErrReentry}},
	"a context that was over": {func(p *peace) {
		hopeless(p, failed(context.Canceled))
		p.again.ContextEnded, p.a.ContextEnded = 2*second, second
	}, nil},
	"more permits than there were": {func(p *peace) {
		p.cs.Err, p.cs.Units = failed(recipes.ErrTooManyPermits), 3
		p.Counts = []*sim.Count{{Lock: "/l", Permits: 2, Set: second, Gone: 3 * second}}
	}, nil},
	"more permits than there had been": {func(p *peace) {
		p.cs.Err, p.cs.Units = failed(recipes.ErrTooManyPermits), 3
		p.Counts = []*sim.Count{{Lock: "/l", Permits: 2, Set: second, Gone: 2 * second}, {Lock: "/l", Permits: 3, Set: 2 * second, Gone: sim.Never}}
	}, []error{sim.ErrFalseFew}},
	"permits of another semaphore": {func(p *peace) {
		p.cs.Err, p.cs.Units = failed(recipes.ErrTooManyPermits), 3
		p.Counts = []*sim.Count{{Lock: "/m", Permits: 2, Set: second, Gone: sim.Never}}
	}, []error{sim.ErrFalseFew}},
	"refused for the number of permits": {func(p *peace) {
		hopeless(p, failed(recipes.ErrTooManyPermits))
		p.again.Units, p.Counts = 3, []*sim.Count{{Lock: "/l", Permits: 2, Set: second, Gone: sim.Never}}
	}, nil},
	"deletion in another lock": {func(p *peace) {
		p.cs.Err, p.cs.Lock = failed(recipes.ErrNodeDeleted), "/m"
		p.force("/l/c", 0, 4*second)
	}, []error{sim.ErrFalseDeletion}},
	"deletion in one of several": {func(p *peace) {
		p.cs.Err, p.cs.Lock, p.cs.Locks = failed(recipes.ErrNodeDeleted), "/m+/l", []string{"/m", "/l"}
		p.force("/l/c", 0, 4*second)
	}, nil},
}

func TestCheckShares(t *testing.T) {
	t.Parallel()
	for name, c := range shareCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantBrokenBy(t, c.edit, c.want)
		})
	}
}

func TestPermitsAreCounted(t *testing.T) {
	t.Parallel()
	h := &sim.History{}
	queued := func(path string) {
		h.NodeMade(sim.Node{Path: path, Lock: "/s", Role: sim.RoleQueue, Session: 1})
	}
	permit := func(path string, from ...string) *sim.Node {
		h.PermitMade(sim.Node{Path: path, Lock: "/s", Role: sim.RolePermit, Session: 1, Of: 2}, from)
		return h.Nodes[len(h.Nodes)-1]
	}
	queued("/s/1")
	queued("/s/2")
	if n := permit("/s/a", "/s/1"); !n.Placed || n.Handed || n.Together || len(n.Ahead) != 0 {
		t.Errorf("the first: %+v", n)
	}
	if n := permit("/s/b", "/s/2"); !n.Placed || len(n.Ahead) != 1 {
		t.Errorf("a permit that overtakes: %+v", n)
	}
	if n := permit("/s/c"); n.Placed || len(n.Ahead) != 2 {
		t.Errorf("one from nowhere: %+v", n)
	}
	if n := permit("/s/e", "/s/1", "/s/2"); !n.Placed || !n.Together || len(n.Ahead) != 0 {
		t.Errorf("the first two together: %+v", n)
	}
	queued("/s/4")
	if n := permit("/s/f", "/s/1", "/s/4"); !n.Placed || len(n.Ahead) != 1 {
		t.Errorf("a permit that overtakes one in between: %+v", n)
	}
	h.NodesGone(second, 0, func(n *sim.Node) bool {
		return n.Role == sim.RoleQueue || n.Path == "/s/a" || n.Path == "/s/e" || n.Path == "/s/f"
	})
	queued("/s/3")
	if n := permit("/s/d", "/s/3", "/s/b"); !n.Placed || !n.Handed || len(n.Ahead) != 0 {
		t.Errorf("after one has gone: %+v", n)
	}
}

func TestCountsAreRecorded(t *testing.T) {
	t.Parallel()
	h := &sim.History{}
	at := time.Duration(0)
	now := func() time.Duration { at += second; return at }
	h.Counted("/s", 3, now, func() bool { return true })
	h.Counted("/s", 2, now, func() bool { return false })
	h.Counted("/s", 1, now, func() bool { return true })
	h.Counted("/m", 2, now, func() bool { return true })
	if len(h.Counts) != 3 || *h.Counts[0] != (sim.Count{Lock: "/s", Permits: 3, Set: 1 * second, Gone: 4 * second}) || h.Counts[1].Gone != sim.Never {
		t.Errorf("%+v", h.Counts)
	}
}

func TestWitnessOfShares(t *testing.T) {
	t.Parallel()
	h := &sim.History{}
	w := sim.NewWitness("/s", h)
	open := func(g *sim.Hold) bool { return w.Open(t.Context(), g, 0) }
	r := &sim.Hold{Token: 3, Units: 1, Of: 9}
	if !open(r) || !open(&sim.Hold{Token: 2, Units: 1, Of: 9}) || len(h.Visits) != 0 {
		t.Errorf("readers: %v", h.Visits)
	}
	if open(&sim.Hold{Token: 1, Units: 9, Of: 9}) || len(h.Visits) != 1 || len(h.Visits[0].In) != 2 {
		t.Errorf("a writer of the past: %v", h.Visits)
	}
	write := &sim.Hold{Token: 4, Units: 9, Of: 9}
	if !open(write) || len(h.Visits) != 2 {
		t.Errorf("a writer: %v", h.Visits)
	}
	if open(&sim.Hold{Token: 2, Units: 1, Of: 9}) {
		t.Error("a reader older than a writer")
	}
	w.Shut(r)
	h.Visits = nil
	if !w.Open(t.Context(), &sim.Hold{Token: 4, Units: 1, Of: 9, From: write}, 0) {
		t.Error("a downgrade")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if !w.Open(ctx, &sim.Hold{Token: 9, Units: 9, Of: 9}, 0) || len(h.Visits) != 0 {
		t.Errorf("a holder that knows of the loss: %v", h.Visits)
	}
}

// wantBrokenBy edits a peaceful history and compares what is broken then.
func wantBrokenBy(t *testing.T, edit func(*peace), want []error) {
	t.Helper()
	p := newPeace()
	edit(p)
	got := sim.Check(p.History)
	for _, w := range want {
		if !errors.Is(errors.Join(got...), w) {
			t.Errorf("not seen: %v", w)
		}
	}
	for _, err := range got {
		if !matches(err, want) {
			t.Errorf("seen: %v", err)
		}
	}
}
