package nodes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// Random faults, one after the other and at once. After each the node stands again
// within one session timeout and two round trips, with the newest data, and once.
// At the end nothing is left. DOCENT_NODES_SEED repeats one schedule.
func TestSchedules(t *testing.T) {
	t.Parallel()
	first, last := uint64(1), number(t, "DOCENT_NODES_SEEDS", 35)
	if one := number(t, "DOCENT_NODES_SEED", 0); one != 0 {
		first, last = one, one
	}
	all := modes()
	for seed := first; seed <= last && !t.Failed(); seed++ {
		tt := all[seed%uint64(len(all))]
		bubble(t, func(r *rig) { r.schedule(seed, tt.mode, tt.opts) }, zktest.WithSeed(seed))
		if t.Failed() {
			t.Logf("repeat with DOCENT_NODES_SEED=%d", seed)
		}
	}
}

func (r *rig) schedule(seed uint64, mode nodes.Mode, opts []nodes.Option) {
	random := rand.New(rand.NewPCG(seed, 13))
	c := r.Connect("a", client.WithRand(locked(rand.New(rand.NewPCG(seed, 14)))))
	link := r.Srv.Client("a")
	n := r.started(c, mode, opts...)
	data := "one"
	for range 12 {
		var did []string
		for range 1 + random.IntN(2) {
			fault := random.IntN(12)
			did = append(did, strconv.Itoa(fault))
			r.fault(fault, random, link)
			if random.IntN(3) == 0 {
				data = fmt.Sprint("data ", random.IntN(1000))
				_ = n.Set(r.Within(time.Duration(random.IntN(2000))*time.Millisecond), []byte(data))
			}
			time.Sleep(time.Duration(random.IntN(20_000)) * time.Millisecond)
		}
		link.Heal()
		r.Srv.ClearRules()
		// Whatever the client has still to hear of: one session timeout, two round trips.
		time.Sleep(testrig.SessionTimeout + 4*time.Millisecond)
		status, all := n.Status(), r.Srv.Children("/workers")
		at := strings.TrimPrefix(status.Path, "/workers/")
		if status.State != nodes.Ours || !slices.Contains(all, at) {
			r.Fatalf("%v after faults %v: %+v, nodes %v", mode, did, status, all)
		}
		if got, stat := r.data(status.Path); got != data || stat.Czxid != status.Czxid || len(all) != 1 {
			r.Fatalf("%v after faults %v: nodes %v with %q, want %q at %+v", mode, did, all, got, data, status)
		}
	}
	r.closed(n)
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

// fault does one thing of the menu.
func (r *rig) fault(which int, random *rand.Rand, link *zktest.ClientLink) {
	m := zktest.Match{Client: "a", PathPrefix: "/workers", Nth: 1 + random.IntN(3)}
	switch which {
	case 0:
		link.Cut()
	case 1:
		link.ExpireSession()
	case 2:
		link.Partition()
	case 3:
		link.PartitionReplies()
	case 4:
		link.PartitionRequests()
	case 5:
		r.Srv.LoseReply(m)
	case 6:
		r.Srv.DropBefore(m)
	case 7: // an operator deletes whatever stands
		for _, child := range r.Srv.Children("/workers") {
			_ = r.Srv.Delete("/workers/" + child)
		}
		if random.IntN(2) == 0 {
			_ = r.Srv.Delete("/workers")
		}
	case 8:
		r.Srv.Stop()
		time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
		r.Srv.Resume()
	case 9:
		r.Srv.Fail(m, zktest.CodeNoAuth)
	case 10:
		r.Srv.BeforeReply(m, func(_ context.Context, q zktest.Request) { r.Srv.ExpireSession(q.Session) })
	case 11:
		r.Srv.Sweep()
	}
}
