package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
)

const second = time.Second

// peace is a history that keeps every promise: a and b take the lock after
// each other, a re-enters once, and then c gives up.
type peace struct {
	*sim.History
	a, inner, b             *sim.Hold
	takeA, takeB, again, cs *sim.Attempt
	nodeA, nodeB, nodeC     *sim.Node
}

func newPeace() *peace {
	p := &peace{History: &sim.History{Timeout: 10 * second, Healed: 100 * second, Calm: 140 * second, Finished: 200 * second}}
	p.nodeA = &sim.Node{Path: "/l/a", Lock: "/l", Session: 1, Czxid: 11, Made: 1 * second, Gone: 5 * second}
	p.nodeB = &sim.Node{Path: "/l/b", Lock: "/l", Session: 2, Czxid: 12, Made: 2 * second, Gone: 9 * second}
	p.nodeC = &sim.Node{Path: "/l/c", Lock: "/l", Session: 2, Czxid: 13, Made: 3 * second, Gone: 4 * second}
	p.Nodes = []*sim.Node{p.nodeA, p.nodeB, p.nodeC}
	hold := func(n *sim.Node, client string, granted, ended time.Duration) *sim.Hold {
		return &sim.Hold{
			Actor: client + ".0", Client: client, Lock: n.Lock, Path: n.Path, Token: n.Czxid,
			Granted: granted, ContextEnded: ended, Leaving: ended, Released: n.Gone,
		}
	}
	p.a, p.b = hold(p.nodeA, "one", 1*second, 4*second), hold(p.nodeB, "two", 6*second, 8*second)
	p.inner = hold(p.nodeA, "one", 2*second, 3*second)
	p.inner.Nested, p.inner.Released = true, 3*second
	p.Holds = []*sim.Hold{p.a, p.inner, p.b}
	attempt := func(g *sim.Hold, begun, ended time.Duration) *sim.Attempt {
		return &sim.Attempt{Actor: "x", Client: "two", Lock: "/l", Call: "acquire", Begun: begun, Ended: ended, ContextEnded: sim.Never, Hold: g}
	}
	p.takeA, p.takeB = attempt(p.a, 1*second, 1*second), attempt(p.b, 2*second, 6*second)
	p.again = attempt(p.inner, 2*second, 2*second)
	p.again.Outer, p.again.Call = p.a, "re-enter"
	p.cs = attempt(nil, 3*second, 4*second)
	p.cs.ContextEnded, p.cs.Err = 4*second, failed(context.DeadlineExceeded)
	p.Attempts = []*sim.Attempt{p.takeA, p.takeB, p.again, p.cs}
	return p
}

func failed(why error) error { return &recipes.LockError{Op: "acquire", Path: "/l", Err: why} }

func (p *peace) force(path string, session int64, at time.Duration) {
	p.Forces = append(p.Forces, sim.Force{Path: path, Session: session, At: at})
}

func busy(path string) error {
	return failed(&recipes.BusyError{Holder: recipes.Contender{Path: path}})
}

func meet(p *peace) {
	p.Visits = []sim.Meeting{{Lock: "/l", In: []*sim.Hold{p.a}, Entered: p.b, At: 6 * second}}
}

var errLost = fmt.Errorf("%w: %w", recipes.ErrLost, client.ErrSessionLost)

