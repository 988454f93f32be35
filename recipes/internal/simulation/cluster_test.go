package simulation_test

import (
	"context"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
	"github.com/docent-go/docent/zktest"
)

// setting is what a schedule runs on, with what belongs to that.
type setting struct {
	test    string // that plays one seed of it
	lease   client.LeasePolicy
	tick    time.Duration
	timeout func(r *rand.Rand) time.Duration // of all sessions of a schedule
	start   func(t *testing.T, opts ...zktest.Option) cluster
	check   func(*sim.History) []error
	games   []game // one is drawn
	counts  bool   // operators change how many permits there are
	roomy   bool   // no actor waits for room in the window

	clients, actors, locks int // if not as many as usual: of each client, and at most

	whole bool // every call is played, by any number of clients and actors; see crowd
}

// alone is a server on its own, on which every promise holds.
var alone = setting{
	test: "TestSeed", start: startAlone, check: sim.Check, games: []game{mutexGame},
	tick: time.Second, counts: true,
	timeout: func(r *rand.Rand) time.Duration {
		return []time.Duration{4 * time.Second, 6 * time.Second, 10 * time.Second}[r.IntN(3)]
	},
}

// cluster is what clients talk to.
type cluster struct {
	hosts    []string // for clients; which of these one knows is drawn
	servers  []server
	alone    *zktest.Server   // one of both
	ensemble *zktest.Ensemble // is nil
	link     func(client string) link
	menu     []fault
	parting  []fault // of a schedule about parted members, if there are such
}

// server is a server on its own or a member of an ensemble.
type server interface {
	OnRequest(f func(zktest.Request))
	OnCommit(f func(zktest.Commit))

	DropBefore(m zktest.Match) *zktest.Rule
	LoseReply(m zktest.Match) *zktest.Rule
	DropAfter(m zktest.Match) *zktest.Rule
	StallReply(m zktest.Match) *zktest.Rule
	Delay(m zktest.Match, d time.Duration) *zktest.Rule
	DelayReply(m zktest.Match, d time.Duration) *zktest.Rule
	ClearRules()
	SlowLog(d time.Duration)
	DelayEvents(d time.Duration)
	Heal()
	Thaw()
	Accept()
	Resume()

	Create(path string, data []byte) error
	Delete(path string) error
	ExpireSession(id int64) bool

	Zxid() int64
	Node(path string) (zktest.Node, bool)
	Children(path string) []string
	Sessions() []zktest.Session
	Watches() []zktest.Watch
	Dump() string
}

// link is a client's way to a server or to all members.
type link interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	Gate(ctx context.Context) error

	Partition()
	PartitionReplies()
	PartitionRequests()
	Freeze()
	Refuse()
	Pause()
	Cut() int
	SetLatency(lo, hi time.Duration)
	Heal()
	Thaw()
	Accept()
	Resume()
}

func startAlone(t *testing.T, opts ...zktest.Option) cluster {
	t.Helper()
	srv := zktest.NewServer(t, opts...)
	return cluster{
		hosts: []string{"zk:2181"}, servers: []server{srv}, alone: srv, menu: aloneMenu,
		link: func(client string) link { return srv.Client(client) },
	}
}

// authority is the server that knows of every commit.
func (c *cluster) authority() server {
	best := c.servers[0]
	for _, s := range c.servers[1:] {
		if s.Zxid() > best.Zxid() {
			best = s
		}
	}
	return best
}
