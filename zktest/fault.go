package zktest

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Always is the value of [Match.Times] for a rule without end.
const Always = -1

// Match says which requests a rule strikes. Zero fields match everything, with
// one exception: a zero Op does not match handshakes and pings, which happen
// at times of their own; name them to strike them.
type Match struct {
	// Client is the name of a [ClientLink].
	Client string
	// Session is a session id.
	Session int64
	// Op is the request type. OpConnect is the handshake.
	Op Op
	// Path is the exact path requested. A transaction matches by any part.
	Path string
	// PathPrefix is a prefix of the path requested, not necessarily a whole
	// name: "/locks/a/" matches what is created below /locks/a.
	PathPrefix string
	// Where, if not nil, must accept the request too. It must not call the
	// server.
	Where func(Request) bool
	// Nth is the first match to strike, counted from 1; zero means the first.
	Nth int
	// Prob is the probability with which a match is struck, drawn from the
	// connection's own generator; zero means 1.
	Prob float64
	// Times is how often the rule strikes: zero means once, or without limit
	// when Prob is set. [Always] means without limit.
	Times int
}

// Rule is a fault waiting to happen. Rules are tried in the order in which
// they were made, and every rule that strikes a request takes effect. A Rule is
// safe for concurrent use.
type Rule struct {
	s      *Server
	match  Match
	name   string
	effect func(*verdict)

	// Guarded by the server's mutex.
	seen    int
	fired   int
	removed bool
	changed chan struct{} // closed at the next strike
}

// verdict is what the rules decided about one request.
type verdict struct {
	drop       bool // close without applying
	loseReply  bool // apply, close without answering
	closeAfter bool // apply, answer, close
	ignore     bool // do not apply, do not answer
	stall      bool // apply, then deliver nothing more
	fail       Code // answer with this, do not apply
	delay      time.Duration
	replyDelay time.Duration
	before     []func(context.Context, Request)
	after      []func(context.Context, Request)
	names      string
}

func (s *Server) rule(m Match, name string, effect func(*verdict)) *Rule {
	r := &Rule{s: s, match: m, name: name, effect: effect, changed: make(chan struct{})}
	s.mu.Lock()
	s.rules = slices.DeleteFunc(s.rules, func(r *Rule) bool { return r.removed || r.spent() })
	s.rules = append(s.rules, r)
	s.mu.Unlock()
	return r
}

// judge asks all rules about a request. The mutex is held.
func (s *Server) judge(r *request) verdict {
	var v verdict
	if len(s.rules) == 0 {
		return v
	}
	for _, rule := range s.rules {
		if !rule.matches(r) || !rule.strikes(r) {
			continue
		}
		rule.effect(&v)
		if v.names != "" {
			v.names += ","
		}
		v.names += rule.name
	}
	return v
}

func (rule *Rule) matches(r *request) bool {
	m := rule.match
	switch {
	case rule.removed, rule.spent():
		return false
	case m.Op == 0 && (r.op == OpConnect || r.op == OpPing), m.Op != 0 && m.Op != r.op:
		return false
	case m.Client != "" && m.Client != r.client, m.Session != 0 && m.Session != r.session:
		return false
	case !m.matchesPath(r):
		return false
	default:
		return m.Where == nil || m.Where(r.public())
	}
}

func (m Match) matchesPath(r *request) bool {
	if m.Path == "" && m.PathPrefix == "" {
		return true
	}
	fits := func(p string) bool {
		return (m.Path == "" || p == m.Path) && strings.HasPrefix(p, m.PathPrefix)
	}
	if len(r.paths) > 0 {
		return slices.ContainsFunc(r.paths, fits)
	}
	return fits(r.path)
}

func (rule *Rule) spent() bool {
	switch rule.match.Times {
	case Always:
		return false
	case 0:
		return rule.match.Prob == 0 && rule.fired > 0
	default:
		return rule.fired >= rule.match.Times
	}
}

// strikes counts a match and decides whether the rule acts on it.
func (rule *Rule) strikes(r *request) bool {
	rule.seen++
	if rule.seen < rule.match.Nth {
		return false
	}
	if p := rule.match.Prob; p > 0 && r.c.rng.Float64() >= p {
		return false
	}
	rule.fired++
	close(rule.changed)
	rule.changed = make(chan struct{})
	return true
}

// Fired returns how often the rule has struck.
func (rule *Rule) Fired() int {
	rule.s.mu.Lock()
	defer rule.s.mu.Unlock()
	return rule.fired
}

// Wait waits until the rule has struck n times. It returns ctx's error if ctx
// ends before.
func (rule *Rule) Wait(ctx context.Context, n int) error {
	for {
		rule.s.mu.Lock()
		fired, changed := rule.fired, rule.changed
		rule.s.mu.Unlock()
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

// Remove takes the rule out of force. Requests it has struck stay struck.
func (rule *Rule) Remove() {
	rule.s.mu.Lock()
	rule.removed = true
	rule.s.mu.Unlock()
}

// ClearRules removes all rules.
func (s *Server) ClearRules() {
	s.mu.Lock()
	for _, r := range s.rules {
		r.removed = true
	}
	s.rules = nil
	s.mu.Unlock()
}
