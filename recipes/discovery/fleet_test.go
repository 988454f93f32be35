package discovery_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// Several services register, update, disable and end instances, also with contexts that have ended,
// under one set of IDs, while operators edit and delete and sessions break. When all is calm each open
// registration has its one node as it was given last, and no other node is there.
func TestFleet(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, "DOCENT_DISCOVERY_SEEDS", 40) {
		codec := []discovery.Codec{discovery.CuratorMap(), discovery.SpringCloud()}[seed%2]
		bubble(t, codec, func(r *rig) { r.fleet(rand.New(rand.NewPCG(seed, 32))) }, zktest.WithSeed(seed+1))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// ship is an instance of one client.
type ship struct {
	id     string
	link   *zktest.ClientLink
	d      *discovery.ServiceDiscovery
	g      *discovery.Registration // nil if it is closed
	i      discovery.ServiceInstance
	edited bool // by an operator; the node may say either
}

func (r *rig) fleet(random *rand.Rand) {
	var ships []*ship
	for n := range 4 {
		name := fmt.Sprint("ship", n)
		c := r.Connect(name, client.WithRand(locked(rand.New(rand.NewPCG(random.Uint64(), 1)))))
		ships = append(ships, &ship{id: string('a' + rune(n)), link: r.Srv.Client(name), d: r.services(c, r.own.Codec())})
	}
	s := r.cache(discovery.WithHold(50 * time.Millisecond))
	short := func() context.Context {
		if random.IntN(3) == 0 {
			ctx, cancel := context.WithCancel(r.Ctx)
			cancel()
			return ctx
		}
		return r.Within(time.Duration(random.IntN(3000)) * time.Millisecond)
	}
	for range 12 {
		for range 1 + random.IntN(5) {
			one := ships[random.IntN(len(ships))]
			switch k := random.IntN(13); {
			case one.g == nil && k < 8:
				one.i = discovery.ServiceInstance{Service: "orders", ID: one.id, Address: "10.0.0." + one.id, Port: 1 + random.IntN(99), Zone: "z"}
				opts := []nodes.Option{nodes.WithLazyStart()}
				if random.IntN(2) == 0 {
					opts = append(opts, nodes.TakeOver())
				}
				g, err := one.d.NewRegistration(one.i, opts...)
				r.Check(err)
				one.edited = false
				if g.Start(r.Ctx) == nil {
					one.g, one.i = g, g.Instance()
				}
			case one.g != nil && k < 2:
				one.i.Port = 1 + random.IntN(99)
				_ = one.g.Update(short(), one.i)
				one.edited = false
			case one.g != nil && k < 4:
				one.i.Disabled = k == 3
				if one.i.Disabled {
					_ = one.g.Disable(short())
				} else {
					_ = one.g.Enable(short())
				}
				one.edited = false
			case one.g != nil && k < 5:
				_ = one.g.CloseContext(short())
				one.g = nil
			case k < 7:
				off := random.IntN(2) == 0
				_ = r.other.Edit(short(), "orders", one.id, func(i *discovery.ServiceInstance) error { i.Disabled = off; return nil })
				one.edited = true // or not
			case k < 8:
				_ = r.Srv.Delete(base + "/orders/" + one.id) // it may be gone
			case k < 9:
				one.link.ExpireSession()
			case k < 10:
				one.link.Cut()
			case k < 11:
				one.link.Partition()
			case k < 12:
				r.Srv.LoseReply(zktest.Match{PathPrefix: base, Nth: 1 + random.IntN(2)})
			default:
				r.Srv.Stop()
				time.Sleep(time.Duration(random.IntN(9000)) * time.Millisecond)
				r.Srv.Resume()
			}
			time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
		}
		for _, one := range ships {
			one.link.Heal()
		}
		r.Srv.ClearRules()
		time.Sleep(3 * testrig.SessionTimeout)
		now, err := s.Wait(r.Within(time.Minute), r.Srv.Zxid())
		r.Check(err)
		var want, got []string
		for _, one := range ships {
			if one.g != nil {
				r.Check(one.g.Wait(r.Within(time.Minute)))
				want = append(want, fmt.Sprint(one.id, one.i.HostPort(), one.i.Zone, one.i.Disabled && !one.edited))
			}
		}
		for _, i := range slices.Concat(now.Instances, now.Disabled) {
			edited := slices.ContainsFunc(ships, func(one *ship) bool { return one.id == i.Node && one.edited })
			got = append(got, fmt.Sprint(i.Node, i.HostPort(), i.Zone, i.Disabled && !edited))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || len(now.Skipped) > 0 {
			r.Fatalf("the directory has %s, want %s; skipped %v", strings.Join(got, " "), strings.Join(want, " "), now.Skipped)
		}
	}
	for _, one := range ships {
		if one.g != nil {
			r.Check(one.g.CloseContext(r.Within(time.Minute)))
		}
	}
	r.WantNoChild(base + "/orders")
	s.Close()
	r.wantNothingLeft()
}
