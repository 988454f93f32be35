package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

// game is one schedule: processes enter and leave a barrier again and again under
// faults. Then all is healed, and all must pass twice.
type game struct {
	*testing.T
	ctx    context.Context
	plan   *rand.Rand
	rounds bool
	needed int
	procs  []*process
	world  world
	end    time.Duration // of the faults

	mu     sync.Mutex // guards the rest
	owners map[int64]string
	forced map[int64]bool    // sessions that an operator has ended
	nodes  map[string]*stood // of members, by their paths
	opened []*opening
	stays  []*stay
	faults []string // what was done, for the report
	passed int
}

// world is a server or an ensemble.
type world struct {
	link    func(name string) link
	hosts   string
	servers []rules
	truth   func() tree // that operators use; nil while none leads
	menu    []fault
	watch   func(onRequest func(zktest.Request), onCommit func(zktest.Commit))
	heal    func()
}

// process is one client with its barrier.
type process struct {
	name string
	link link
	c    *client.Client
	b    *barrier.DistributedDoubleBarrier
}

// stood is when the node of a path stood, in one or several sessions.
type stood struct{ spans []span }

type span struct {
	session  int64
	zxid     int64
	from, to time.Time // to is zero while it stands
	operator bool      // an operator has deleted it
}

// between reports whether it stood at a time between two.
func (s *stood) between(from, to time.Time) bool {
	return slices.ContainsFunc(s.spans, func(one span) bool { return !one.from.After(to) && (one.to.IsZero() || one.to.After(from)) })
}

// at returns the span at a time.
func (s *stood) at(t time.Time) *span {
	for i := range s.spans {
		if one := &s.spans[i]; !one.from.After(t) && (one.to.IsZero() || one.to.After(t)) {
			return one
		}
	}
	return nil
}

// opening is a ready node.
type opening struct {
	zxid     int64
	from, to time.Time
	with     map[string]int64 // paths that stood, and their sessions
	joined   map[string]bool  // paths of members that have written the ready node
}

// stay is one member, from the call of Enter to the end of its Leave.
type stay struct {
	process        string
	path           string
	called, passed time.Time
	over           time.Time // its work has ended
	leaving, left  time.Time
	leaveErr       error
}

func (g *game) watch() {
	g.world.watch(func(q zktest.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if q.Session != 0 && q.Client != "" {
			g.owners[q.Session] = q.Client
		}
	}, g.commit)
}

// commit keeps what stands.
func (g *game) commit(c zktest.Commit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range c.Deleted {
		if s := g.nodes[p]; s != nil && len(s.spans) > 0 {
			last := &s.spans[len(s.spans)-1]
			last.to, last.operator = c.Time, c.Session == 0
		}
		if p == ready && len(g.opened) > 0 {
			g.opened[len(g.opened)-1].to = c.Time
		}
	}
	if n := len(g.opened); n > 0 && slices.Contains(c.Changed, ready) {
		for p, session := range g.standing() {
			if session == c.Session {
				g.opened[n-1].joined[p] = true
			}
		}
	}
	for _, p := range c.Created {
		name, below := strings.CutPrefix(p, path+"/")
		switch {
		case p == ready:
			g.opened = append(g.opened, &opening{zxid: c.Zxid, from: c.Time, with: g.standing(), joined: map[string]bool{}})
		case below && len(name) == 36:
			if g.nodes[p] == nil {
				g.nodes[p] = &stood{}
			}
			g.nodes[p].spans = append(g.nodes[p].spans, span{session: c.Session, zxid: c.Zxid, from: c.Time})
		}
	}
}

// standing are the members' nodes that stand, and their sessions.
func (g *game) standing() map[string]int64 {
	now := map[string]int64{}
	for p, s := range g.nodes {
		if last := s.spans[len(s.spans)-1]; last.to.IsZero() {
			now[p] = last.session
		}
	}
	return now
}

