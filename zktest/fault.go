package zktest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/docent-go/docent/internal/zkserver"
)

// Always is the value of [Match.Times] for a rule without end.
const Always = -1

// Match says which requests a rule strikes. A zero field matches everything, with
// one exception. A zero Op does not match handshakes and pings, because clients send
// these at times of their own. To strike them, name them.
type Match struct {
	// Client is the name of a [ClientLink].
	Client string
	// Session is a session id.
	Session int64
	// Op is the request type. OpConnect is the handshake.
	Op Op
	// Path is the exact path of the request. A transaction matches if any part of
	// it does.
	Path string
	// PathPrefix is a prefix of the path of the request. It may end within a name:
	// "/locks/a/" matches the nodes below /locks/a, "/locks/a" matches /locks/ab too.
	PathPrefix string
	// Where, if not nil, must accept the request too. It must not call the server
	// or a rule.
	Where func(Request) bool
	// Nth is the number of the first match to strike, counted from 1; zero means
	// the first.
	Nth int
	// Prob is the probability with which the rule strikes a match, drawn from the
	// connection's own generator; zero means 1.
	Prob float64
	// Times is how often the rule strikes. Zero means once, or without limit when
	// Prob is set. [Always] means without limit.
	Times int
}

// Rule is a fault that waits for its request. The server tries its rules in the
// order in which they were made, and every rule that strikes a request takes effect.
// A Rule is safe for concurrent use.
type Rule struct {
	set    *ruleSet
	match  Match
	name   string
	effect func(*zkserver.Verdict)

	// Guarded by the mutex of the set.
	seen    int
	fired   int
	removed bool
	changed chan struct{} // closed at the next strike
}

// ruleSet is the rules of one server. Its mutex may be taken while the server's
// mutex is held, and never the other way round.
type ruleSet struct {
	mu    sync.Mutex // guards the rest
	rules []*Rule
}

func (s *Server) rule(m Match, name string, effect func(*zkserver.Verdict)) *Rule {
	set := s.rules
	r := &Rule{set: set, match: m, name: name, effect: effect, changed: make(chan struct{})}
	set.mu.Lock()
	set.rules = slices.DeleteFunc(set.rules, (*Rule).over)
	set.rules = append(set.rules, r)
	set.mu.Unlock()
	return r
}

// judge asks all rules about a request. It is the server's [zkserver.Judge].
func (set *ruleSet) judge(r zkserver.Request, draw func() float64) zkserver.Verdict {
	set.mu.Lock()
	defer set.mu.Unlock()
	var v zkserver.Verdict
	if len(set.rules) == 0 {
		return v
	}
	seen := publicRequest(r)
	for _, rule := range set.rules {
		if !rule.matches(seen) || !rule.strikes(draw) {
			continue
		}
		rule.effect(&v)
		if v.Names != "" {
			v.Names += ","
		}
		v.Names += rule.name
	}
	return v
}

func (rule *Rule) matches(r Request) bool {
	m := rule.match
	switch {
	case rule.over():
		return false
	case m.Op == 0 && (r.Op == OpConnect || r.Op == OpPing), m.Op != 0 && m.Op != r.Op:
		return false
	case m.Client != "" && m.Client != r.Client, m.Session != 0 && m.Session != r.Session:
		return false
	case !m.matchesPath(r):
		return false
	default:
		return m.Where == nil || m.Where(r)
	}
}

func (m Match) matchesPath(r Request) bool {
	if m.Path == "" && m.PathPrefix == "" {
		return true
	}
	fits := func(p string) bool {
		return (m.Path == "" || p == m.Path) && strings.HasPrefix(p, m.PathPrefix)
	}
	if len(r.Paths) > 0 {
		return slices.ContainsFunc(r.Paths, fits)
	}
	return fits(r.Path)
}

// over reports whether the rule will strike no more.
func (rule *Rule) over() bool {
	switch {
	case rule.removed:
		return true
	case rule.match.Times == Always:
		return false
	case rule.match.Times == 0:
		return rule.match.Prob == 0 && rule.fired > 0
	default:
		return rule.fired >= rule.match.Times
	}
}

// strikes counts a match and decides whether the rule acts on it.
func (rule *Rule) strikes(draw func() float64) bool {
	rule.seen++
	if rule.seen < rule.match.Nth {
		return false
	}
	if p := rule.match.Prob; p > 0 && draw() >= p {
		return false
	}
	rule.fired++
	close(rule.changed)
	rule.changed = make(chan struct{})
	return true
}

// Fired returns how often the rule has struck.
func (rule *Rule) Fired() int {
	rule.set.mu.Lock()
	defer rule.set.mu.Unlock()
	return rule.fired
}

// Wait waits until the rule has struck n times. If ctx ends before, Wait returns
// the cause of ctx.
func (rule *Rule) Wait(ctx context.Context, n int) error {
	for {
		rule.set.mu.Lock()
		fired, changed := rule.fired, rule.changed
		rule.set.mu.Unlock()
		if fired >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Remove ends the rule. A request that the rule has struck stays struck.
func (rule *Rule) Remove() {
	rule.set.mu.Lock()
	rule.removed = true
	rule.set.mu.Unlock()
}

// ClearRules removes all rules.
func (s *Server) ClearRules() {
	s.rules.mu.Lock()
	for _, r := range s.rules.rules {
		r.removed = true
	}
	s.rules.rules = nil
	s.rules.mu.Unlock()
}
