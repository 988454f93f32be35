package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Action is what a rule does to a request.
type Action int

const (
	// SwallowReply forwards the request and drops its answer. The connection stays.
	SwallowReply Action = iota + 1
	// SwallowReplyAndCut forwards the request and cuts the connection in place of
	// its answer: the server has certainly served it.
	SwallowReplyAndCut
	// CutBefore drops the request and cuts the connection.
	CutBefore
	// CutAfterSend forwards the request and cuts the client at once. The server's
	// side stays open until it has answered, at most five seconds, as after a cut
	// that only the client can see.
	CutAfterSend
	// Stall holds both directions of the connection from this request on.
	Stall
	// StallRequests holds the direction to the server from this request on.
	StallRequests
	// StallReplies forwards the request and holds the direction to the client from
	// its answer on.
	StallReplies
)

// String is the action's name.
func (a Action) String() string {
	names := [...]string{
		"none", "swallow reply", "swallow reply and cut", "cut before", "cut after send",
		"stall", "stall requests", "stall replies",
	}
	if a < 0 || int(a) >= len(names) {
		return fmt.Sprintf("action %d", int(a))
	}
	return names[a]
}

// Always as [Match.Times] lets a rule fire at every match.
const Always = -1

// Match picks requests. Everything set must hold; an empty Match picks every request
// but pings and handshakes, which only their own Op picks.
type Match struct {
	Op     zoodefs.Op
	Path   string // exactly this path; of a multi, that of any part
	Prefix string // a path that starts so; of a multi, that of any part
	Where  func(Request) bool

	Nth         int     // first match that fires, counted from 1; 0 is 1
	Times       int     // how many matches fire from there on; 0 is 1, or Always
	Probability float64 // chance of each of them, drawn from the proxy's seed; 0 is 1
}

func (m *Match) picks(r Request) bool {
	switch {
	case m.Op == 0 && (r.Op == zoodefs.OpPing || r.Op == zoodefs.OpConnect):
		return false
	case m.Op != 0 && m.Op != r.Op:
		return false
	case m.Path != "" && !r.anyPath(func(p string) bool { return p == m.Path }):
		return false
	case m.Prefix != "" && !r.anyPath(func(p string) bool { return strings.HasPrefix(p, m.Prefix) }):
		return false
	}
	return m.Where == nil || m.Where(r)
}

func (r Request) anyPath(is func(string) bool) bool {
	if len(r.Parts) == 0 {
		return is(r.Path)
	}
	return slices.ContainsFunc(r.Parts, func(p Part) bool { return is(p.Path) })
}

// Rule is a match and an action in force at a proxy. Its methods are safe for
// concurrent use.
type Rule struct {
	proxy  *Proxy
	match  Match
	action Action
	then   []func(Request)

	mu       sync.Mutex
	seen     int // matches so far
	chosen   int // matches given to the action so far
	fired    []Request
	answered []Reply
	changed  chan struct{} // closed and replaced when fired or answered grows
	stalled  []*gate
	awaited  map[*asked]bool // requests whose answers are to be stalled
	removed  bool
}

// claim counts a match and reports whether the action is due. draw gives a number
// in [0, 1).
func (r *Rule) claim(draw func() float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	switch {
	case r.removed, r.seen < max(r.match.Nth, 1):
		return false
	case r.match.Times != Always && r.chosen >= max(r.match.Times, 1):
		return false
	case r.match.Probability > 0 && draw() >= r.match.Probability:
		return false
	}
	r.chosen++
	return true
}

func (r *Rule) noteFired(req Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fired = append(r.fired, req)
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Rule) noteAnswered(rep Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered = append(r.answered, rep)
	close(r.changed)
	r.changed = make(chan struct{})
}

// Fired returns the requests that the rule has acted on, oldest first.
func (r *Rule) Fired() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.fired)
}

// Await waits until the rule has acted for the first time and returns the request.
// The action is in force by then: a cut is made, a stall holds, and a request that
// is to be forwarded has been. What SwallowReplyAndCut and StallReplies do to the answer
// comes later, see AwaitAnswer.
func (r *Rule) Await(ctx context.Context) (Request, error) { return r.AwaitNth(ctx, 1) }

// AwaitNth waits until the rule has acted n times and returns the nth request.
func (r *Rule) AwaitNth(ctx context.Context, n int) (Request, error) {
	var req Request
	err := r.await(ctx, func() bool {
		if len(r.fired) < n {
			return false
		}
		req = r.fired[n-1]
		return true
	})
	return req, err
}

// AwaitAnswer waits until the server has answered the first request that the rule
// acted on, and returns the answer. The client may not get it. What the rule does to
// the answer is done by then. An answer to a cut request may never come.
func (r *Rule) AwaitAnswer(ctx context.Context) (Reply, error) {
	var rep Reply
	err := r.await(ctx, func() bool {
		if len(r.answered) == 0 {
			return false
		}
		rep = r.answered[0]
		return true
	})
	return rep, err
}

// await waits until is, called under the lock, reports true.
func (r *Rule) await(ctx context.Context, is func() bool) error {
	for {
		r.mu.Lock()
		ok, changed := is(), r.changed
		seen, fired, answered := r.seen, len(r.fired), len(r.answered)
		r.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("rule %q: %d matches, fired %d times, %d answers: %w",
				r.action, seen, fired, answered, context.Cause(ctx))
		}
	}
}

// stall holds gates until Resume.
func (r *Rule) stall(gates ...*gate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range gates {
		g.hold(r)
		r.stalled = append(r.stalled, g)
	}
}

// stallAnswer holds a gate from the answer to a on, unless Resume was called since a
// was chosen.
func (r *Rule) stallAnswer(a *asked, g *gate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.awaited[a] {
		delete(r.awaited, a)
		g.hold(r)
		r.stalled = append(r.stalled, g)
	}
}

// awaitAnswer makes stallAnswer due.
func (r *Rule) awaitAnswer(a *asked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.awaited == nil {
		r.awaited = map[*asked]bool{}
	}
	r.awaited[a] = true
}

// Resume lets go what this rule has stalled so far, and what it would stall with an
// answer that has not come.
func (r *Rule) Resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.awaited)
	for _, g := range r.stalled {
		g.release(r)
	}
	r.stalled = nil
}

// Remove ends the rule. What it has stalled stays so until Resume.
func (r *Rule) Remove() {
	r.mu.Lock()
	r.removed = true
	r.mu.Unlock()
	r.proxy.removeRule(r)
}