// turn is one Enter and one Leave.
func (g *game) turn(p *process, enter, work, leave time.Duration) {
	s := &stay{process: p.name, called: time.Now()}
	ctx, cancel := context.WithTimeout(g.ctx, enter)
	defer cancel()
	m, err := p.b.Enter(ctx)
	if err != nil {
		if !excused(err) {
			g.Errorf("%s: Enter: %v", p.name, err)
		}
		return
	}
	s.path, s.passed = m.Path(), time.Now()
	over := context.AfterFunc(m.Context(), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if s.over.IsZero() {
			s.over = time.Now()
		}
	})
	defer over()
	g.mu.Lock()
	g.stays = append(g.stays, s)
	g.passed++
	g.mu.Unlock()
	select {
	case <-time.After(work):
	case <-m.Context().Done():
	}
	g.mu.Lock()
	s.leaving = time.Now()
	if s.over.IsZero() {
		s.over = s.leaving
	}
	g.mu.Unlock()
	ctx, cancel = context.WithTimeout(g.ctx, leave)
	defer cancel()
	err = m.Leave(ctx)
	if err != nil && !excused(err) {
		g.Errorf("%s: Leave: %v", p.name, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s.left, s.leaveErr = time.Now(), err
}

// excused are the errors that faults may cause.
func excused(err error) bool {
	for _, target := range []error{
		context.DeadlineExceeded, client.ErrSessionLost, client.ErrLeaseExpired,
		barrier.ErrNodeDeleted, client.ErrNoAuth, client.ErrNotConnected,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return client.UnknownOutcome(err)
}

// chaos lets all processes take turns until the end of the faults.
func (g *game) chaos() {
	var all sync.WaitGroup
	stop := time.Now().Add(g.end)
	for i, p := range g.procs {
		draw := rand.New(rand.NewPCG(g.plan.Uint64(), uint64(i)))
		all.Go(func() {
			for time.Now().Before(stop) {
				time.Sleep(time.Duration(draw.IntN(2000)) * time.Millisecond)
				g.turn(p, 1+time.Duration(draw.IntN(40_000))*time.Millisecond,
					time.Duration(draw.IntN(3000))*time.Millisecond, 1+time.Duration(draw.IntN(30_000))*time.Millisecond)
			}
		})
	}
	for time.Now().Before(stop) {
		time.Sleep(time.Duration(g.plan.IntN(4000)) * time.Millisecond)
		f := g.world.menu[g.plan.IntN(len(g.world.menu))]
		p := g.procs[g.plan.IntN(len(g.procs))]
		g.mu.Lock()
		g.faults = append(g.faults, f.name+" "+p.name)
		g.mu.Unlock()
		f.do(g, p)
	}
	all.Wait()
}

// calm heals all, and lets all pass twice.
func (g *game) calm() {
	g.world.heal()
	for _, p := range g.procs {
		p.link.Heal()
		p.link.Thaw()
		p.link.Accept()
	}
	time.Sleep(3 * testrig.SessionTimeout) // whatever the clients have still to hear of
	for range 2 {
		// In a round of Curator's a member must not come again before the others have left.
		var all sync.WaitGroup
		before := g.passed
		for _, p := range g.procs {
			all.Go(func() {
				for range g.again() {
					g.turn(p, 10*time.Minute, time.Second, 10*time.Minute)
				}
			})
		}
		all.Wait()
		if want := before + g.again()*len(g.procs); g.passed != want {
			g.Errorf("%d passed after the faults, want %d; there are %v", g.passed-before, want-before, g.world.truth().Children(path))
		}
	}
	time.Sleep(2 * testrig.SessionTimeout)
	if left := g.world.truth().Children(path); len(left) != 0 {
		g.Errorf("left behind: %v", left)
	}
}

func (g *game) again() int {
	if g.rounds {
		return 3
	}
	return 1
}

// judge looks at all stays.
func (g *game) judge() {
	for _, o := range g.opened {
		all := map[string]bool{}
		for _, session := range o.with {
			all[g.owners[session]] = true
		}
		if len(all) < g.needed {
			g.Errorf("early: a round was opened at %v with %d of %d processes: %v", o.from, len(all), g.needed, o.with)
		}
	}
	for _, s := range g.stays {
		if !g.wasOpen(s) {
			g.Errorf("early: %s passed Enter at %v, called at %v", s.process, s.passed, s.called)
		}
		if s.leaveErr != nil {
			continue
		}
		for _, other := range g.stays {
			if other != s && g.insideFor(other, s) {
				g.Errorf("early: %s passed Leave at %v, called at %v, while %s was inside from %v to %v, %+v",
					s.process, s.left, s.leaving, other.process, other.passed, other.over, g.nodes[other.path])
			}
		}
	}
}

// wasOpen reports whether a round was opened while the member's node stood. For a barrier
// without rounds another member of an open round may also have stood during the Enter.
func (g *game) wasOpen(s *stay) bool {
	for _, o := range g.opened {
		if o.from.After(s.passed) {
			break
		}
		if _, counted := o.with[s.path]; counted {
			return true
		}
		if g.rounds || !o.to.IsZero() && !o.to.After(s.called) {
			continue
		}
		for p, node := range g.nodes {
			if _, counted := o.with[p]; p != s.path && (counted || o.joined[p]) && node.between(s.called, s.passed) {
				return true
			}
		}
	}
	return false
}

// insideFor reports whether other worked on after the Leave of s had passed,
// although its node stood when that began. If an operator ends the session, no
// member can know in advance. A member that waited meanwhile, and passed with a round that
// was opened after the Leave had begun, is of another round.
func (g *game) insideFor(other, s *stay) bool {
	for _, o := range g.opened {
		if _, counted := o.with[other.path]; counted && o.from.After(s.leaving) && !o.from.After(other.passed) {
			return false
		}
	}
	one := g.nodes[other.path].at(s.leaving)
	return one != nil && one == g.nodes[other.path].at(other.passed) && !one.operator && !g.forced[one.session] && other.passed.Before(s.left) && other.over.After(s.left)
}

func (g *game) play(seed uint64) {
	g.watch()
	for i := range g.needed {
		g.add(fmt.Sprint("p", i), seed)
	}
	g.chaos()
	g.calm()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.judge()
	if g.Failed() {
		g.Logf("faults: %v", g.faults)
	}
}

// add connects a process.
func (g *game) add(name string, seed uint64) {
	g.Helper()
	p := &process{name: name, link: g.world.link(name)}
	var err error
	p.c = testrig.Connect(g.ctx, g, g.world.hosts, p.link.DialContext, client.WithRand(locked(rand.New(rand.NewPCG(seed, uint64(len(g.procs)))))))
	opts := []barrier.Option{barrier.WithMemberName(name)}
	if g.rounds {
		opts = append(opts, barrier.WithRounds())
	}
	if p.b, err = barrier.NewDistributedDoubleBarrier(p.c, path, g.needed, opts...); err != nil {
		g.Fatal(err)
	}
	g.procs = append(g.procs, p)
}

// locked makes a source that several goroutines may use.
func locked(random *rand.Rand) func() float64 {
	var mu sync.Mutex
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64()
	}
}

// playGame plays the schedule of a seed in a bubble.
func playGame(t *testing.T, seed uint64, start func(*testing.T, *game, ...zktest.Option)) (passed int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		plan := rand.New(rand.NewPCG(seed, 5))
		g := &game{
			T: t, ctx: ctx, plan: plan, rounds: seed%2 == 0, needed: 2 + plan.IntN(3), end: 2 * time.Minute,
			owners: map[int64]string{}, forced: map[int64]bool{}, nodes: map[string]*stood{},
		}
		start(t, g, zktest.WithSeed(seed), zktest.WithTick(2*time.Second), zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		g.play(seed)
		passed = g.passed
		if n := len(slices.Compact(g.faults)); n < 10 {
			t.Errorf("%d faults only", n)
		}
	})
	return passed
}
