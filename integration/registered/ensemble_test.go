// Package registered_test keeps nodes registered on a real ensemble of three.
package registered_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/recipes/nodes"
)

const (
	tick           = 500 * time.Millisecond
	sessionTimeout = 4 * time.Second
	// Two round trips, on a machine that has other things to do.
	roundTrips = 2 * time.Second
	behind     = "/behind" // a node that raw writes, see behindAll
)

// worker is a client with its node.
type worker struct {
	name string
	c    *client.Client
	node *nodes.PersistentNode
}

// world is an ensemble with workers.
type world struct {
	*testing.T
	ctx     context.Context
	e       *harness.Ensemble
	raw     *zk.Conn
	workers []*worker
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// register makes a worker whose client knows these servers.
func (w *world) register(name, servers string, opts ...nodes.Option) *worker {
	w.Helper()
	c, err := client.Connect(w.ctx, servers, client.WithSessionTimeout(sessionTimeout),
		client.WithConnectTimeout(time.Minute), client.WithLogger(slog.New(slog.DiscardHandler)))
	w.check(err)
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), sessionTimeout)
		defer cancel()
		_ = c.CloseContext(ctx) // its server may be gone
	})
	n, err := nodes.NewPersistentNode(c, nodes.Ephemeral, "/workers/"+name, []byte("0"), opts...)
	w.check(err)
	w.check(n.Start(w.ctx))
	v := &worker{name, c, n}
	w.workers = append(w.workers, v)
	return v
}

// TestEnsemble: two workers, one at a follower that is cut off until the session is
// over, and one with all servers, whose leader is killed. After each fault each stands
// again within a session timeout and two round trips, and none is seen twice.
func TestEnsemble(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	w := &world{T: t, ctx: ctx, e: harness.StartEnsemble(ctx, t, 3, harness.WithTickTime(tick), harness.WithSyncLimit(4), harness.WithInitLimit(10))}
	_, err := w.e.AwaitServing(ctx)
	w.check(err)
	w.raw, _ = harness.Dial(ctx, t, 20*tick, w.e.Addrs()...)
	_, err = w.raw.Create(behind, nil, 0, zk.WorldACL(zk.PermAll))
	w.check(err)
	follower := w.e.Followers(ctx)[0]
	far := w.register("far", follower.Addr())
	w.register("near", w.e.ConnectString(), nodes.WithProtection())
	stop := w.neverTwice()
	w.stand("0")

	for round := range 3 {
		w.check(follower.Partition(ctx)) // it may lead by now
		w.absent(far)
		w.check(w.e.Heal(ctx))
		leader, err := w.e.AwaitServing(ctx)
		w.check(err)
		w.stand(fmt.Sprint("parted ", round))

		w.check(leader.Kill(ctx))
		w.check(leader.Start(ctx))
		_, err = w.e.AwaitServing(ctx)
		w.check(err)
		w.stand(fmt.Sprint("another leader ", round))
	}
	stop()
	for _, v := range w.workers {
		w.check(v.node.CloseContext(ctx))
	}
	w.behindAll()
	if names, _, err := w.raw.Children("/workers"); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// behindAll sees to it that raw reads all that was answered before. After a sync it may not.
// A leader tells its followers to commit a write before it applies the write itself. It answers
// a sync in between (CommitProcessor.needCommit and Leader.tryToCommit of ZooKeeper 3.9).
func (w *world) behindAll() {
	w.Helper()
	_, err := w.raw.Set(behind, nil, -1)
	w.check(err)
}

// absent waits until a worker knows that its node does not stand.
func (w *world) absent(v *worker) {
	w.Helper()
	for now := range v.node.Changes(w.ctx) {
		if now.State == nodes.Absent {
			return
		}
	}
	w.Fatalf("%s: %+v", v.name, v.node.Status())
}

// stand checks that each worker stands in time, takes new data, and is what the servers
// have.
func (w *world) stand(data string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, sessionTimeout+roundTrips)
	defer cancel()
	for _, v := range w.workers {
		w.check(v.node.Wait(ctx))
		w.check(v.node.Set(ctx, []byte(data)))
		now := v.node.Status()
		s, err := v.c.Session(ctx)
		w.check(err)
		w.behindAll()
		got, stat, err := w.raw.Get(now.Path)
		w.check(err)
		if string(got) != data || stat.Czxid != now.Czxid || stat.EphemeralOwner != s.ID() {
			w.Errorf("%s has %q at %+v, read at %s, want %q in session %#x at %+v", v.name, got, stat, w.raw.Server(), data, s.ID(), now)
		}
	}
}

// neverTwice looks at the workers until stop is called, which says what it saw.
func (w *world) neverTwice() (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	twice := make(chan []string, 1)
	go func() {
		for ctx.Err() == nil {
			names, _, err := w.raw.Children("/workers")
			near := 0
			for _, name := range names {
				if strings.HasSuffix(name, "near") {
					near++
				}
			}
			if err == nil && near > 1 {
				twice <- names
				return
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		twice <- nil
	}()
	return func() {
		w.Helper()
		cancel()
		if names := <-twice; names != nil {
			w.Errorf("a worker twice: %v", names)
		}
	}
}
