package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// The same on three servers, of which some lag, are cut off from the others
// while clients reach them, or lead no longer: whoever is first in the queue
// sees the leases of all who were before.
func TestSemaphoreStressEnsemble(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				e := zktest.NewEnsemble(t, 3, zktest.WithTick(measuredTick), zktest.WithSeed(seed),
					zktest.WithLatency(50*time.Microsecond, time.Millisecond))
				r := &rig{T: t, ctx: ctx}
				in := believers{all: map[*recipes.Lease]int64{}}
				const clients, workers, rounds, most = 4, 2, 5, 4
				var all sync.WaitGroup
				for i := range clients {
					s := r.semaphore(rwEnsembleClient(r, e, name(i)), most)
					for j := range workers {
						rnd := rand.New(rand.NewPCG(seed, uint64(i*workers+j)))
						all.Go(func() { in.worker(r, s, rnd, rounds, most, func() int { return 0 }) })
					}
				}
				ended := make(chan struct{})
				go func() { all.Wait(); close(ended) }()
				rwUnsettle(rand.New(rand.NewPCG(seed, 1<<32)), e, ended)
				time.Sleep(4 * 20 * time.Second)
				last := rwEnsembleClient(r, e, "last")
				for _, dir := range []string{poolQueue, poolLeases} {
					left, _, err := last.Children(ctx, dir)
					if len(left) != 0 || err != nil && !errors.Is(err, zk.ErrNoNode) { // the directory may be swept
						r.Errorf("left in %s: %v, %v", dir, left, err)
					}
				}
				wantNoGoroutine(t)
			})
		})
	}
}
