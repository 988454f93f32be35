package barrier_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// link is how a client reaches a server or an ensemble.
type link interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	Cut() int
	Partition()
	PartitionReplies()
	PartitionRequests()
	Heal()
	Freeze()
	Thaw()
	Pause()
	Resume()
	Refuse()
	Accept()
	ExpireSession() int
	Sessions() []zktest.Session
}

// tree is what operators see.
type tree interface {
	Children(path string) []string
	Create(path string, data []byte) error
	Delete(path string) error
}

// rules are the faults of requests that a server has.
type rules interface {
	LoseReply(m zktest.Match) *zktest.Rule
	DropBefore(m zktest.Match) *zktest.Rule
	DropAfter(m zktest.Match) *zktest.Rule
	StallReply(m zktest.Match) *zktest.Rule
	Delay(m zktest.Match, d time.Duration) *zktest.Rule
	Fail(m zktest.Match, code zktest.Code) *zktest.Rule
	ClearRules()
}

type fault struct {
	name string
	do   func(g *game, p *process)
}

// lasting is a fault that ends after a while, of at most three halves of a session.
func lasting(name string, begin, end func(g *game, p *process)) fault {
	return fault{name, func(g *game, p *process) {
		begin(g, p)
		time.Sleep(time.Duration(g.plan.Int64N(int64(3 * testrig.SessionTimeout / 2))))
		end(g, p)
	}}
}

// ruled strikes one of the next requests of a process below the barrier.
func ruled(name string, strike func(s rules, m zktest.Match)) fault {
	return fault{name, func(g *game, p *process) {
		m := zktest.Match{Client: p.name, PathPrefix: "/job", Nth: 1 + g.plan.IntN(6)}
		for _, s := range g.world.servers {
			strike(s, m)
		}
	}}
}

// ofClients are the faults of clients and what operators do.
var ofClients = []fault{
	ruled("lose reply of", func(s rules, m zktest.Match) { s.LoseReply(m) }),
	ruled("lose reply of", func(s rules, m zktest.Match) { s.LoseReply(m) }),
	ruled("drop before", func(s rules, m zktest.Match) { s.DropBefore(m) }),
	ruled("drop after", func(s rules, m zktest.Match) { s.DropAfter(m) }),
	ruled("stall reply of", func(s rules, m zktest.Match) { s.StallReply(m) }),
	ruled("delay", func(s rules, m zktest.Match) { s.Delay(m, 3*time.Second) }),
	ruled("refuse", func(s rules, m zktest.Match) { s.Fail(m, zktest.CodeNoAuth) }),
	{"cut", func(_ *game, p *process) { p.link.Cut() }},
	{"expire", (*game).expire},
	{"expire", (*game).expire},
	lasting("partition", func(_ *game, p *process) { p.link.Partition() }, func(_ *game, p *process) { p.link.Heal() }),
	lasting("partition replies of", func(_ *game, p *process) { p.link.PartitionReplies() }, func(_ *game, p *process) { p.link.Heal() }),
	lasting("partition requests of", func(_ *game, p *process) { p.link.PartitionRequests() }, func(_ *game, p *process) { p.link.Heal() }),
	lasting("freeze", func(_ *game, p *process) { p.link.Freeze() }, func(_ *game, p *process) { p.link.Thaw() }),
	lasting("refuse", func(_ *game, p *process) { p.link.Refuse(); p.link.Cut() }, func(_ *game, p *process) { p.link.Accept() }),
	{"operator deletes a member", func(g *game, _ *process) { g.operate(false) }},
	{"operator deletes all", func(g *game, _ *process) { g.operate(true) }},
	{"foreign child", func(g *game, _ *process) {
		if s := g.world.truth(); s != nil && s.Create(path+"/note", nil) == nil {
			time.Sleep(time.Second)
			_ = g.delete("note")
		}
	}},
}

// expire ends the sessions of a process from outside.
func (g *game) expire(p *process) {
	g.mu.Lock()
	for _, s := range p.link.Sessions() {
		g.forced[s.ID] = true
	}
	g.mu.Unlock()
	p.link.ExpireSession()
}

