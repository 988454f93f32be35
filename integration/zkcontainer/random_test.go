package zkcontainer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// writer appends numbered nodes through a link, and knows which were acknowledged.
type writer struct {
	conn *zk.Conn

	mu    sync.Mutex
	acked []string
}

func (w *writer) write(ctx context.Context, group *sync.WaitGroup) {
	group.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			path := fmt.Sprintf("/w/%06d", n)
			if _, err := w.conn.Create(path, []byte(path), 0, zk.WorldACL(zk.PermAll)); err != nil {
				select {
				case <-time.After(20 * time.Millisecond):
				case <-ctx.Done():
				}
				continue
			}
			w.mu.Lock()
			w.acked = append(w.acked, path)
			w.mu.Unlock()
		}
	})
}

func (w *writer) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.acked)
}

// player plays faults on an ensemble.
type player struct {
	t       *testing.T
	ctx     context.Context
	rand    *rand.Rand
	e       *zkcontainer.Ensemble
	link    *zkcontainer.Link
	down    map[int]bool
	paused  map[int]bool
	apart   map[int]bool
	actions []string
}

func (p *player) step() {
	c := p.e.Members()[p.rand.IntN(len(p.e.Members()))]
	id := c.ID()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	say := func(what string, err error, fails bool) {
		p.t.Helper()
		p.actions = append(p.actions, fmt.Sprintf("%s %d: %v", what, id, err))
		if (err != nil) != fails {
			p.t.Errorf("%s %d: %v; down %v, paused %v, apart %v", what, id, err, p.down, p.paused, p.apart)
		}
	}
	switch p.rand.IntN(16) {
	case 0:
		say("kill", c.Kill(ctx), p.down[id])
		p.down[id], p.paused[id] = true, false
	case 1:
		timeout := time.Duration(p.rand.IntN(3)) * time.Second
		say("stop", c.Stop(ctx, &timeout), false)
		p.down[id], p.paused[id] = true, false
	case 2, 3, 4:
		err := c.Start(ctx)
		say("start", err, p.paused[id])
		if err == nil {
			p.down[id] = false
		}
	case 5:
		err := c.Restart(ctx)
		say("restart", err, false)
		p.down[id], p.paused[id] = false, false
	case 6:
		err := c.Pause(ctx)
		say("pause", err, p.down[id] || p.paused[id])
		p.paused[id] = p.paused[id] || err == nil
	case 7, 8:
		say("unpause", c.Unpause(ctx), false)
		p.paused[id] = false
	case 9:
		say("partition", c.Partition(ctx), false)
		p.apart[id] = true
	case 10, 11:
		say("heal", c.Heal(ctx), false)
		p.apart[id] = false
	case 12:
		f := []func(...*zkcontainer.Container){p.link.Partition, p.link.PartitionReplies, p.link.PartitionRequests, p.link.Refuse, p.link.Cut}
		f[p.rand.IntN(len(f))](c)
		say("link", nil, false)
	case 13:
		p.link.Heal()
		say("link heal", nil, false)
	case 14:
		p.link.Delay(time.Duration(p.rand.IntN(50))*time.Millisecond, c)
		say("delay", nil, false)
	case 15:
		short, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		n, err := p.link.ExpireSession(short)
		p.actions = append(p.actions, fmt.Sprintf("expire: %d %v", n, err))
	}
}

// check looks whether each server is what was done to it.
func (p *player) check(c *zkcontainer.Container) {
	p.t.Helper()
	state := must(c.State(p.ctx))(p.t)
	if state.Running == p.down[c.ID()] || state.Paused != p.paused[c.ID()] {
		p.t.Errorf("server %d: %+v; down %v, paused %v", c.ID(), state.Status, p.down, p.paused)
	}
}

// Random faults on three servers while a client writes: the addresses stay, what was
// acknowledged is there, and each call does what it says or fails.
func TestRandomFaults(t *testing.T) {
	seed, steps := uint64(time.Now().UnixNano()), 12
	if text := os.Getenv("DOCENT_RANDOM_SEED"); text != "" {
		seed = must(strconv.ParseUint(text, 10, 64))(t)
	}
	if text := os.Getenv("DOCENT_RANDOM_STEPS"); text != "" {
		steps = must(strconv.Atoi(text))(t)
	}
	t.Logf("seed %d", seed)
	ctx := limited(t, 10*time.Minute)
	e := zkcontainer.StartEnsemble(t, image(), 3, zkcontainer.WithHost("127.0.0.1"), zkcontainer.WithTickTime(200*time.Millisecond),
		zkcontainer.WithInitData(map[string][]byte{"/w": nil}))
	servers := e.Servers()
	link := must(e.NewLink(ctx))(t)
	w := &writer{}
	w.conn, _ = dial(ctx, t, 4*time.Second, link.Servers()...)
	writing, enough := context.WithCancel(ctx)
	var group sync.WaitGroup
	w.write(writing, &group)
	p := &player{
		t: t, ctx: ctx, rand: rand.New(rand.NewPCG(seed, 1)), e: e, link: link,
		down: map[int]bool{}, paused: map[int]bool{}, apart: map[int]bool{},
	}
	for range steps {
		p.step()
		for _, c := range e.Members() {
			p.check(c)
		}
		select {
		case <-time.After(time.Duration(p.rand.IntN(1500)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	link.Heal()
	link.Delay(0)
	check(t, e.Heal(ctx))
	for _, c := range e.Members() {
		check(t, c.Start(ctx))
	}
	must(e.AwaitServing(ctx))(t)
	before := len(w.all())
	must(zkcontainer.Await(ctx, func(context.Context) (int, error) {
		if len(w.all()) > before {
			return 0, nil
		}
		return 0, errors.New("the client does not write again")
	}))(t)
	enough()
	w.conn.Close()
	group.Wait()
	if now := e.Servers(); !slices.Equal(now, servers) {
		t.Errorf("the addresses are %v and were %v", now, servers)
	}
	for _, c := range e.Members() {
		conn, _ := dial(ctx, t, 4*time.Second, c.Addr())
		must(conn.Sync("/w"))(t)
		names, _, err := conn.Children("/w")
		check(t, err)
		slices.Sort(names)
		for _, path := range w.all() {
			if _, ok := slices.BinarySearch(names, path[3:]); !ok {
				t.Errorf("server %d does not have %s", c.ID(), path)
			}
		}
	}
	t.Logf("%d acknowledged", len(w.all()))
	if t.Failed() {
		for _, a := range p.actions {
			t.Log(a)
		}
	}
}
