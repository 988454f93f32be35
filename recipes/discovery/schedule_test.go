package discovery_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// Random faults, one after the other and at once, of the service, the caller and the servers, while
// the service changes its address and is disabled. After each the instance stands as it was given
// last, and the caller's directory has it. No caller has ever seen a node without valid data, nor an
// address that was never given. At the end nothing is left. DOCENT_DISCOVERY_SEED repeats one
// schedule.
func TestSchedules(t *testing.T) {
	t.Parallel()
	first, last := uint64(1), seeds(t, "DOCENT_DISCOVERY_SEEDS", 40)
	if one := seeds(t, "DOCENT_DISCOVERY_SEED", 0); one != 0 {
		first, last = one, one
	}
	kinds := []struct {
		codec discovery.Codec
		kind  discovery.ServiceType
		id    string
		opts  []nodes.Option
	}{
		{codec: discovery.CuratorMap(), id: "a"},
		{codec: discovery.SpringCloud(), kind: discovery.DynamicSequential},
		{codec: discovery.Serverset()},
		{codec: discovery.Curator(), kind: discovery.Permanent, id: "a"},
		{codec: discovery.Curator(), id: "a", opts: []nodes.Option{nodes.TakeOver()}},
	}
	for seed := first; seed <= last && !t.Failed(); seed++ {
		k := kinds[seed%uint64(len(kinds))]
		bubble(t, k.codec, func(r *rig) {
			r.schedule(seed, discovery.ServiceInstance{Service: "orders", ID: k.id, Type: k.kind}, k.opts)
		}, zktest.WithSeed(seed))
		if t.Failed() {
			t.Logf("repeat with DOCENT_DISCOVERY_SEED=%d", seed)
		}
	}
}

func seeds(t *testing.T, name string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	testrig.Check(t, err)
	return n
}

func (r *rig) schedule(seed uint64, i discovery.ServiceInstance, opts []nodes.Option) {
	random := rand.New(rand.NewPCG(seed, 13))
	own := r.Connect("random", client.WithRand(locked(rand.New(rand.NewPCG(seed, 14)))))
	link := r.Srv.Client("random")
	var mu sync.Mutex
	given := map[string]bool{}
	next := func() {
		i.Address, i.Port = "10.0.0."+strconv.Itoa(random.IntN(1000)), 1+random.IntN(1000)
		mu.Lock()
		defer mu.Unlock()
		given[i.HostPort()] = true
	}
	next()
	g, err := r.services(own, r.own.Codec()).NewRegistration(i, append(opts, nodes.WithLazyStart())...)
	r.Check(err)
	i = g.Instance()
	r.Check(g.Start(r.Ctx))
	s := r.cache(discovery.WithHold(time.Duration(seed%2) * 100 * time.Millisecond))
	go func() { // ends with the directory
		for now := range s.Changes(r.Ctx) {
			mu.Lock()
			for _, one := range now.Instances {
				if !given[one.HostPort()] {
					r.Errorf("nobody gave %v", one)
				}
			}
			for _, one := range now.Skipped {
				r.Errorf("%s is bad: %v", one.Node, one.Err)
			}
			mu.Unlock()
		}
	}()
	for range 10 {
		var did []string
		for range 1 + random.IntN(3) {
			did = append(did, r.fault(random, link))
			ctx := r.Within(time.Duration(random.IntN(2000)) * time.Millisecond)
			switch random.IntN(4) {
			case 0:
				next()
				_ = g.Update(ctx, i) // it is written later
			case 1:
				i.Disabled = true
				_ = g.Disable(ctx)
			case 2:
				i.Disabled = false
				_ = g.Enable(ctx)
			}
			time.Sleep(time.Duration(random.IntN(20_000)) * time.Millisecond)
		}
		link.Heal()
		r.Srv.Client("caller").Heal()
		r.Srv.ClearRules()
		r.Check(g.Wait(r.Within(testrig.SessionTimeout + time.Second)))
		time.Sleep(testrig.SessionTimeout + time.Second) // the caller's
		now := s.Snapshot()
		node := strings.TrimPrefix(g.Status().Path, base+"/orders/")
		want := node + "=" + i.HostPort()
		if i.Disabled {
			want = node + " disabled"
		}
		if got := text(now); got != want || len(r.Srv.Children(base+"/orders")) != 1 {
			r.Fatalf("after faults %v the directory has %s, want %s; nodes %v", did, got, want, r.Srv.Children(base+"/orders"))
		}
	}
	r.Check(g.CloseContext(r.Within(time.Minute)))
	r.WantNoChild(base + "/orders")
	time.Sleep(time.Second) // also of WithHold
	r.want(s, "")
	s.Close()
	r.wantNothingLeft()
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

// fault does one thing of the menu, and returns what.
func (r *rig) fault(random *rand.Rand, link *zktest.ClientLink) string {
	m := zktest.Match{Client: "random", PathPrefix: base, Nth: 1 + random.IntN(3)}
	caller := r.Srv.Client("caller")
	menu := []struct {
		name string
		do   func()
	}{
		{"cut", func() { link.Cut() }},
		{"expire", func() { link.ExpireSession() }},
		{"partition", link.Partition},
		{"partition replies", link.PartitionReplies},
		{"partition requests", link.PartitionRequests},
		{"lose a reply", func() { r.Srv.LoseReply(m) }},
		{"drop", func() { r.Srv.DropBefore(m) }},
		{"an operator deletes", func() {
			for _, child := range r.Srv.Children(base + "/orders") {
				_ = r.Srv.Delete(base + "/orders/" + child) // it may be gone
			}
			if random.IntN(2) == 0 {
				_ = r.Srv.Delete(base + "/orders")
			}
		}},
		{"stop", func() {
			r.Srv.Stop()
			time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
			r.Srv.Resume()
		}},
		{"no auth", func() { r.Srv.Fail(m, zktest.CodeNoAuth) }},
		{"expire with the answer", func() {
			r.Srv.BeforeReply(m, func(_ context.Context, q zktest.Request) { r.Srv.ExpireSession(q.Session) })
		}},
		{"sweep", func() { r.Srv.Sweep() }},
		{"cut the caller", func() { caller.Cut() }},
		{"expire the caller", func() { caller.ExpireSession() }},
		{"partition the caller", caller.Partition},
		{"partition replies of the caller", caller.PartitionReplies},
	}
	one := menu[random.IntN(len(menu))]
	one.do()
	return one.name
}
