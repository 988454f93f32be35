package nodes_test

import (
	"context"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// server is what the rivals' schedules need of a server on its own and of a member of
// an ensemble.
type server interface {
	LoseReply(m zktest.Match) *zktest.Rule
	DropBefore(m zktest.Match) *zktest.Rule
	Fail(m zktest.Match, code zktest.Code) *zktest.Rule
	BeforeReply(m zktest.Match, hook func(context.Context, zktest.Request)) *zktest.Rule
	ClearRules()
	ExpireSession(id int64) bool
	Create(path string, data []byte) error
	Delete(path string) error
	SetData(path string, data []byte) error
	Children(path string) []string
	Node(path string) (zktest.Node, bool)
	WatchCount() int
	Sweep() int
	Stop()
	Resume()
	CutAll() int
}

// network is the way of one client to its servers.
type network interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	Servers() []string
	Cut() int
	ExpireSession() int
	Partition()
	PartitionReplies()
	PartitionRequests()
	Pause()
	Resume()
	Heal()
}

// world is a server, or three, in a bubble of virtual time.
type world struct {
	*testing.T
	ctx      context.Context
	random   *rand.Rand
	seed     uint64
	srv      *zktest.Server
	ensemble *zktest.Ensemble // nil if there is one server
	links    []network
	*record
}

// newWorld starts servers: one or three.
func newWorld(t *testing.T, seed uint64, servers int) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx, seed: seed, random: rand.New(rand.NewPCG(seed, uint64(servers))), record: newRecord()}
	opts := []zktest.Option{
		zktest.WithSeed(seed), zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, time.Millisecond),
	}
	if servers == 1 {
		w.srv = zktest.NewServer(t, opts...)
		w.srv.OnCommit(w.commit)
		w.srv.OnRequest(w.request)
		return w
	}
	w.ensemble = zktest.NewEnsemble(t, servers, opts...)
	w.ensemble.OnCommit(w.commit)
	w.ensemble.OnRequest(w.request)
	return w
}

// servers are all of them.
func (w *world) servers() (all []server) {
	if w.ensemble == nil {
		return []server{w.srv}
	}
	for i := range w.ensemble.Size() {
		all = append(all, w.ensemble.Server(i+1))
	}
	return all
}

// tree is the server whose tree counts.
func (w *world) tree() server {
	w.Helper()
	if w.ensemble == nil {
		return w.srv
	}
	m, err := w.ensemble.AwaitLeader(w.ctx)
	if err != nil {
		w.Fatal(err)
	}
	return m
}

// connect returns a client of that name.
func (w *world) connect(name string) *client.Client {
	w.Helper()
	var link network
	if w.ensemble == nil {
		link = w.srv.Client(name)
	} else {
		link = w.ensemble.Client(name)
	}
	w.links = append(w.links, link)
	draws := locked(rand.New(rand.NewPCG(w.seed, uint64(len(w.links)))))
	c := testrig.Connect(w.ctx, w, strings.Join(link.Servers(), ","), link.DialContext, client.WithRand(draws))
	return c
}

// within draws a time below d.
func (w *world) within(d time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(d)))
}

// heal ends all faults, and returns when every server serves.
func (w *world) heal() {
	w.Helper()
	for _, l := range w.links {
		l.Resume()
		l.Heal()
	}
	for _, s := range w.servers() {
		s.ClearRules()
	}
	if w.ensemble == nil {
		w.srv.Resume()
		return
	}
	w.ensemble.Heal()
	for i := range w.ensemble.Size() {
		m := w.ensemble.Server(i + 1)
		m.Continue()
		m.Resume()
		m.Lag(0)
		m.ReleaseCommits()
	}
	for i := 1; i <= w.ensemble.Size(); i++ {
		for !w.ensemble.Server(i).Serving() {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// deed is a fault of the menu.
type deed struct {
	what string
	do   func()
}

// fault does one thing of the menu, to one client, one server or the nodes.
func (w *world) fault() (what string) {
	link := w.links[1+w.random.IntN(len(w.links)-1)] // the first is the stranger's
	all := w.servers()
	at := w.random.IntN(len(all))
	m := zktest.Match{PathPrefix: "/workers", Nth: 1 + w.random.IntN(3)}
	menu := []deed{
		{"cut", func() { link.Cut() }},
		{"expire", func() { link.ExpireSession() }},
		{"partition", link.Partition},
		{"partition replies", link.PartitionReplies},
		{"partition requests", link.PartitionRequests},
		{"pause", link.Pause},
		{"lose reply", func() { all[at].LoseReply(m) }},
		{"drop", func() { all[at].DropBefore(m) }},
		{"no auth", func() {
			m.Where = func(q zktest.Request) bool { return creates(q) || q.Op == zktest.OpMulti && !w.closes(q.Client) }
			all[at].Fail(m, zktest.CodeNoAuth)
		}},
		{"cut off with the answer", func() {
			all[at].BeforeReply(m, func(context.Context, zktest.Request) { link.PartitionReplies() })
		}},
		{"expire with the answer", func() {
			all[at].BeforeReply(m, func(_ context.Context, q zktest.Request) { all[at].ExpireSession(q.Session) })
		}},
		{"operator deletes", w.operatorDeletes},
		{"sweep", func() { all[at].Sweep() }},
		{"stop", all[at].Stop},
		{"cut all", func() { all[at].CutAll() }},
	}
	if w.ensemble != nil {
		member := w.ensemble.Server(at + 1)
		menu = append(menu, []deed{
			{"isolate", func() { w.ensemble.Isolate(at + 1) }},
			{"isolate the leader", func() {
				if l := w.ensemble.Leader(); l != nil {
					w.ensemble.Isolate(l.ID())
				}
			}},
			{"one-way cut", func() { w.ensemble.CutOneWay(at+1, 1+(at+1)%w.ensemble.Size()) }},
			{"lag", func() { member.Lag(w.within(3 * time.Second)) }},
			{"hold commits", member.HoldCommits},
			{"halt", member.Halt},
			{"change leader", func() { _ = member.ChangeLeader() }}, // it may not be able to lead
		}...)
	}
	one := menu[w.random.IntN(len(menu))]
	one.do()
	return one.what
}

// operatorDeletes deletes whatever stands, and sometimes the parent.
func (w *world) operatorDeletes() {
	s := w.servers()[0]
	for _, child := range s.Children("/workers") {
		_ = s.Delete("/workers/" + child) // it may be gone, or the server down
	}
	if w.random.IntN(2) == 0 {
		_ = s.Delete("/workers")
	}
}
