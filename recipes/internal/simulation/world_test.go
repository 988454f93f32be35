package simulation_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
	"github.com/docent-go/docent/zktest"
)

const (
	clientsPerRun    = 3
	actorsPerClient  = 3
	disturbed        = 30*time.Second + 31337 // the phase of faults; not at a tick of the server
	peacefulRounds   = 2
	latencyLo        = 50 * time.Microsecond
	latencyHi        = 2 * time.Millisecond
	closeWithin      = time.Second
	foreignContender = "lock-0000000000" // sorts before every contender
)

// world is one schedule: a server, its clients and what they did.
type world struct {
	t     *testing.T
	seed  uint64
	ctx   context.Context // ends long after the schedule should have
	start time.Time
	cluster
	k     setting
	h     *sim.History
	plan  *plan
	style style
	game  game
	most  int // nodes of one client in the line of a lock
	nodes []*node
	locks []*resource
	trace *trace
	sum   *totals
	watch observers
	asked []sim.Force // nodes whose owners were asked to release; guarded as the history
	words *words
	sums  sums

	moved  map[string]bool    // nodes of participants that a leader has sent behind
	handed map[*sim.Hold]bool // terms that were handed over

	clients, actors int  // of each client
	noReentry       bool // an option of its mutexes and read/write locks

	late  bool // its actors have a lateness
	named bool // some of its actors name the locks in a namespace
}

// node is one client with its link.
type node struct {
	name   string
	hosts  string // the servers it knows
	link   link
	c      atomic.Pointer[client.Client]
	names  *names
	closed atomic.Bool // amid the schedule

	numbers    *numbers // of a crowd
	semaphores values[*recipes.InterProcessSemaphoreV2]
	alone      values[*recipes.InterProcessSemaphoreMutex]
}

// resource is a lock's path and what it guards.
type resource struct {
	path    string
	kind    *kind
	of      int    // how many shares it has
	count   string // the node that says how many permits there are, if operators change that
	witness *sim.Witness
}

// generator returns random numbers of one user. No other user shares them, so
// what one draws never shifts what another gets.
func generator(seed uint64, user string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(user))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// runOn plays the schedule of a seed and returns every promise that was broken.
func runOn(t *testing.T, seed uint64, k setting) *result {
	t.Helper()
	r := &result{seed: seed}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, k)
		w.play()
		w.conclude()
		r.history, r.totals, r.trace, r.situations, r.words = w.h, *w.sum, w.trace, w.situations(), w.words.n
		r.broken = k.check(w.h)
		if len(r.broken) > 0 {
			r.left = w.authority().Dump()
		}
		if slices.ContainsFunc(w.h.Left, func(l sim.Residue) bool { return l.Kind == sim.ResidueGoroutine }) {
			// A bubble with goroutines that never end takes the process with it.
			fmt.Fprintf(os.Stderr, "seed %d: %v\nrepeat: %s\n", seed, r.broken[0], repeat(seed, k))
		}
	})
	return r
}

// result is what is known of a schedule afterwards.
type result struct {
	seed       uint64
	history    *sim.History
	totals     totals
	trace      *trace
	broken     []error
	situations ledger
	words      ledger
	left       string // on the server
}

func newWorld(t *testing.T, seed uint64, k setting) *world {
	t.Helper()
	r := generator(seed, "world")
	timeout := k.timeout(r)
	w := &world{
		t: t, seed: seed, start: time.Now(),
		h:     &sim.History{Sessions: map[int64]string{}, Timeout: timeout, Tick: k.tick, Healed: disturbed, Calm: disturbed + 4*timeout + 2*time.Second},
		trace: &trace{},
		sum:   &totals{},
		words: &words{},
		sums:  sums{replaced: map[string]bool{}},
		moved: map[string]bool{}, handed: map[*sim.Hold]bool{},
	}
	ctx, cancel := context.WithDeadline(t.Context(), w.start.Add(w.h.Calm+time.Minute+4*timeout))
	t.Cleanup(cancel)
	w.ctx = ctx
	w.watch.ctx, w.watch.stop = context.WithCancel(ctx)
	w.k = k
	w.cluster = k.start(t, zktest.WithSeed(seed), zktest.WithTick(k.tick),
		zktest.WithSessionTimeouts(time.Second, time.Minute),
		zktest.WithContainerInterval(time.Duration(5+r.IntN(20))*time.Second),
		zktest.WithLatency(latencyLo, latencyHi), zktest.WithLogSize(0))
	w.style = stirring
	if w.parting != nil && r.IntN(2) == 0 {
		w.style, w.menu = parting, w.parting
	}
	w.servers[0].OnRequest(w.observe) // of all servers
	if w.ensemble != nil {
		w.h.Lagging = true
	}
	w.servers[0].OnCommit(w.committed) // of all servers
	w.game = draw(seed, k.games)
	w.clients, w.actors = cmp.Or(k.clients, clientsPerRun), cmp.Or(k.actors, actorsPerClient)
	locks := min(1+r.IntN(2), cmp.Or(k.locks, 2))
	if k.whole {
		locks = w.drawWhole()
	}
	w.most = max(actorsPerClient*3, w.actors)
	if !k.roomy {
		w.most = []int{1, 2, 3, w.most}[generator(seed, "window").IntN(4)]
	}
	w.newResources(locks)
	if k.whole {
		w.makeGuarded()
	}
	for i := range w.clients {
		name := fmt.Sprintf("c%d", i)
		hosts := w.hosts[r.IntN(len(w.hosts))]
		w.nodes = append(w.nodes, &node{name: name, hosts: hosts, link: w.link(name), names: newNames(seed, name)})
	}
	w.countPermits()
	w.plan = newPlan(w, generator(seed, "plan"))
	return w
}

