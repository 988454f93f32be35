package zktest

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/docent-go/docent/internal/zkserver"
)

// Gate parks what passes between clients and a server until a test lets it go on, one
// after the other. So a test can play one order of requests, or every order. Make it with
// [Server.NewGate]. A Gate is safe for concurrent use.
//
// A parked request was received and has no effect yet. The server reads nothing more
// from its connection meanwhile. A parked reply or event is on its way: its request or
// its cause has had its effect, and everything behind it on the connection waits.
//
// In a bubble of testing/synctest call synctest.Wait before [Gate.Parked]: then every
// client has asked for all that it will ask for. No time passes until the test sleeps.
type Gate struct {
	server *Server
	rule   *Rule

	mu       sync.Mutex // guards the rest
	requests []*parkedRequest
	number   int // of the newest request
	open     bool
}

type parkedRequest struct {
	number int
	r      Request
	goOn   chan struct{}
}

// Stage says what a [Parked] is.
type Stage int

// The stages of a request at a [Gate], and the event of a watch.
const (
	RequestParked Stage = iota + 1 // received, and not applied
	ReplyParked                    // applied, and not answered
	EventParked                    // of a watch
)

// Parked is what a [Gate] holds: a request, its reply, or the event of a watch.
type Parked struct {
	Stage   Stage
	Client  string // the name of the [ClientLink]
	Request Request
	// Event is the type of an event, in the numbers of ZooKeeper and of
	// zk.EventType, and Path is its path.
	Event int
	Path  string

	number int // among those of its kind
}

// NewGate parks the requests that m matches from now on. With replies set, it also parks
// their replies, and the events of watches whose client and path m matches. Nth, Prob and
// Times of m are ignored. Requests that other rules strike are struck when they go on.
func (s *Server) NewGate(m Match, replies bool) *Gate {
	m.Nth, m.Prob, m.Times = 0, 0, Always
	g := &Gate{server: s}
	g.rule = s.BeforeApply(m, g.park)
	if replies {
		s.engine.GateOutput(func(o zkserver.Outgoing) bool { return g.rule.wants(o) })
	}
	return g
}

// wants reports whether a gate parks a reply or an event.
func (rule *Rule) wants(o zkserver.Outgoing) bool {
	rule.set.mu.Lock()
	defer rule.set.mu.Unlock()
	if o.Event == 0 {
		return rule.matches(publicRequest(o.Request))
	}
	m := rule.match
	return !rule.over() && (m.Client == "" || m.Client == o.Client) && (m.Session == 0 || m.Session == o.Session) &&
		m.matchesPath(Request{Path: o.Path})
}

// park holds a request. It is the hook of the gate's rule.
func (g *Gate) park(ctx context.Context, r Request) {
	p := &parkedRequest{r: r, goOn: make(chan struct{})}
	g.mu.Lock()
	if g.open {
		g.mu.Unlock()
		return
	}
	g.number++
	p.number = g.number
	g.requests = append(g.requests, p)
	g.mu.Unlock()
	select {
	case <-p.goOn:
	case <-ctx.Done():
	}
}

// Parked lists what may go on next: of each connection its request, and the first of its
// replies and events. The order depends on the names of the clients, the numbers of their
// connections and the stage, and not on the scheduler.
func (g *Gate) Parked() []Parked {
	g.mu.Lock()
	var all []Parked
	for _, p := range g.requests {
		all = append(all, Parked{Stage: RequestParked, Client: p.r.Client, Request: p.r, number: p.number})
	}
	g.mu.Unlock()
	for _, o := range g.server.engine.Staying() {
		p := Parked{Stage: ReplyParked, Client: o.Client, Request: publicRequest(o.Request)}
		if o.Event != 0 {
			p = Parked{Stage: EventParked, Client: o.Client, Event: int(o.Event), Path: o.Path, Request: Request{Conn: o.Conn, Session: o.Session}}
		}
		p.number = o.Number
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Parked) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Request.Conn, b.Request.Conn), cmp.Compare(a.Stage, b.Stage))
	})
	return all
}

// Let lets p go on, which [Gate.Parked] has listed, and does not wait for what follows. If
// p has gone on already, it does nothing.
func (g *Gate) Let(p Parked) {
	if p.Stage != RequestParked {
		g.server.engine.LetOut(p.number)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.IndexFunc(g.requests, func(q *parkedRequest) bool { return q.number == p.number }); i >= 0 {
		close(g.requests[i].goOn)
		g.requests = slices.Delete(g.requests, i, i+1)
	}
}

// Open lets everything go on and parks nothing more.
func (g *Gate) Open() {
	g.rule.Remove()
	g.mu.Lock()
	g.open = true
	for _, p := range g.requests {
		close(p.goOn)
	}
	g.requests = nil
	g.mu.Unlock()
	g.server.engine.GateOutput(nil)
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// String says what p is, the client first, and leaves out what differs from run to run:
// sessions, zxids, and UUIDs within paths.
func (p Parked) String() string {
	what, path := p.Request.Op.String(), p.Request.Path
	switch p.Stage {
	case EventParked:
		what, path = fmt.Sprint("event ", p.Event), p.Path
	case ReplyParked:
		what = "reply " + what
	}
	text := p.Client + " " + what + " " + uuids.ReplaceAllString(path, "<uuid>")
	if p.Stage == ReplyParked && p.Request.Err != CodeOK {
		text += " " + p.Request.Err.String()
	}
	return text
}
