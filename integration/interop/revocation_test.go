package interop_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/recipes"
)

const (
	// holdOut is how long a holder waits for a request to release the lock.
	holdOut = 3 * time.Second
	// hearing is how long it may take until a holder hears that it was asked.
	hearing = 2 * time.Second
)

// revocations are the requests to release, each from one side to another.
type revocations struct {
	mu       sync.Mutex // guards the rest
	asking   map[string]side
	asked    map[string]time.Time // when a request had been written
	heard    map[[2]side]int      // by the side that asks and the side that holds
	unheard  map[side]int
	mistaken int // Curators that heard of a request to another holder
	faults   []string
}

// ask writes a request for a node by ask, unless there is one: a holder that was
// deaf to the first would hear a second.
func (r *revocations) ask(node string, by side, ask func() error) error {
	r.mu.Lock()
	_, asked := r.asked[node]
	if !asked {
		r.asking[node] = by
	}
	r.mu.Unlock()
	if asked {
		return nil
	}
	if err := ask(); err != nil {
		return err // it may have been written all the same
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[node] = time.Now()
	return nil
}

// over records what a holder has heard. sure says that its session was not killed.
func (r *revocations) over(node string, holder side, heard, sure bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	by, asking := r.asking[node]
	at, asked := r.asked[node]
	switch {
	case heard && !asking && holder != docent:
		// Curator's listener may be called in the next acquire of the same thread.
		r.mistaken++
	case heard && !asking:
		r.faults = append(r.faults, fmt.Sprintf("%s was asked for %s, and no client did", holder, node))
	case heard:
		r.heard[[2]side{by, holder}]++
	case sure && asked && time.Since(at) > hearing:
		// Curator ignores what was written before it first looked at its node.
		r.unheard[holder]++
		if holder == docent {
			r.faults = append(r.faults, fmt.Sprintf("no holder heard that %s asked for %s", by, node))
		}
	}
}

// revocationLoad lets holders keep a mutex until they are asked for it, in Curator's
// protocol, by either side.
func revocationLoad(ctx context.Context, t *testing.T, a *arena) {
	r := &revocations{
		asking: map[string]side{}, asked: map[string]time.Time{},
		heard: map[[2]side]int{}, unheard: map[side]int{},
	}
	ours, err := natives(a.docents(ctx, t, 2), func(p *party) (acquirer, error) {
		m, err := recipes.NewInterProcessMutex(p.client, a.path)
		return docentRevocable(m, r), err
	})
	check(t, err)
	revocable := curatorLock("m", "revocable", a.path)
	revocable.perThread = true // Curator's listener belongs to the mutex, not to the thread
	theirs, err := revocable.contenders(ctx, a.curators(ctx, t, 2))
	check(t, err)
	for _, c := range theirs {
		curatorRevocable(c, r)
	}
	a.fewest = 5 // they hold for long
	asking, stop := context.WithCancel(ctx)
	var askers sync.WaitGroup
	for _, p := range []*party{a.parties[0], a.parties[2]} {
		askers.Go(func() { a.asker(asking, t, p, r) })
	}
	a.run(ctx, t, append(ours, theirs...))
	stop()
	askers.Wait()
	t.Logf("asked and heard: %v, asked and not heard: %v, Curator mistaken: %d", r.heard, r.unheard, r.mistaken)
	for _, f := range r.faults {
		t.Error(f)
	}
	for _, by := range []side{docent, curator} {
		for _, holder := range []side{docent, curator} {
			if n := r.heard[[2]side{by, holder}]; n < least(10) {
				t.Errorf("%s heard %s %d times", holder, by, n)
			}
		}
	}
}

func docentRevocable(m *recipes.InterProcessMutex, r *revocations) acquirer {
	return func(ctx context.Context, patience time.Duration) (*grant, error) {
		h, err := patient(ctx, m, patience)
		if err != nil {
			return nil, err
		}
		g := granted(h, claim{lock: "m", nodes: []string{h.Path()}, token: h.FencingToken()})
		g.during = func(context.Context) {
			called := make(chan struct{})
			defer h.OnRevoke(func() { close(called) })()
			limit := time.NewTimer(holdOut)
			defer limit.Stop()
			heard := true
			select {
			case <-h.Revoked():
				<-called
			case <-h.Context().Done():
				heard = false
			case <-limit.C:
				heard = false
			}
			r.over(h.Path(), docent, heard, h.Err() == nil)
		}
		return g, nil
	}
}

func curatorRevocable(c *contender, r *revocations) {
	th, name, acquire := c.party.peer.Thread(c.who), c.who+"-m", c.acquire
	c.acquire = func(ctx context.Context, patience time.Duration) (*grant, error) {
		g, err := acquire(ctx, patience)
		if err != nil {
			return nil, err
		}
		epoch, calm := c.party.at()
		g.during = func(ctx context.Context) {
			err := th.Revoked(ctx, name, holdOut)
			if err == nil || errors.Is(err, peers.ErrTimeUp) {
				r.over(g.claims[0].nodes[0], curator, err == nil, c.party.calmSince(epoch, calm))
			}
		}
		return g, nil
	}
}

// asker asks for the lock again and again, the holder or a waiter.
func (a *arena) asker(ctx context.Context, t *testing.T, p *party, r *revocations) {
	t.Helper()
	from := a.parties[0].client
	if p.side == docent {
		from = p.client
	}
	look, err := recipes.NewInterProcessMutex(from, a.path)
	check(t, err)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rand.N(20 * time.Millisecond)):
		}
		line, err := look.Queue(ctx)
		if err != nil || len(line) == 0 {
			continue // its session is being killed
		}
		whom := line[0]
		if rand.N(4) == 0 {
			whom = line[rand.N(len(line))]
		}
		_ = r.ask(whom.Path, p.side, func() error { // again if it failed
			if p.side == docent {
				return look.RequestRelease(ctx, whom)
			}
			return p.peer.Thread("asker").Revoke(ctx, p.name, whom.Path)
		})
	}
}