// cases break one promise each, or come as near as they may.
var cases = map[string]struct {
	edit func(p *peace)
	want []error
}{
	"peace":   {func(*peace) {}, nil},
	"overlap": {meet, []error{sim.ErrOverlap}},
	"overlap by force": {func(p *peace) {
		meet(p)
		p.force("/l/a", 0, 5*second)
	}, nil},
	"overlap long after force": {func(p *peace) {
		meet(p)
		p.Visits[0].At = 26 * second
		p.force("", 1, 5*second)
	}, []error{sim.ErrOverlap}},
	"overlap before force": {func(p *peace) {
		meet(p)
		p.force("", 1, 7*second)
	}, []error{sim.ErrOverlap}},
	"granted while another believes": {func(p *peace) { p.a.ContextEnded, p.nodeA.Gone = 6*second, 7*second }, []error{sim.ErrBelief, sim.ErrFalseRelease}},
	"granted to another that never heard": {func(p *peace) {
		p.a.ContextEnded = sim.Never
	}, []error{sim.ErrBelief, sim.ErrLateLoss}},
	"told too late":          {func(p *peace) { p.b.ContextEnded = 9 * second }, []error{sim.ErrLateLoss}},
	"told after force":       {func(p *peace) { p.b.ContextEnded = 10 * second; p.force("/l/b", 0, 9*second) }, nil},
	"told long after force":  {func(p *peace) { p.b.ContextEnded = 30 * second; p.force("/l/b", 0, 9*second) }, []error{sim.ErrLateLoss}},
	"never told after force": {func(p *peace) { p.b.ContextEnded = sim.Never; p.force("/l/b", 0, 9*second) }, []error{sim.ErrLateLoss}},
	"token repeated":         {func(p *peace) { p.b.Token, p.nodeB.Czxid = 11, 11 }, []error{sim.ErrTokenOrder}},
	"token of an older node": {func(p *peace) { p.b.Token, p.nodeB.Czxid = 10, 10 }, []error{sim.ErrTokenOrder}},
	"late grant of a node taken by force": {func(p *peace) {
		p.b.Token, p.nodeB.Czxid = 10, 10
		p.nodeB.Gone, p.b.ContextEnded = 5*second, 8*second
		p.force("/l/b", 0, 5*second)
	}, nil},
	"granted out of turn":  {func(p *peace) { p.b.Ahead = []string{"/l/a"} }, []error{sim.ErrOutOfTurn}},
	"token of nothing":     {func(p *peace) { p.b.Token = 99 }, []error{sim.ErrTokenForged}},
	"hold without a node":  {func(p *peace) { p.b.Path = "/l/d" }, []error{sim.ErrTokenForged}},
	"slow re-entry":        {func(p *peace) { p.again.Ended = 3 * second }, []error{sim.ErrReentry}},
	"refused re-entry":     {func(p *peace) { p.again.Hold, p.again.Err = nil, failed(recipes.ErrLost) }, []error{sim.ErrReentry}},
	"re-entry of the dead": {func(p *peace) { p.again.Hold, p.again.Err, p.a.ContextEnded = nil, failed(recipes.ErrLost), second }, nil},
	"re-entry elsewhere":   {func(p *peace) { p.inner.Token, p.inner.Path = 12, "/l/b" }, []error{sim.ErrReentry}},
	"stuck":                {func(p *peace) { p.cs.Ended = sim.Never }, []error{sim.ErrStuck}},
	"late after heal":      {func(p *peace) { p.cs.Ended, p.cs.ContextEnded = 141*second, 141*second }, []error{sim.ErrStuck}},
	"just in time":         {func(p *peace) { p.cs.Ended, p.cs.ContextEnded = 140*second, 140*second }, nil},
	"stuck in peace":       {func(p *peace) { p.takeB.Begun, p.takeB.Ended = 150*second, 191*second }, []error{sim.ErrStuck}},
	"restless": {func(p *peace) {
		for range 193 {
			p.Read("one", "/l", 3*second)
		}
	}, []error{sim.ErrRestless}},
	"restless no more": {func(p *peace) {
		for range 192 {
			p.Read("one", "/l", 3*second)
			p.Read("two", "/l", 3*second)
		}
		p.Stirred("", "/l")
		for range 192 {
			p.Read("one", "/l", 4*second)
		}
		p.Stirred("two", "")
		p.Read("two", "/l", 4*second)
		p.Stirred("one", "")
		p.Read("one", "/l", 4*second)
	}, nil},
	"stuck release":         {func(p *peace) { p.b.Released = sim.Never }, []error{sim.ErrStuck}},
	"outlived":              {func(p *peace) { p.cs.Ended = 5 * second }, []error{sim.ErrOutlived}},
	"work outlives context": {func(p *peace) { p.takeB.ContextEnded, p.takeB.Call = 3*second, "do" }, nil},
	"long release":          {func(p *peace) { p.b.Released = 19 * second }, []error{sim.ErrOutlived}},
	"refused in peace": {func(p *peace) {
		p.cs.Begun, p.cs.Ended, p.cs.ContextEnded, p.cs.Err = 150*second, 150*second, sim.Never, failed(client.ErrNotConnected)
	}, []error{sim.ErrRefusal}},
	"lost in peace":  {func(p *peace) { p.Losses = []sim.Loss{{Client: "two", Session: 2, At: 150 * second}} }, []error{sim.ErrLossInPeace}},
	"false deadline": {func(p *peace) { p.cs.ContextEnded = sim.Never }, []error{sim.ErrFalseContext}},
	"false loss":     {func(p *peace) { p.cs.Err = failed(client.ErrSessionLost) }, []error{sim.ErrFalseLoss}},
	"loss of another": {func(p *peace) {
		p.cs.Err, p.Losses = failed(client.ErrSessionLost), []sim.Loss{{Client: "one", Session: 1, At: 4 * second}}
	}, []error{sim.ErrFalseLoss}},
	"loss of before": {func(p *peace) {
		p.cs.Err, p.Losses = failed(client.ErrSessionLost), []sim.Loss{{Client: "two", Session: 2, At: 2 * second}}
	}, []error{sim.ErrFalseLoss}},
	"loss": {func(p *peace) {
		p.cs.Err, p.Losses = failed(client.ErrSessionLost), []sim.Loss{{Client: "two", Session: 2, At: 4 * second}}
	}, nil},
	"false loss at release": {func(p *peace) { p.b.ReleaseErr = failed(errLost) }, []error{sim.ErrFalseLoss}},
	"loss at release": {func(p *peace) {
		p.b.ReleaseErr, p.Losses = failed(errLost), []sim.Loss{{Client: "two", Session: 2, At: 7 * second}}
	}, nil},
	"false cause": {func(p *peace) {
		p.b.Cause, p.Losses = recipes.ErrReleased, []sim.Loss{{Client: "two", Session: 2, At: 8 * second}}
	}, []error{sim.ErrFalseCause}},
	"released, then lost": {func(p *peace) {
		p.b.Cause, p.Losses = recipes.ErrReleased, []sim.Loss{{Client: "two", Session: 2, At: 9 * second}}
	}, nil},
	"lost": {func(p *peace) { p.b.Cause, p.Losses = errLost, []sim.Loss{{Client: "two", Session: 2, At: 8 * second}} }, nil},
	"closed": {func(p *peace) {
		p.cs.Err, p.Closings = failed(client.ErrClosed), []*sim.Closing{{Client: "two", Within: second, Begun: 4 * second, Ended: 5 * second}}
	}, nil},
	"false closed":       {func(p *peace) { p.cs.Err = failed(client.ErrClosed) }, []error{sim.ErrFalseClosed}},
	"false closed found": {func(p *peace) { p.b.ReleaseErr = failed(client.ErrClosed) }, []error{sim.ErrFalseClosed}},
	"another was closed": {func(p *peace) { p.cs.Err, p.Closings = failed(client.ErrClosed), []*sim.Closing{{Client: "one"}} }, []error{sim.ErrFalseClosed}},
	"taken early":        {func(p *peace) { p.a.Deadline = 6 * second }, []error{sim.ErrDeadline}},
	"given early":        {func(p *peace) { p.a.Deadline, p.nodeA.Given = 6*second, true }, nil},
	"taken by a stop": {func(p *peace) {
		p.a.Deadline, p.a.ContextEnded = 6*second, 5*second+second/2
		p.Stops = []sim.Stop{{At: 5 * second, Heard: 5*second + second/2 + 1}}
	}, nil},
	"taken by a stop, and told late": {func(p *peace) {
		p.a.Deadline, p.a.ContextEnded = 6*second, 5*second+second/2
		p.Stops = []sim.Stop{{At: 5 * second, Heard: 5*second + second/2}}
	}, []error{sim.ErrLateLoss}},
	"taken early after a stop": {func(p *peace) {
		p.a.Deadline = 6 * second
		p.Stops = []sim.Stop{{At: 3 * second, Heard: 4 * second}}
	}, []error{sim.ErrDeadline}},
	"inherited after the release":  {func(p *peace) { p.a.Deadline, p.nodeA.Inherited = 6*second, true }, nil},
	"inherited before the release": {func(p *peace) { p.a.Deadline, p.nodeA.Inherited, p.a.Leaving = 6*second, true, 5*second }, []error{sim.ErrDeadline}},
	"taken early by force":         {func(p *peace) { p.a.Deadline = 6 * second; p.force("/l/a", 0, 5*second) }, nil},
	"closed early": {func(p *peace) {
		p.a.Deadline = 6 * second
		p.Closings = []*sim.Closing{{Client: "one", Within: second, Begun: 4 * second, Ended: 5 * second}}
	}, nil},
	"slow close":     {func(p *peace) { p.Closings = []*sim.Closing{{Client: "two", Within: second, Ended: 2 * second}} }, []error{sim.ErrOutlived}},
	"close for ever": {func(p *peace) { p.Closings = []*sim.Closing{{Client: "two", Within: second, Ended: sim.Never}} }, []error{sim.ErrOutlived}},
	"busy with one again": {func(p *peace) {
		p.cs.Call, p.cs.Err = "try", busy("/l/a")
		p.Nodes = append(p.Nodes, &sim.Node{Path: "/l/a", Lock: "/l", Czxid: 11, Made: 50 * second, Gone: 60 * second})
		p.a.Released, p.a.Leaving = 60*second, 60*second
	}, nil},
	"false deletion": {func(p *peace) { p.cs.Err = failed(recipes.ErrNodeDeleted) }, []error{sim.ErrFalseDeletion}},
	"sent behind": {func(p *peace) {
		p.cs.Err = failed(recipes.ErrNodeDeleted)
		p.Moves = append(p.Moves, sim.Force{Path: p.nodeA.Path, At: 2 * second})
	}, nil},
	"deletion":             {func(p *peace) { p.cs.Err = failed(recipes.ErrNodeDeleted); p.force("/l/c", 0, 4*second) }, nil},
	"false deletion found": {func(p *peace) { p.b.ReleaseErr = failed(recipes.ErrNodeDeleted) }, []error{sim.ErrFalseDeletion}},
	"busy":                 {func(p *peace) { p.cs.Call, p.cs.Err = "try", busy("/l/a") }, nil},
	"busy without a name":  {func(p *peace) { p.cs.Call, p.cs.Err = "try", failed(recipes.ErrBusy) }, nil},
	"busy in a wait":       {func(p *peace) { p.cs.Err = busy("/l/a") }, []error{sim.ErrFalseBusy}},
	"busy with no holder":  {func(p *peace) { p.cs.Call, p.cs.Err = "try", busy("/l/x") }, []error{sim.ErrFalseBusy}},
	"busy with one gone": {func(p *peace) {
		p.cs.Call, p.cs.Err, p.cs.Begun, p.cs.Ended = "try", busy("/l/a"), 6*second, 6*second
		p.cs.ContextEnded = sim.Never
	}, []error{sim.ErrFalseBusy}},
	"foreign":       {func(p *peace) { p.cs.Err = failed(recipes.ErrForeignLock); p.nodeA.Recipe = "read/write" }, nil},
	"false foreign": {func(p *peace) { p.cs.Err = failed(recipes.ErrForeignLock) }, []error{sim.ErrFalseForeign}},
	"foreign before": {func(p *peace) {
		p.nodeA.Recipe = "read/write" // gone at 5 s
		p.cs.Err, p.cs.Begun, p.cs.Ended, p.cs.ContextEnded = failed(recipes.ErrForeignLock), 6*second, 6*second, sim.Never
	}, []error{sim.ErrFalseForeign}},
	"false answer":                        {func(p *peace) { p.Wrong = []string{"a queue without end"} }, []error{sim.ErrFalseAnswer}},
	"a write before":                      {func(p *peace) { p.Writes = []sim.Write{{p.b, 21}, {p.a, 20}} }, nil},
	"a write after":                       {func(p *peace) { p.Writes = []sim.Write{{p.b, 20}, {p.a, 21}} }, []error{sim.ErrGuard}},
	"a try that works for long":           {func(p *peace) { p.takeB.ContextEnded, p.takeB.Call = 3*second, "try do" }, nil},
	"busy in work that tries":             {func(p *peace) { p.cs.Call, p.cs.Err = "try do", busy("/l/a") }, nil},
	"release in name only":                {func(p *peace) { p.nodeB.Gone = 10 * second }, []error{sim.ErrFalseRelease}},
	"a release that a hold has outlasted": {func(p *peace) { p.nodeB.Gone, p.b.Stays = 10*second, true }, nil},
	"node still there":                    {func(p *peace) { p.nodeB.Gone = sim.Never }, []error{sim.ErrFalseRelease}},
	"unexplained":                         {func(p *peace) { p.cs.Err = failed(errors.New("EOF")) }, []error{sim.ErrUnexplained}},
	"unexplained release":                 {func(p *peace) { p.b.ReleaseErr = failed(errors.New("EOF")) }, []error{sim.ErrUnexplained}},
	"bare error":                          {func(p *peace) { p.cs.Err = context.DeadlineExceeded }, []error{sim.ErrUnexplained}},
	"a node left":                         {func(p *peace) { p.Left = []sim.Residue{{Kind: sim.ResidueNode}} }, []error{sim.ErrNodeLeft}},
	"a watch left":                        {func(p *peace) { p.Left = []sim.Residue{{Kind: sim.ResidueWatch}} }, []error{sim.ErrWatchLeft}},
	"a session left":                      {func(p *peace) { p.Left = []sim.Residue{{Kind: sim.ResidueSession}} }, []error{sim.ErrSessionLeft}},
	"a goroutine left":                    {func(p *peace) { p.Left = []sim.Residue{{Kind: sim.ResidueGoroutine}} }, []error{sim.ErrGoroutineLeft}},
	"a failed close":                      {func(p *peace) { p.Left = []sim.Residue{{Kind: sim.ResidueClose}} }, []error{sim.ErrCloseFailed}},
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantBrokenBy(t, c.edit, c.want)
		})
	}
}

