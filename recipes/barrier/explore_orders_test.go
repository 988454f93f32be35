package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/explore"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

// program is members that each enter a barrier and leave it, played in every order of their
// requests, and of replies and events if wanted.
type program struct {
	name     string
	entrants int
	needed   int
	rounds   bool
	replies  bool
	giveUp   bool // the first may give up in Enter
	highest  bool // the names of nodes fall
	switches int
	long     int // switches with DOCENT_EXPLORE_LONG=1
}

// play is one order of a program.
type play struct {
	program
	srv  *zktest.Server
	gate *zktest.Gate

	mu      sync.Mutex // guards the rest
	at      []where
	before  [][]int         // who was inside when a member began to leave
	leave   []chan struct{} // closed when a member shall leave
	most    int             // that stood at once
	running int
	turns   int
	err     error
}

type where int

const (
	entering where = iota
	inside
	leaving
	over
)

func (p *play) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// turn is a step of a play: a request, a reply, an event, or the end of a member's work.
type turn struct {
	parked zktest.Parked
	leaver int // -1: none
}

// String begins with the name of the client.
func (s turn) String() string {
	if s.leaver >= 0 {
		return clientName(s.leaver) + " leaves"
	}
	return s.parked.String()
}

func clientName(i int) string { return string(rune('a' + i)) }

// Parked lists the turns that may be next.
func (p *play) Parked() (all []turn) {
	for _, one := range p.gate.Parked() {
		all = append(all, turn{one, -1})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, at := range p.at {
		if at == inside && p.before[i] == nil {
			all = append(all, turn{leaver: i})
		}
	}
	return all
}

// Let takes a turn.
func (p *play) Let(s turn) {
	if s.leaver < 0 {
		p.gate.Let(s.parked)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before[s.leaver] = []int{s.leaver}
	for i, at := range p.at {
		if at == inside && i != s.leaver {
			p.before[s.leaver] = append(p.before[s.leaver], i)
		}
	}
	p.at[s.leaver] = leaving
	close(p.leave[s.leaver])
}

// over looks at what stands, and reports whether all members are done.
func (p *play) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = max(p.most, p.standing())
	if p.turns++; p.turns > 300 {
		p.fail("there is no end")
	}
	return p.running == 0 || p.err != nil
}

func (p *play) standing() int {
	return len(slices.DeleteFunc(p.srv.Children(path), func(name string) bool { return name == "ready" }))
}

// member enters and leaves. It ends with ctx.
func (p *play) member(ctx context.Context, enter context.Context, i int, b *barrier.DistributedDoubleBarrier) {
	done := func() {
		p.running--
		p.at[i] = over
	}
	m, err := b.Enter(enter)
	p.mu.Lock()
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			p.fail("enter of %s: %w", clientName(i), err)
		}
		done()
		p.mu.Unlock()
		return
	}
	if p.most < p.needed {
		p.fail("%s has passed, and no more than %d have stood", clientName(i), p.most)
	}
	p.at[i] = inside
	p.mu.Unlock()
	select {
	case <-p.leave[i]:
	case <-ctx.Done():
	}
	err = m.Leave(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		p.fail("leave of %s: %w", clientName(i), err)
	}
	for _, j := range p.before[i] {
		if err == nil && p.at[j] == inside {
			p.fail("%s has left while %s works", clientName(i), clientName(j))
		}
	}
	done()
}

