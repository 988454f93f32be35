package lease_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/recipes"
)

// The servers' time is ZooKeeper's default, which is what the default
// LeasePolicy is made for.
const (
	tick      = 2 * time.Second
	syncLimit = 5
)

// longForm asks for all timeouts and for as many rounds as figures to be
// published need, about a quarter of an hour.
const longForm = "DOCENT_LEASE_LONG"

// extent is how much is played.
type extent struct {
	timeouts []time.Duration
	rounds   int // of partitions; other faults get a third, and one at least
	holders  int // for each timeout in one round
}

func extentOf() extent {
	s := time.Second
	if os.Getenv(longForm) != "" {
		return extent{[]time.Duration{4 * s, 6 * s, 10 * s, 15 * s, 30 * s}, 6, 4}
	}
	return extent{[]time.Duration{4 * s, 6 * s, 10 * s}, 1, 3}
}

// others is the number of rounds of faults that part no server from its
// leader.
func (e extent) others() int { return max(1, e.rounds/3) }

// world is a real ensemble and a raw client that sees what is there.
type world struct {
	*testing.T
	e    *harness.Ensemble
	ctx  context.Context
	raw  *zk.Conn
	dirs atomic.Int64
	tls  []client.Option // of every client of Docent, nil without TLS
}

func newWorld(t *testing.T, limit time.Duration, opts ...harness.Option) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	opts = append(opts, harness.WithTickTime(tick), harness.WithSyncLimit(syncLimit), harness.WithInitLimit(10))
	w := &world{T: t, ctx: ctx, e: harness.StartEnsemble(ctx, t, 3, opts...)}
	w.raw, _ = harness.Dial(ctx, t, 20*tick, w.e.Addrs()...)
	return w
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// ready returns the leader and the followers once all serve.
func (w *world) ready() (leader *harness.Node, followers []*harness.Node) {
	w.Helper()
	leader, err := w.e.AwaitServing(w.ctx)
	w.check(err)
	for _, n := range w.e.Nodes() {
		if n != leader {
			followers = append(followers, n)
		}
	}
	return leader, followers
}

// healed ends all faults and waits for what they broke.
func (w *world) healed() {
	w.Helper()
	w.check(w.e.Heal(w.ctx))
	w.ready()
}

// connect returns a client and what closes it.
func (w *world) connect(servers string, timeout time.Duration, opts ...client.Option) (*client.Client, func()) {
	w.Helper()
	c, err := client.Connect(w.ctx, servers, slices.Concat([]client.Option{
		client.WithSessionTimeout(timeout),
		client.WithConnectTimeout(time.Minute),
		client.WithLogger(slog.New(slog.DiscardHandler)),
	}, w.tls, opts)...)
	w.check(err)
	return c, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), 5*time.Second)
		defer cancel()
		_ = c.CloseContext(ctx) // its server may be gone
	}
}

// directory makes a lock's directory that stays.
func (w *world) directory() string {
	w.Helper()
	dir := fmt.Sprintf("/lock%d", w.dirs.Add(1))
	w.check(w.eventually(func() error {
		_, err := w.raw.Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
		return err
	}))
	return dir
}

// mutex is a lock on dir.
func (w *world) mutex(c *client.Client, dir string) *recipes.InterProcessMutex {
	w.Helper()
	m, err := recipes.NewInterProcessMutex(c, dir)
	w.check(err)
	return m
}

// queue waits until n stand in line at a lock.
func (w *world) queue(dir string, n int) {
	w.Helper()
	w.check(w.eventually(func() error {
		if _, err := w.raw.Sync(dir); err != nil {
			return err
		}
		names, _, err := w.raw.Children(dir)
		if err == nil && len(names) != n {
			err = fmt.Errorf("%d stand in line at %s, want %d", len(names), dir, n)
		}
		return err
	}))
}

// eventually polls what no event tells, until it holds.
func (w *world) eventually(ask func() error) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	limit := time.After(30 * time.Second)
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-w.ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(w.ctx), err)
		case <-limit:
			return fmt.Errorf("not within 30 s: %w", err)
		case <-again.C:
		}
	}
}

// together runs f for every number below n at the same time. A Fatal in one of
// them ends that one, and the test when the others have returned.
func (w *world) together(n int, f func(i int)) {
	w.Helper()
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { f(i) })
	}
	group.Wait()
	if w.Failed() {
		w.FailNow()
	}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	w.Helper()
	select {
	case <-time.After(d):
	case <-w.ctx.Done():
		w.Fatal(context.Cause(w.ctx))
	}
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
