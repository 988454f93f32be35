package discovery_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/zktest"
)

// Callers pick, and tell of their calls late, twice or never, from before Start until after Close,
// while instances come and go. Nobody gets an instance that is excepted, nor, when all is calm, one that
// is not in the directory. After Close nothing is picked, and nothing is left.
func TestRandomProviders(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, "DOCENT_DISCOVERY_SEEDS", 40) {
		inMarket(t, func(m *market) {
			random := rand.New(rand.NewPCG(seed, 33))
			var mu sync.Mutex
			n := func(k int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(k)
			}
			opts := []discovery.ProviderOption{discovery.WithStrategy(discovery.Strategy(n(3))), discovery.WithPanicThreshold([]float64{0, .5, 1}[n(3)])}
			if n(2) == 0 {
				opts = append(opts, discovery.WithSticky())
			}
			if n(2) == 0 {
				opts = append(opts, discovery.WithZone("x"))
			}
			keep := time.Duration(n(2)*20) * time.Second
			opts = append(opts, discovery.WithLastKnown(keep))
			if n(2) == 0 {
				opts = append(opts, discovery.WithFilter(func(i *discovery.ServiceInstance) bool { return i.ID != "c" }))
			}
			p, err := m.d.Provider("orders", opts...)
			m.Check(err)
			var wg sync.WaitGroup
			stop := make(chan struct{})
			for range 3 {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						ctx, cancel := context.WithTimeout(m.Ctx, time.Duration(1+n(3000))*time.Millisecond)
						var ex []string
						for range n(3) {
							ex = append(ex, string('a'+rune(n(5))))
						}
						call, err := p.Pick(ctx, ex...)
						cancel()
						if err == nil {
							if slices.Contains(ex, call.Instance.Node) {
								m.Errorf("excepted %s", call.Instance)
							}
							time.Sleep(time.Duration(n(2000)) * time.Millisecond)
							switch n(6) {
							case 0:
								call.Done(errBroken)
								call.Done(nil)
							case 1:
								call.Done(context.Canceled)
							case 2:
							case 3:
								go func() {
									time.Sleep(time.Minute)
									call.Done(errBroken)
								}()
							default:
								call.Done(nil)
							}
						}
						time.Sleep(time.Duration(1+n(500)) * time.Millisecond)
					}
				})
			}
			time.Sleep(time.Second)
			m.Check(p.Start(m.Ctx))
			regs := map[string]*discovery.Registration{}
			for range 60 {
				id := string('a' + rune(n(5)))
				switch k := n(10); {
				case k < 4:
					if regs[id] == nil {
						regs[id] = m.register(id, []string{"x", "y"}[n(2)])
					}
				case k < 6:
					if regs[id] != nil {
						m.Check(regs[id].Close())
						regs[id] = nil
					}
				case k < 7:
					if regs[id] != nil {
						if n(2) == 0 {
							m.Check(regs[id].Disable(m.Ctx))
						} else {
							m.Check(regs[id].Enable(m.Ctx))
						}
					}
				case k < 8:
					m.Srv.Client("reader").Cut()
				case k < 9:
					m.Srv.Client("reader").ExpireSession()
				}
				time.Sleep(time.Duration(n(8000)) * time.Millisecond)
			}
			m.see(p)
			time.Sleep(30 * time.Second)
			var want []string
			for _, i := range p.Cache().Snapshot().Instances {
				want = append(want, i.Node)
			}
			var got []string
			for range 200 {
				call, err := p.Pick(m.Ctx)
				if err != nil {
					break
				}
				if !slices.Contains(got, call.Instance.Node) {
					got = append(got, call.Instance.Node)
				}
				call.Done(nil)
				time.Sleep(2 * time.Second)
			}
			for _, g := range got {
				if !slices.Contains(want, g) {
					m.Errorf("picked %v of %v", got, want)
				}
			}
			if n(2) == 0 {
				p.Close()
				close(stop)
			} else {
				close(stop)
				time.Sleep(5 * time.Second)
				p.Close()
			}
			wg.Wait()
			if _, err := p.Pick(m.Ctx); err == nil {
				m.Error("picked after Close")
			}
			for _, g := range regs {
				if g != nil {
					_ = g.Close()
				}
			}
			time.Sleep(2 * time.Minute)
			testrig.WantNoGoroutine(m.T, ourFrames)
		}, zktest.WithSeed(seed+1))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