// conclude counts what only the end shows.
func (w *world) conclude() {
	w.h.Finished = w.now()
	w.sum.Forced, w.sum.Closed = len(w.h.Forces), len(w.h.Closings)
	for i, g := range w.h.Holds {
		if errors.Is(g.ReleaseErr, recipes.ErrLost) {
			w.sum.HoldsLost++
		}
		if slices.ContainsFunc(w.h.Holds[:i], func(o *sim.Hold) bool {
			return o.Lock == g.Lock && !o.Nested && !g.Nested && o.Of > 1 && (o.ContextEnded == sim.Never || o.ContextEnded > g.Granted)
		}) {
			w.sum.Beside++
		}
	}
	held := map[string]bool{}
	for _, g := range w.h.Holds {
		held[g.Path] = true
	}
	for _, n := range w.h.Nodes {
		if n.Together {
			w.sum.Together++
		}
		switch {
		case n.Role != sim.RolePermit:
		case n.Placed && n.Handed:
			w.sum.Handed++
		case !n.Placed && held[n.Path]:
			w.sum.AtOnce++
		case !n.Placed:
			w.sum.Withdrawn++
		}
	}
	for _, l := range w.locks {
		w.sum.Refused += l.witness.Refused()
	}
}

func (w *world) now() time.Duration { return time.Since(w.start) }

// play runs the schedule from beginning to end.
func (w *world) play() {
	var actors sync.WaitGroup
	for i, n := range w.nodes {
		actors.Go(func() { w.live(i, n) })
	}
	go w.plan.carryOut(w)
	done := make(chan struct{})
	go func() { actors.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Until(w.start.Add(w.h.Calm + 5*time.Minute))):
		w.leave(sim.ResidueGoroutine, "calls that obey no context")
	}
	w.endObserving()
	w.leftByActors()
	w.closeAll()
	if w.k.whole {
		w.judgeNumbers()
	}
}

// live connects a client and lets its actors work.
func (w *world) live(i int, n *node) {
	time.Sleep(time.Duration(i+1) * 7919 * time.Nanosecond)
	observer := client.Observer{StateChange: func(s client.StateChange) { w.stateChanged(n, s) }}
	if w.late {
		observer.Operation = comesLate
	}
	c, err := client.Connect(w.ctx, n.hosts,
		client.WithSessionTimeout(w.h.Timeout),
		client.WithConnectTimeout(w.h.Calm),
		client.WithLeasePolicy(w.k.lease),
		client.WithDialer(n.dial),
		client.WithRand(w.jitter(n.name)),
		client.WithLogger(slog.New(slog.DiscardHandler)),
		client.WithMaxRequest(16<<10), client.WithMaxReply(64<<10),
		client.WithObserver(observer),
	)
	if err != nil {
		w.leave(sim.ResidueClose, "connect: "+err.Error())
		return
	}
	n.c.Store(c)
	n.semaphores, n.alone = values[*recipes.InterProcessSemaphoreV2]{}, values[*recipes.InterProcessSemaphoreMutex]{}
	w.startObserving(n)
	if w.k.whole {
		if n.numbers, err = w.newNumbers(n); err != nil {
			w.t.Fatal(err)
		}
		w.startFollowing(n)
	}
	var actors sync.WaitGroup
	for j := range w.actors {
		a := newActor(w, n, j)
		actors.Go(a.work)
	}
	actors.Wait()
}