// run plays an order in a bubble.
func (p program) run(t *testing.T, o *explore.Order) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		one := &play{program: p, srv: zktest.NewServer(t, zktest.WithSeed(1)), running: p.entrants}
		one.at, one.before = make([]where, p.entrants), make([][]int, p.entrants)
		if err := errors.Join(one.srv.Create("/job", nil), one.srv.Create(path, nil)); err != nil {
			t.Fatal(err)
		}
		var clients []*client.Client
		var all sync.WaitGroup
		var barriers []*barrier.DistributedDoubleBarrier
		for i := range p.entrants {
			c := testrig.Connect(ctx, t, "zk", one.srv.Client(clientName(i)).DialContext, client.WithRand(func() float64 { return 0.5 }))
			clients = append(clients, c)
			var opts []barrier.Option
			if p.rounds {
				opts = append(opts, barrier.WithRounds())
			}
			b, err := barrier.NewDistributedDoubleBarrier(c, path, p.needed, opts...)
			if err != nil {
				t.Fatal(err)
			}
			first := i
			if p.highest {
				first = 9 - i
			}
			made := 0
			barrier.SetNames(b, func() string {
				made++
				return fmt.Sprintf("%08x-0000-8000-8000-%012x", first, made)
			})
			barriers = append(barriers, b)
			one.leave = append(one.leave, make(chan struct{}))
		}
		one.gate = one.srv.NewGate(zktest.Match{PathPrefix: path}, p.replies)
		enter, giveUp := context.WithCancel(ctx)
		defer giveUp()
		for i, b := range barriers {
			mine := ctx
			if i == 0 {
				mine = enter
			}
			all.Go(func() { one.member(ctx, mine, i, b) })
		}
		var deeds []explore.Deed
		if p.giveUp {
			deeds = append(deeds, explore.Deed{Name: "a gives up", Do: giveUp})
		}
		explore.Programs[turn]{
			Gate: one, Rest: synctest.Wait, Over: one.over, Deeds: deeds,
			Idle: func() { time.Sleep(time.Second) }, Idles: 6,
		}.Play(o)
		one.mu.Lock()
		for i, at := range one.at {
			switch {
			case at == leaving:
				one.fail("the Leave of %s waits, and nothing more will happen", clientName(i))
			case at == entering && (one.standing() >= p.needed || slices.Contains(one.srv.Children(path), "ready")):
				one.fail("%s waits among %v, and nothing more will happen", clientName(i), one.srv.Children(path))
			}
		}
		err = one.err
		one.mu.Unlock()
		cancel()
		one.gate.Open()
		for _, c := range clients {
			_ = c.Close()
		}
		all.Wait()
	})
	return err
}

// Programs of two and three members in every order of requests, within a bound of switches.
// DOCENT_EXPLORE_LONG=1 plays more. DOCENT_BARRIER_ORDER="program schedule" repeats one order.
func TestExploreOrders(t *testing.T) {
	t.Parallel()
	wanted, schedule, again := strings.Cut(os.Getenv("DOCENT_BARRIER_ORDER"), " ")
	programs := []program{
		{name: "two", entrants: 2, needed: 2, switches: 2, long: 3},
		{name: "twoRounds", entrants: 2, needed: 2, rounds: true, switches: 2, long: 3},
		{name: "twoReplies", entrants: 2, needed: 2, replies: true, switches: 1, long: 2},
		{name: "twoGiveUp", entrants: 2, needed: 2, giveUp: true, switches: 1, long: 2},
		{name: "three", entrants: 3, needed: 2, switches: 0, long: 2},
		{name: "threeRounds", entrants: 3, needed: 2, rounds: true, switches: 0, long: 2},
		{name: "allThree", entrants: 3, needed: 3, switches: 0, long: 1},
	}
	long := os.Getenv("DOCENT_EXPLORE_LONG") == "1"
	if long || again {
		programs = append(programs,
			program{name: "twoFalling", entrants: 2, needed: 2, highest: true, long: 3},
			program{name: "threeGiveUp", entrants: 3, needed: 2, giveUp: true, long: 1})
	}
	if barrier.UnderRace {
		programs = programs[4:5]
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			orders := explore.Orders{Switches: p.switches}
			if long {
				orders.Switches = p.long
			}
			if again {
				if p.name != wanted {
					return
				}
				orders.Replay = schedule
			}
			began := time.Now()
			r, err := orders.Play(func(o *explore.Order) error { return p.run(t, o) })
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				t.Errorf("%v; repeat with DOCENT_BARRIER_ORDER=\"%s %s\"", f, p.name, f.Schedule)
			}
			t.Logf("%d orders of up to %d steps, complete %v, %.1fs", r.Runs, r.Longest, r.Complete, time.Since(began).Seconds())
		})
	}
}
