package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// The same contention on three servers, of which some lag, are cut off from
// the others while clients reach them, or lead no longer.
func TestRWLockStressEnsemble(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				e := zktest.NewEnsemble(t, 3, zktest.WithTick(measuredTick), zktest.WithSeed(seed),
					zktest.WithLatency(50*time.Microsecond, time.Millisecond))
				w := &rwWitness{rig: &rig{T: t, ctx: ctx}, inside: make(map[*rwGrant]struct{})}
				const clients, workers, rounds = 4, 3, 8
				var all sync.WaitGroup
				for i := range clients {
					l := w.rw(rwEnsembleClient(w.rig, e, name(i)))
					for j := range workers {
						rnd := rand.New(rand.NewPCG(seed, uint64(i*workers+j)))
						all.Go(func() { w.worker(rnd, l, rounds) })
					}
				}
				ended := make(chan struct{})
				go func() { all.Wait(); close(ended) }()
				rwUnsettle(rand.New(rand.NewPCG(seed, 1<<32)), e, ended)
				if w.reads < 10 || w.writes < 5 || w.shared == 0 {
					w.Errorf("%d reads, %d shared, %d writes, %d downgraded: hardly anything is tested", w.reads, w.shared, w.writes, w.downgraded)
				}
				time.Sleep(4 * 20 * time.Second)
				left, _, err := rwEnsembleClient(w.rig, e, "last").Children(ctx, dir)
				if len(left) != 0 || err != nil && !errors.Is(err, zk.ErrNoNode) { // the directory may be swept
					w.Errorf("left behind: %v, %v", left, err)
				}
				wantNoGoroutine(t)
			})
		})
	}
}

func rwEnsembleClient(r *rig, e *zktest.Ensemble, name string) *client.Client {
	r.Helper()
	c, err := client.Connect(r.ctx, "zk1:2181,zk2:2181,zk3:2181", client.WithSessionTimeout(20*time.Second),
		client.WithDialer(e.Client(name).DialContext), client.WithLogger(slog.New(slog.DiscardHandler)))
	r.check(err)
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), time.Minute)
		defer cancel()
		_ = c.CloseContext(ctx)
	})
	return c
}

// rwUnsettle lets servers lag, cuts one off, or changes the leader, until
// ended, and then lets them be.
func rwUnsettle(rnd *rand.Rand, e *zktest.Ensemble, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			e.Heal()
			for i := range e.Size() {
				e.Server(i + 1).Lag(0)
			}
			return
		case <-time.After(time.Duration(rnd.IntN(2000)) * time.Millisecond):
		}
		switch i := rnd.IntN(e.Size()) + 1; rnd.IntN(5) {
		case 0:
			e.Isolate(i)
			time.Sleep(time.Duration(rnd.IntN(30_000)) * time.Millisecond)
			e.Heal()
		case 1:
			_ = e.ChangeLeader(i) // if there is a quorum
		default:
			e.Server(i).Lag(time.Duration(rnd.IntN(500)) * time.Millisecond)
		}
	}
}