// TestRevocationData compares what a request to release writes, on a node whose
// owner does not answer. On the node of a Docent holder that has heard, the data
// stands again with the request behind it.
func TestRevocationData(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t))
	ours, java := a.docents(ctx, t, 1)[0], a.curators(ctx, t, 1)[0]
	m, err := recipes.NewInterProcessMutex(ours.client, a.path, recipes.WithNodeData([]byte("mine")))
	check(t, err)
	h, err := m.Acquire(ctx)
	check(t, err)
	line, err := m.Queue(ctx)
	check(t, err)
	asks := []func(of recipes.Contender) error{
		func(of recipes.Contender) error { return java.peer.Thread("t").Revoke(ctx, java.name, of.Path) },
		func(of recipes.Contender) error { return m.RequestRelease(ctx, of) },
	}
	deaf, err := a.raw.Create(a.path+"/_c_0c708091-6d54-4320-8594-f6fdb71d5f95-lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	check(t, err)
	for i, ask := range asks {
		check(t, ask(recipes.Contender{Path: deaf}))
		data, stat, err := a.raw.Get(deaf)
		if err != nil || string(data) != "__REVOKE__" || int(stat.Version) != i+1 {
			t.Errorf("request %d wrote %q, version %d: %v", i, data, stat.Version, err)
		}
		check(t, ask(line[0]))
		for answered := false; !answered; {
			data, stat, err = a.raw.Get(h.Path())
			check(t, errors.Join(err, ctx.Err()))
			answered = string(data) == "mine __REVOKE__" && int(stat.Version) == 2*(i+1)
		}
	}
	check(t, a.raw.Delete(deaf, -1))
	check(t, h.Release(ctx))
	for _, ask := range asks { // a node that is gone is no error to either
		check(t, ask(line[0]))
	}
}