// operate deletes the node of a member, or all nodes of members. It leaves the ready
// node: without it a member that has not seen it cannot know that it may pass.
func (g *game) operate(all bool) {
	s := g.world.truth()
	if s == nil {
		return
	}
	names := slices.DeleteFunc(s.Children(path), func(name string) bool { return name == "ready" })
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	if !all {
		i := g.plan.IntN(len(names))
		names = names[i : i+1]
	}
	for _, name := range names {
		_ = g.delete(name)
	}
}

func (g *game) delete(name string) error {
	s := g.world.truth()
	if s == nil {
		return nil
	}
	return s.Delete(path + "/" + name) // it may be gone
}

// alone is a server on its own.
func alone(t *testing.T, g *game, opts ...zktest.Option) {
	srv := zktest.NewServer(t, opts...)
	general := func(name string, begin, end func()) fault {
		return lasting(name, func(*game, *process) { begin() }, func(*game, *process) { end() })
	}
	g.world = world{
		link:    func(name string) link { return srv.Client(name) },
		hosts:   "zk",
		servers: []rules{srv},
		truth:   func() tree { return srv },
		heal:    func() { srv.Heal(); srv.ClearRules() },
		watch: func(q func(zktest.Request), c func(zktest.Commit)) {
			srv.OnRequest(q)
			srv.OnCommit(c)
		},
		menu: append(slices.Clone(ofClients),
			general("restart", srv.Stop, srv.Resume),
			general("partition of all", srv.Partition, srv.Heal),
			general("frozen server", srv.Freeze, srv.Thaw),
			general("slow log", func() { srv.SlowLog(700 * time.Millisecond) }, func() { srv.SlowLog(0) }),
			general("late events", func() { srv.DelayEvents(1500 * time.Millisecond) }, func() { srv.DelayEvents(0) }),
			fault{"new leader", func(*game, *process) { srv.ChangeLeader() }},
			fault{"sweep", func(*game, *process) { srv.Sweep() }},
		),
	}
}

// three is an ensemble.
func three(t *testing.T, g *game, opts ...zktest.Option) {
	e := zktest.NewEnsemble(t, 3, opts...)
	member := func(name string, begin, end func(m *zktest.Member)) fault {
		return fault{name, func(g *game, _ *process) {
			m := e.Server(1 + g.plan.IntN(3))
			begin(m)
			time.Sleep(time.Duration(g.plan.Int64N(int64(testrig.SessionTimeout))))
			end(m)
		}}
	}
	g.world = world{
		link:  func(name string) link { return e.Client(name) },
		hosts: strings.Join([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, ","),
		truth: func() tree {
			if m := e.Leader(); m != nil {
				return m
			}
			return nil
		},
		watch: func(q func(zktest.Request), c func(zktest.Commit)) {
			e.OnRequest(q)
			e.OnCommit(c)
		},
		menu: append(slices.Clone(ofClients),
			member("isolate", func(m *zktest.Member) { e.Isolate(m.ID()) }, func(*zktest.Member) { e.Heal() }),
			member("halt", (*zktest.Member).Halt, (*zktest.Member).Continue),
			member("lag", func(m *zktest.Member) { m.Lag(900 * time.Millisecond) }, func(m *zktest.Member) { m.Lag(0) }),
			member("lag", func(m *zktest.Member) { m.Lag(3 * time.Second) }, func(m *zktest.Member) { m.Lag(0) }),
			member("hold commits of", (*zktest.Member).HoldCommits, (*zktest.Member).ReleaseCommits),
			member("stop", (*zktest.Member).Stop, (*zktest.Member).Resume),
			member("depose", func(m *zktest.Member) { _ = m.ChangeLeader() }, func(*zktest.Member) { e.Heal() }), // it may not be able to lead
		),
	}
	for i := range 3 {
		g.world.servers = append(g.world.servers, e.Server(i+1))
	}
	g.world.heal = func() {
		e.Heal()
		for i := range 3 {
			e.Server(i + 1).ClearRules()
		}
		if _, err := e.AwaitLeader(g.ctx); err != nil {
			g.Fatal(err)
		}
	}
}
