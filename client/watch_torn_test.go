package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// Readers of all kinds share the watches of one node: some give up their reads, some stop
// their watches, some connections are lost, and persistent watches come and go. None misses
// the last change, and nothing is left.
func TestWatchTorn(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		for _, v := range []zktest.Version{zktest.ZooKeeper380, zktest.ZooKeeper39} {
			t.Run(fmt.Sprint(v, " ", seed), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) { tear(r, rand.New(rand.NewPCG(seed, 1))) }, zktest.WithVersion(v), zktest.WithSeed(seed),
					zktest.WithLatency(50*time.Microsecond, 2*time.Millisecond))
			})
		}
	}
}

func tear(r *rig, rng *rand.Rand) {
	const last, readers = 60, 9
	r.create("/a", "0")
	c := r.Connect("a")
	for _, op := range []zktest.Op{zktest.OpGetData, zktest.OpExists, zktest.OpAddWatch, zktest.OpRemoveWatches} {
		m := zktest.Match{Op: op, Path: "/a", Prob: 0.03}
		r.Srv.DropAfter(m)
		r.Srv.DropBefore(m)
		r.Srv.DelayReply(m, 20*time.Millisecond)
		r.Srv.Delay(m, 10*time.Millisecond)
	}
	var wg sync.WaitGroup
	for i := range readers {
		own := rand.New(rand.NewPCG(rng.Uint64(), uint64(i)))
		wg.Go(func() { followTorn(r, c, own, i, last) })
	}
	for v := 1; v <= last; v++ {
		time.Sleep(time.Duration(rng.IntN(30_000)) * time.Microsecond)
		r.Check(r.Srv.SetData("/a", []byte(strconv.Itoa(v))))
	}
	wg.Wait()
	r.wantNoWatches(c)
}

func followTorn(r *rig, c *client.Client, rng *rand.Rand, i, last int) {
	for {
		switch i % 3 {
		case 1:
			time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond)
		case 2:
			if rng.IntN(4) == 0 {
				persist(r, c, rng, last)
			}
		}
		// The last read leaves no watch, and so hides none that a read before it has left.
		_, stat, err := c.Get(r.Ctx, "/a")
		if r.Check(err); int(stat.Version) == last {
			return
		}
		ctx, cancel := context.WithTimeout(r.Ctx, time.Duration(1+rng.IntN(40))*time.Millisecond)
		v, w, err := readTorn(ctx, c, i)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		r.Check(err)
		if v == last || rng.IntN(4) == 0 {
			w.Stop()
			continue
		}
		select {
		case <-w.Done():
		case <-time.After(10 * time.Minute):
			r.Errorf("reader %d read %d, and was not woken", i, v)
			return
		}
	}
}

// readTorn reads the version of /a in one of two ways, and leaves a watch.
func readTorn(ctx context.Context, c *client.Client, i int) (v int, w *client.OneShotWatch, err error) {
	var stat *zk.Stat
	if i%2 == 0 {
		_, stat, w, err = c.GetW(ctx, "/a")
	} else {
		_, stat, w, err = c.ExistsW(ctx, "/a")
	}
	if err != nil {
		return 0, nil, err
	}
	return int(stat.Version), w, nil
}

// persist has a persistent watch there until that tells of a change.
func persist(r *rig, c *client.Client, rng *rand.Rand, last int) {
	ctx, cancel := context.WithCancel(r.Ctx)
	defer cancel()
	impatient := time.AfterFunc(time.Duration(1+rng.IntN(100))*time.Millisecond, cancel)
	w, err := c.Watch(ctx, "/a")
	if !impatient.Stop() {
		return
	}
	r.Check(err)
	defer w.Close()
	for {
		_, stat, err := c.Get(r.Ctx, "/a")
		if r.Check(err); int(stat.Version) == last || rng.IntN(3) == 0 {
			return
		}
		change, err := w.Next(r.Within(10 * time.Minute))
		if err != nil {
			r.Errorf("a persistent watch was set, and told nothing: %v, %v", change, err)
			return
		}
	}
}