func matches(err error, want []error) bool {
	for _, w := range want {
		if errors.Is(err, w) {
			return true
		}
	}
	return false
}

func TestWitnessOfBeliefs(t *testing.T) {
	t.Parallel()
	h := &sim.History{}
	w := sim.NewWitness("/l", h)
	first, second := &sim.Hold{Token: 1}, &sim.Hold{Token: 2}
	ctx, cancel := context.WithCancel(t.Context())
	w.Believe(ctx, first, 0)
	if w.Believe(t.Context(), second, 1); len(h.Visits) != 1 || h.Visits[0].In[0] != first || h.Visits[0].Entered != second {
		t.Errorf("two that believe: %v", h.Visits)
	}
	w = sim.NewWitness("/l", h)
	w.Believe(ctx, first, 0)
	cancel()
	w.Believe(t.Context(), second, 1)
	w.Believe(ctx, first, 2)
	if len(h.Visits) != 1 {
		t.Errorf("one that knows of its end counts: %v", h.Visits)
	}
}

func TestWitness(t *testing.T) {
	t.Parallel()
	h := &sim.History{}
	w := sim.NewWitness("/l", h)
	ctx, cancel := context.WithCancel(t.Context())
	first, second := &sim.Hold{Token: 1}, &sim.Hold{Token: 2}
	if !w.Open(ctx, first, 0) || !w.Open(ctx, first, 1) || len(h.Visits) != 0 {
		t.Errorf("the first visitor: %v", h.Visits)
	}
	if !w.Open(t.Context(), second, 2) || len(h.Visits) != 1 || h.Visits[0].In[0] != first || h.Visits[0].Entered != second {
		t.Errorf("a second believer: %v", h.Visits)
	}
	w.Shut(second)
	cancel()
	if w.Open(ctx, first, 3) || w.Refused() != 1 {
		t.Errorf("an old token was served")
	}
	if !w.Open(t.Context(), second, 4) || len(h.Visits) != 1 {
		t.Errorf("a visitor inside that knows of its loss counts: %v", h.Visits)
	}
	w.Shut(second)
	w.Shut(first)
	if !w.Open(t.Context(), &sim.Hold{Token: 3}, 5) || len(h.Visits) != 1 {
		t.Errorf("visitors that have left count: %v", h.Visits)
	}
}
