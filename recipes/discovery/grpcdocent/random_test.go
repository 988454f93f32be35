package grpcdocent_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/grpcdocent"
	"github.com/docent-go/docent/zktest"
)

// Many clients of one builder come and go, several at a moment, while instances do and the
// connection breaks. When all is calm each open client has the list; a closed one hears nothing;
// after the builder is closed nothing is left.
func TestRandomClients(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		bubble(t, func(r *rig) { r.clients(rand.New(rand.NewPCG(seed, 34))) }, zktest.WithSeed(seed+1))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// one is a client of the test.
type one struct {
	*seen
	res  resolver.Resolver
	last string
}

// look takes the reports since the last look.
func (c *one) look() string {
	if all := c.take(); strings.Contains(all, "[") {
		c.last = all[strings.LastIndex(all, "["):]
		c.last = c.last[:strings.Index(c.last, "]")+1]
	}
	return c.last
}

func (r *rig) clients(random *rand.Rand) {
	b, err := grpcdocent.NewBuilder(r.d, grpcdocent.WithLinger(time.Duration(random.IntN(3))*10*time.Second))
	r.Check(err)
	var open []*one
	regs := map[string]*discovery.Registration{}
	link := r.Srv.Client("reader")
	build := func() *one {
		c := &one{seen: &seen{}}
		var err error
		c.res, err = b.Build(targetOf(r, "zk:///orders"), c.seen, resolver.BuildOptions{})
		r.Check(err)
		return c
	}
	for range 40 {
		id := string('a' + rune(random.IntN(4)))
		switch k := random.IntN(12); {
		case k < 3:
			var mu sync.Mutex
			var all sync.WaitGroup
			for range 1 + random.IntN(4) {
				all.Go(func() {
					c := build()
					mu.Lock()
					defer mu.Unlock()
					open = append(open, c)
				})
			}
			all.Wait()
		case k < 6 && len(open) > 0:
			n := 1 + random.IntN(len(open))
			var all sync.WaitGroup
			for _, c := range open[:n] {
				all.Go(func() {
					c.res.ResolveNow(resolver.ResolveNowOptions{})
					c.res.Close()
					c.take()
				})
			}
			all.Wait()
			r.Cleanup(func(closed []*one) func() {
				return func() {
					for _, c := range closed {
						if got := c.take(); got != "" {
							r.Errorf("after Close: %q", got)
						}
					}
				}
			}(slices.Clone(open[:n])))
			open = open[n:]
		case k < 8 && regs[id] == nil:
			regs[id] = r.at(id)
		case k < 9 && regs[id] != nil:
			r.Check(regs[id].Close())
			regs[id] = nil
		case k < 10:
			link.Cut()
		case k < 11:
			link.ExpireSession()
		default:
			link.Partition()
			time.Sleep(time.Duration(random.IntN(40)) * time.Second)
			link.Heal()
		}
		time.Sleep(time.Duration(random.IntN(9000)) * time.Millisecond)
		if random.IntN(4) == 0 {
			time.Sleep(2 * testrig.SessionTimeout)
			want := []string{}
			for id, g := range regs {
				if g != nil {
					want = append(want, id+":80")
				}
			}
			slices.Sort(want)
			for _, c := range open {
				got := c.look()
				if got == "" && len(want) == 0 { // an error says why its first list is empty
					continue
				}
				if got != "["+strings.Join(want, " ")+"]" {
					r.Errorf("a client has %q, want %v", got, want)
				}
			}
		}
	}
	if random.IntN(2) == 0 {
		b.Close()
	} else {
		defer b.Close()
	}
	for _, c := range open {
		c.res.Close()
	}
	b.Close()
	testrig.WantNoGoroutine(r.T, ourFrames)
}
