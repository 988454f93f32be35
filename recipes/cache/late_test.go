package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// While a writer is faster than a reader, there is a new snapshot at least every second, or
// every three round trips, or the state says Stale. It is never silent. With more schedules
// (DOCENT_CACHE_SEEDS) there are more nodes and trips.
func TestWriterFasterThanReader(t *testing.T) {
	t.Parallel()
	all, trips, long := []int{1, 100}, []time.Duration{50 * time.Millisecond}, 3*time.Second
	if os.Getenv(seedsEnv) != "" {
		all, trips, long = append(all, 2000), append(trips, 10*time.Millisecond, 100*time.Millisecond, 500*time.Millisecond), 10*time.Second
	}
	for _, nodes := range all {
		for _, trip := range trips {
			for name, opts := range map[string][]cache.Option{"persistent": nil, "one-shot": {cache.WithOneShotWatches()}} {
				t.Run(fmt.Sprint(nodes, " nodes, ", trip, ", ", name), func(t *testing.T) {
					t.Parallel()
					bubble(t, func(r *rig) { r.outrun(nodes, trip, long, opts) }, zktest.WithLatency(trip/2, trip/2))
				})
			}
		}
	}
}

func (r *rig) outrun(nodes int, trip, watched time.Duration, opts []cache.Option) {
	const every = time.Second / 2000
	r.Check(r.Srv.Create("/app", nil))
	for i := range nodes {
		r.Check(r.Srv.Create("/app/n"+strconv.Itoa(i), nil))
	}
	tree := (*cache.Tree[string])(nil)
	if len(opts) > 0 { // one-shot watches have no first snapshot under such a load
		tree = r.tree("/app", opts...)
	}
	ctx, stop := context.WithCancel(r.Ctx)
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			r.Check(r.Srv.SetData("/app/n"+strconv.Itoa(i*7919%nodes), []byte(strconv.Itoa(i))))
			time.Sleep(every)
		}
	})
	if tree == nil {
		tree = r.tree("/app", opts...)
	}
	silent := max(time.Second, 3*trip) + 2*trip // to hear of a change, and of the snapshot
	last, since, fresh := int64(0), time.Now(), 0
	for begun := time.Now(); time.Since(begun) < watched; time.Sleep(time.Millisecond) {
		zxid, state := tree.Snapshot().Zxid(), tree.State()
		if zxid != last {
			last, since, fresh = zxid, time.Now(), fresh+1
		}
		if quiet := time.Since(since); quiet > silent && state.Phase == cache.Synced {
			r.Fatalf("%v without a snapshot, and the state is %v", quiet, state)
		} else if state.Phase == cache.Stale && !strings.Contains(state.Err.Error(), "cache: the nodes change faster than the cache can read them, or the server is slow") {
			r.Errorf("%v", state)
		}
	}
	stop()
	writer.Wait()
	r.Logf("%d snapshots", fresh)
	if len(opts) == 0 && time.Duration(fresh)*2*trip < watched/2 {
		r.Errorf("%d snapshots in %v, although each round can show all nodes", fresh, watched)
	}
	time.Sleep(5 * time.Second)
	if !tree.Synced() || tree.Snapshot().Zxid() < last {
		r.Errorf("%v at %#x after the last write", tree.State(), tree.Snapshot().Zxid())
	}
	_, err := r.w.Set(r.Ctx, "/app", nil, client.AnyVersion)
	r.Check(err)
	r.now(tree)
}

// A loose tree shows every change soon, also where no snapshot can be proved. It shows each node
// as it was, and no node goes back.
func TestLooseTree(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]cache.Option{"persistent": nil, "one-shot": {cache.WithOneShotWatches()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) { r.loosely(opts) }, zktest.WithLatency(looseTrip/2, looseTrip/2))
		})
	}
}

const looseTrip = 100 * time.Millisecond

func (r *rig) loosely(opts []cache.Option) {
	const nodes, every = 100, time.Millisecond
	r.Check(r.Srv.Create("/app", nil))
	for i := range nodes {
		r.Check(r.Srv.Create("/app/n"+strconv.Itoa(i), []byte("0")))
	}
	ctx, stop := context.WithCancel(r.Ctx)
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 1; ctx.Err() == nil; i++ {
			r.Check(r.Srv.SetData("/app/n"+strconv.Itoa(i*7919%nodes), []byte(strconv.Itoa(i))))
			time.Sleep(every)
		}
	})
	tree, err := cache.NewLooseTree(r.c, "/app", cache.Text, opts...)
	r.Check(err)
	r.Check(tree.Start(r.Within(time.Minute)))
	defer tree.Close()
	last := map[string]int64{}
	newest, since := int64(0), time.Now()
	for begun := time.Now(); time.Since(begun) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
		for path, n := range tree.Snapshot().All() {
			if n.Mzxid < last[path] {
				r.Fatalf("%s went back", path)
			}
			last[path] = n.Mzxid
			if n.Mzxid > newest {
				newest, since = n.Mzxid, time.Now()
			}
		}
		if !tree.Synced() || time.Since(since) > 4*looseTrip {
			r.Fatalf("%v, and nothing new for %v", tree.State(), time.Since(since))
		}
	}
	stop()
	writer.Wait()
	s, err := tree.Wait(r.Within(time.Minute), r.Srv.Zxid())
	r.Check(err)
	for _, n := range r.Srv.Tree() {
		if got, there := s.Get(n.Path); strings.HasPrefix(n.Path, "/app") && (!there || got.Value != string(n.Data)) {
			r.Errorf("%s is %q, want %q", n.Path, got.Value, n.Data)
		}
	}
}

// A Wait of a loose tree ends under a load.
func TestLooseWait(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.Check(r.Srv.Create("/app", nil))
		for i := range 100 {
			r.Check(r.Srv.Create("/app/n"+strconv.Itoa(i), nil))
		}
		tree, err := cache.NewLooseTree(r.c, "/app", cache.Text, opts...)
		r.Check(err)
		r.Check(tree.Start(r.Ctx))
		random := rand.New(rand.NewPCG(1, 2))
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_ = r.Srv.SetData("/app/n"+strconv.Itoa(random.IntN(100)), []byte(strconv.Itoa(i)))
				time.Sleep(200 * time.Microsecond)
			}
		}()
		time.Sleep(time.Second)
		_, err = tree.Wait(r.Within(20*time.Second), r.Srv.Zxid())
		if err != nil {
			r.Errorf("%v; %v at %#x of %#x", err, tree.State(), tree.Snapshot().Zxid(), r.Srv.Zxid())
		}
		close(stop)
		<-done
		tree.Close()
	})
}
