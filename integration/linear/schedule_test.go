package linear_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

const path = "/counts/number"

// seeds is how many schedules run: DOCENT_LINEAR_SEEDS, or 200; make linear plays 1500.
func seeds(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("DOCENT_LINEAR_SEEDS")
	if text == "" {
		return 200
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSchedules plays random operations of several processes under lost answers,
// partitions, cut connections, lost sessions and contexts that end. DOCENT_LINEAR_SEED
// repeats one schedule.
func TestSchedules(t *testing.T) {
	t.Parallel()
	schedules(t, 1, alone)
}

// schedules plays one of so many seeds on what start makes.
func schedules(t *testing.T, share uint64, start func(*game) servers) {
	t.Helper()
	first, last := uint64(1), seeds(t)/share
	if text := os.Getenv("DOCENT_LINEAR_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, last = n, n
	}
	operations, unknowns := 0, 0
	for seed := first; seed <= last && !t.Failed(); seed++ {
		h := new(history)
		synctest.Test(t, func(t *testing.T) { newGame(t, seed, h, start).play() })
		h.check(t, fmt.Sprintf("seed %d", seed))
		operations, unknowns = operations+len(h.all), unknowns+h.unknowns()
	}
	t.Logf("%d schedules, %d operations, %d of unknown outcome", last-first+1, operations, unknowns)
	if last > first && (operations < 5*int(last-first) || unknowns == 0 || unknowns > operations/3) {
		t.Error("that tests too little")
	}
}

// game is one schedule.
type game struct {
	*testing.T
	ctx    context.Context
	random *rand.Rand
	seed   uint64
	srv    servers
	h      *history
}

// servers is what a schedule runs on.
type servers struct {
	connect string
	dial    func(name string) func(ctx context.Context, network, address string) (net.Conn, error)
	disturb func(name string) (undo func())
	heal    func()
	behind  bool // servers may be behind each other, so a read comes after a sync
}

func newGame(t *testing.T, seed uint64, h *history, start func(*game) servers) *game {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	g := &game{T: t, ctx: ctx, random: rand.New(rand.NewPCG(seed, 1)), seed: seed, h: h}
	g.srv = start(g)
	return g
}

func (g *game) options() []zktest.Option {
	return []zktest.Option{zktest.WithSeed(g.seed), zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, 2*time.Millisecond)}
}

const (
	clients    = 3
	goroutines = 2
	rounds     = 4
)

// play runs the schedule and, when all is well again, reads the number once more.
func (g *game) play() {
	var players []*player
	for i := range clients {
		players = append(players, g.process(i)...)
	}
	var wg sync.WaitGroup
	for _, p := range players {
		wg.Go(p.play)
	}
	stop := make(chan struct{})
	var faults sync.WaitGroup
	faults.Go(func() { g.disturb(stop) })
	wg.Wait()
	close(stop)
	faults.Wait()
	g.srv.heal()
	time.Sleep(15 * time.Second) // longer than any request can be on its way
	last := g.process(clients)[0]
	last.get(g.ctx)
}

// process is one client and the goroutines that share what it has made.
func (g *game) process(i int) (players []*player) {
	name := fmt.Sprint("c", i)
	c, err := client.Connect(g.ctx, g.srv.connect, client.WithSessionTimeout(4*time.Second),
		client.WithDialer(g.srv.dial(name)), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), time.Minute)
		defer cancel()
		_ = c.CloseContext(ctx)
	})
	n := g.number(c)
	if g.srv.behind {
		n = synced{n, c}
	}
	for j := range goroutines {
		id := i*goroutines + j
		players = append(players, &player{g: g, id: id, n: n, random: rand.New(rand.NewPCG(g.seed, uint64(100+id)))})
	}
	return players
}

// number is what the seed plays with. Processes of one seed may differ, as programs do
// that share a path.
func (g *game) number(c *client.Client) number {
	var opts []shared.AtomicOption
	switch g.random.IntN(5) {
	case 0:
		opts = append(opts, shared.WithoutMark())
	case 1:
		lock, err := recipes.NewInterProcessMutex(c, "/locks/number")
		if err != nil {
			g.Fatal(err)
		}
		opts = append(opts, shared.WithTries(retry.None()), shared.PromotedToLock(lock, 0, retry.NTimes(100, time.Millisecond)))
	}
	if g.seed%3 == 0 { // a SharedCount and a DistributedAtomicInteger on one path
		count, err := shared.NewSharedCount(c, path, 0)
		if err != nil {
			g.Fatal(err)
		}
		if g.random.IntN(2) == 0 {
			return counted{count}
		}
		integer, err := shared.NewDistributedAtomicInteger(c, path, opts...)
		if err != nil {
			g.Fatal(err)
		}
		return narrow{integer}
	}
	long, err := shared.NewDistributedAtomicLong(c, path, opts...)
	if err != nil {
		g.Fatal(err)
	}
	return wide{long}
}

// disturb does one thing after the other to the clients.
func (g *game) disturb(stop <-chan struct{}) {
	for {
		undo := g.srv.disturb(fmt.Sprint("c", g.random.IntN(clients)))
		select {
		case <-time.After(time.Duration(g.random.IntN(3000)) * time.Millisecond / time.Duration(1+g.random.IntN(500))):
			undo()
		case <-stop:
			undo()
			return
		}
	}
}

// faulty is what both a server and a member of an ensemble can do.
type faulty interface {
	LoseReply(m zktest.Match) *zktest.Rule
	DropBefore(m zktest.Match) *zktest.Rule
	DropAfter(m zktest.Match) *zktest.Rule
	StallReply(m zktest.Match) *zktest.Rule
}

// loses is one of the ways to lose one request of a client.
func (g *game) loses(srv faulty, name string) {
	ops := []zktest.Op{zktest.OpMulti, zktest.OpSetData, zktest.OpCreate, zktest.OpGetData, zktest.OpExists, zktest.OpSync}
	m := zktest.Match{Op: ops[g.random.IntN(len(ops))], Client: name}
	ways := []func(zktest.Match) *zktest.Rule{srv.LoseReply, srv.LoseReply, srv.DropBefore, srv.DropAfter, srv.StallReply}
	ways[g.random.IntN(len(ways))](m)
}

// alone is one server.
func alone(g *game) servers {
	srv := zktest.NewServer(g.T, g.options()...)
	return servers{
		connect: "zk",
		dial: func(name string) func(context.Context, string, string) (net.Conn, error) {
			return srv.Client(name).DialContext
		},
		disturb: func(name string) func() {
			switch g.random.IntN(8) {
			case 0:
				srv.Client(name).Partition()
				return srv.Client(name).Heal
			case 1:
				srv.CutAll()
			case 2:
				for _, s := range srv.Sessions() {
					if g.random.IntN(3) == 0 {
						srv.ExpireSession(s.ID)
					}
				}
			default:
				g.loses(srv, name)
			}
			return func() {}
		},
		heal: srv.ClearRules,
	}
}
