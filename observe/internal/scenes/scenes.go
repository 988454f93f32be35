// Package scenes plays what metrics and spans tell of, for tests of observers. The
// tests play it on a server in a bubble, and in a process that Prometheus scrapes.
package scenes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/zktest"
)

// SessionTimeout is that of the clients.
const SessionTimeout = 2 * time.Second

// Orders is the path of the mutex of the scenes.
const Orders = "/orders/4711"

// Fact says how often something has happened. For a histogram Count is its number of
// values.
type Fact struct {
	Metric string
	Labels map[string]string
	Count  int64
}

// Play plays all scenes with clients that have observers of the given function, and closes
// the clients. It returns what has happened then.
func Play(ctx context.Context, srv *zktest.Server, observer func() client.Observer) (_ []Fact, err error) {
	p := &play{srv: srv, observer: observer}
	for _, c := range []struct {
		name string
		to   **client.Client
	}{{"a", &p.a}, {"b", &p.b}} {
		*c.to, err = client.Connect(ctx, "zk", client.WithSessionTimeout(SessionTimeout), client.WithObserver(observer()),
			client.WithDialer(srv.Client(c.name).DialContext), client.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, (*c.to).CloseContext(context.WithoutCancel(ctx))) }()
	}
	for _, scene := range []struct {
		name string
		play func(context.Context) error
	}{
		{"re-entry", p.reentry},
		{"queue", p.queue},
		{"giving up", p.givingUp},
		{"errors", p.errors},
		{"numbers", p.numbers},
		{"leadership", p.leadership},
		{"removal", p.removal},
		{"node deleted", p.deleted},
		{"session expired", p.expired},
		{"partition", p.partition},
		{"closed", p.closed},
		{"caches", p.caches},
		{"registered nodes", p.nodes},
		{"services", p.services},
	} {
		if err := scene.play(ctx); err != nil {
			return nil, fmt.Errorf("scene %q: %w", scene.name, err)
		}
	}
	return p.facts, nil
}

type play struct {
	srv      *zktest.Server
	observer func() client.Observer
	a, b     *client.Client
	facts    []Fact
}

// fact notes what has happened; pairs are label and value in turn.
func (p *play) fact(metric string, count int64, pairs ...string) {
	f := Fact{Metric: metric, Labels: map[string]string{}, Count: count}
	for pair := range slices.Chunk(pairs, 2) {
		f.Labels[pair[0]] = pair[1]
	}
	p.facts = append(p.facts, f)
}

// lock notes the facts of one kind of lock: acquires by outcome, and holds by end.
func (p *play) lock(recipe string, acquired, held map[string]int64) {
	for outcome, n := range acquired {
		p.fact("docent.lock.acquire.duration", n, "docent.lock.recipe", recipe, "docent.lock.outcome", outcome)
	}
	for end, n := range held {
		p.fact("docent.lock.hold.duration", n, "docent.lock.recipe", recipe, "docent.lock.end", end)
	}
}

// reentry takes a lock twice, the second time within the first: one acquire, one hold.
func (p *play) reentry(ctx context.Context) error {
	s, err := recipes.NewInterProcessSemaphoreMutex(p.a, "/sem")
	if err != nil {
		return err
	}
	h, err := s.Acquire(ctx)
	if err != nil {
		return err
	}
	if err := h.Release(ctx); err != nil {
		return err
	}
	rw, err := recipes.NewInterProcessReadWriteLock(p.a, "/rw")
	if err != nil {
		return err
	}
	outer, err := rw.WriteLock().Acquire(ctx)
	if err != nil {
		return err
	}
	inner, err := rw.WriteLock().Acquire(outer.Context())
	if err != nil {
		return errors.Join(err, outer.Release(ctx))
	}
	p.lock("InterProcessSemaphoreMutex", map[string]int64{"acquired": 1}, map[string]int64{"released": 1})
	p.lock("InterProcessReadWriteLock", map[string]int64{"acquired": 1}, map[string]int64{"released": 1})
	return errors.Join(inner.Release(ctx), outer.Release(ctx))
}

// queue has b wait for a.
func (p *play) queue(ctx context.Context) error {
	held, err := p.take(ctx, p.a, Orders)
	if err != nil {
		return err
	}
	got := make(chan error, 1)
	go func() {
		h, err := p.take(ctx, p.b, Orders)
		if err == nil {
			err = h.Release(ctx)
		}
		got <- err
	}()
	if err := p.await(func() bool { return len(p.srv.Children(Orders)) == 2 }); err != nil {
		return err
	}
	if err := held.Release(ctx); err != nil {
		return err
	}
	return <-got
}

// givingUp has b end its acquires without the lock in every way.
func (p *play) givingUp(ctx context.Context) error {
	held, err := p.take(ctx, p.a, Orders)
	if err != nil {
		return err
	}
	m, err := recipes.NewInterProcessMutex(p.b, Orders)
	if err != nil {
		return err
	}
	if _, err := m.TryAcquire(ctx); !errors.Is(err, recipes.ErrBusy) {
		return fmt.Errorf("a TryAcquire of a held lock returned %w", err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := m.Acquire(short); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("an Acquire with a deadline returned %w", err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.Acquire(canceled); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("an Acquire that was canceled returned %w", err)
	}
	return held.Release(ctx)
}

// errors has operations fail, and one be repeated.
func (p *play) errors(ctx context.Context) error {
	for range 3 {
		if _, err := p.a.Set(ctx, "/none", nil, client.AnyVersion); !errors.Is(err, client.ErrNoNode) {
			return fmt.Errorf("a set of no node returned %w", err)
		}
	}
	p.fact("db.client.operation.duration", 3, "db.operation.name", "set", "error.type", "NONODE", "db.system.name", "zookeeper")
	p.srv.Fail(zktest.Match{Op: zktest.OpExists, Times: 2}, zktest.CodeSessionMoved)
	if _, _, err := p.a.Exists(ctx, "/"); err != nil {
		return err
	}
	p.fact("docent.client.retries", 2, "db.operation.name", "exists")
	return nil
}

// numbers adds twice, and compares without success once.
func (p *play) numbers(ctx context.Context) error {
	n, err := shared.NewDistributedAtomicLong(p.a, "/numbers/n")
	if err != nil {
		return err
	}
	for range 2 {
		if _, err := n.Increment(ctx); err != nil {
			return err
		}
	}
	if _, err := n.CompareAndSet(ctx, 7, 8); err != nil {
		return err
	}
	p.fact("docent.atomic.operation.duration", 2, "docent.atomic.recipe", "DistributedAtomicLong", "docent.atomic.operation", "add", "docent.atomic.outcome", "done")
	p.fact("docent.atomic.operation.duration", 1, "docent.atomic.recipe", "DistributedAtomicLong", "docent.atomic.operation", "compare_and_set", "docent.atomic.outcome", "unchanged")
	p.fact("docent.atomic.operation.tries", 2, "docent.atomic.recipe", "DistributedAtomicLong", "docent.atomic.operation", "add")
	return nil
}

// leadership has b lead.
func (p *play) leadership(ctx context.Context) error {
	latch, err := recipes.NewLeaderLatch(p.b, "/leaders")
	if err != nil {
		return err
	}
	h, err := latch.Campaign(ctx)
	if err != nil {
		return err
	}
	p.lock("LeaderLatch", map[string]int64{"acquired": 1}, map[string]int64{"released": 1})
	return h.Release(ctx)
}

// removal has a server refuse a delete, so that the client removes the node in the
// background.
func (p *play) removal(ctx context.Context) error {
	held, err := p.take(ctx, p.a, "/removal/x")
	if err != nil {
		return err
	}
	p.srv.Fail(zktest.Match{Op: zktest.OpDelete, Path: held.Path(), Times: 2}, zktest.CodeNoAuth)
	if err := held.Release(ctx); err == nil {
		return errors.New("a release that a server refused returned no error")
	}
	return p.await(func() bool { return len(p.srv.Children("/removal/x")) == 0 })
}

// deleted has an operator delete the node of a hold.
func (p *play) deleted(ctx context.Context) error {
	held, err := p.take(ctx, p.a, "/deleted/x")
	if err != nil {
		return err
	}
	if err := p.srv.Delete(held.Path()); err != nil {
		return err
	}
	<-held.Context().Done()
	return released(held.Release(ctx))
}

// expired has a server expire the session of a hold.
func (p *play) expired(ctx context.Context) error {
	held, err := p.take(ctx, p.a, "/expired/x")
	if err != nil {
		return err
	}
	s, err := p.a.Session(ctx)
	if err != nil {
		return err
	}
	p.srv.ExpireSession(s.ID())
	<-held.Context().Done()
	p.fact("docent.lock.lost", 1, "docent.lock.recipe", "InterProcessMutex", "docent.lock.end", "session")
	return released(held.Release(ctx))
}

// partition has b hold a lock while no server is reached.
func (p *play) partition(ctx context.Context) error {
	held, err := p.take(ctx, p.b, "/partition/x")
	if err != nil {
		return err
	}
	p.srv.Partition()
	<-held.Context().Done()
	p.srv.Heal()
	p.fact("docent.lock.lost", 1, "docent.lock.recipe", "InterProcessMutex", "docent.lock.end", "lease")
	return released(held.Release(ctx))
}

// closed closes a while it holds a lock.
func (p *play) closed(ctx context.Context) error {
	if _, err := p.take(ctx, p.a, "/closed/x"); err != nil {
		return err
	}
	p.fact("docent.lock.lost", 1, "docent.lock.recipe", "InterProcessMutex", "docent.lock.end", "closed")
	p.fact("docent.lock.lost", 1, "docent.lock.recipe", "InterProcessMutex", "docent.lock.end", "deleted")
	p.lock("InterProcessMutex", map[string]int64{"acquired": 8, "busy": 1, "timeout": 1, "canceled": 1, "error": 0},
		map[string]int64{"released": 4, "deleted": 1, "session": 1, "lease": 1, "closed": 1})
	p.fact("docent.background.pending", 0)
	p.fact("docent.background.removals", 0, "docent.removal.result", "given_up")
	p.fact("docent.lock.holds", 0)
	p.fact("docent.lock.waiters", 0)
	p.fact("docent.session.state", 0)
	p.fact("docent.session.transitions", 5, "docent.session.state", "closed")
	return errors.Join(p.a.CloseContext(ctx), p.b.CloseContext(ctx))
}

// caches has a tree follow a change, a reconnection, and a move to older servers. Another one
// grows beyond its limit.
func (p *play) caches(ctx context.Context) (err error) {
	older, err := zktest.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, older.Close()) }()
	var servers atomic.Pointer[zktest.Server]
	servers.Store(p.srv)
	own, told := toldOf("/cached")
	c, err := client.Connect(ctx, "zk", client.WithSessionTimeout(SessionTimeout), client.WithObserver(observe.Join(p.observer(), own)),
		client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			return servers.Load().Client("c").DialContext(ctx, network, address)
		}), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.CloseContext(context.WithoutCancel(ctx))) }()
	if err := p.limited(ctx, c); err != nil {
		return err
	}
	tree, err := cache.NewTree(c, "/cached", cache.Bytes)
	if err != nil {
		return err
	}
	if err := tree.Start(ctx); err != nil {
		return err
	}
	defer tree.Close()
	// An observer that is slower than the cache hears of the newest cause alone, and a reader of
	// changes that is slower hears of no reconnection. So each step waits until this one was told.
	because := func(cause client.CacheCause) error {
		return told(ctx, func(now client.CacheUpdate) bool { return now.Cause == cause })
	}
	resynced := func(times int64) error {
		return told(ctx, func(now client.CacheUpdate) bool { return now.Resyncs >= times })
	}
	for _, step := range []func() error{
		func() error { return because(client.CacheStarted) },
		func() error { return p.srv.Create("/cached", nil) },
		func() error { return because(client.CacheChanged) },
		func() error { p.srv.Client("c").Cut(); return resynced(1) },
		func() error { servers.Store(older); p.srv.Client("c").Cut(); return resynced(2) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	p.fact("docent.cache.snapshot.delay", 2, "docent.cache.recipe", "Tree", "docent.cache.cause", "started")
	p.fact("docent.cache.snapshot.delay", 1, "docent.cache.recipe", "Tree", "docent.cache.cause", "changed")
	p.fact("docent.cache.resyncs", 2, "docent.cache.recipe", "Tree")
	p.fact("docent.cache.gaps", 1, "docent.cache.recipe", "Tree")
	p.fact("docent.cache.limits", 1, "docent.cache.recipe", "Tree")
	p.fact("docent.cache.caches", 0)
	p.fact("docent.cache.nodes", 0)
	return p.srv.Delete("/cached")
}

// toldOf is an observer, and a function that waits until it was told enough of the cache of path:
// of a snapshot with its cause, and of all resyncs and gaps until then.
func toldOf(path string) (client.Observer, func(ctx context.Context, enough func(client.CacheUpdate) bool) error) {
	updates := make(chan client.CacheUpdate, 64)
	o := client.Observer{Cache: func(info client.CacheInfo) func(client.CacheUpdate) {
		if info.Path != path {
			return nil
		}
		var sum client.CacheUpdate
		return func(now client.CacheUpdate) {
			now.Resyncs += sum.Resyncs
			now.Gaps += sum.Gaps
			if sum = now; now.Snapshots > 0 {
				updates <- now
			}
		}
	}}
	return o, func(ctx context.Context, enough func(client.CacheUpdate) bool) error {
		for {
			select {
			case now := <-updates:
				if enough(now) {
					return nil
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// nodes has a server refuse a registered node once, and then take it.
func (p *play) nodes(ctx context.Context) (err error) {
	c, err := client.Connect(ctx, "zk", client.WithSessionTimeout(SessionTimeout), client.WithObserver(p.observer()),
		client.WithDialer(p.srv.Client("n").DialContext), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.CloseContext(context.WithoutCancel(ctx))) }()
	n, err := nodes.NewPersistentNode(c, nodes.Ephemeral, "/registered", nil, nodes.WithLazyStart())
	if err != nil {
		return err
	}
	p.srv.Fail(zktest.Match{Path: "/registered", Op: zktest.OpCreate, Times: 1}, zktest.CodeNoAuth)
	if err := n.Start(ctx); err != nil {
		return err
	}
	if err := n.Wait(ctx); err != nil {
		return err
	}
	p.fact("docent.node.nodes", 0)
	return n.CloseContext(ctx)
}

// services has a directory with an instance of each kind, and then none.
func (p *play) services(ctx context.Context) (err error) {
	counted := make(chan struct{})
	count := sync.OnceFunc(func() { close(counted) })
	own := client.Observer{Service: func(client.ServiceInfo) func(client.ServiceUpdate) {
		return func(now client.ServiceUpdate) {
			if now.Offered > 0 {
				count()
			}
		}
	}}
	c, err := client.Connect(ctx, "zk", client.WithSessionTimeout(SessionTimeout), client.WithObserver(observe.Join(p.observer(), own)),
		client.WithDialer(p.srv.Client("s").DialContext), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.CloseContext(context.WithoutCancel(ctx))) }()
	d, err := discovery.New(c, "/services", discovery.Curator())
	if err != nil {
		return err
	}
	offered, err := d.Register(ctx, discovery.ServiceInstance{Service: "orders", Address: "10.0.0.7", Port: 80})
	if err != nil {
		return err
	}
	disabled, err := d.Register(ctx, discovery.ServiceInstance{Service: "orders", Address: "10.0.0.8", Port: 80, Disabled: true})
	if err != nil {
		return err
	}
	if err := p.srv.Create("/services/orders/bad", nil); err != nil {
		return err
	}
	directory, err := d.Cache("orders")
	if err != nil {
		return err
	}
	if err := directory.Start(ctx); err != nil {
		return err
	}
	select {
	case <-counted: // an observer that is slower hears of the end alone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	directory.Close()
	p.fact("docent.service.instances", 0)
	p.fact("docent.cache.snapshot.delay", 1, "docent.cache.recipe", "ServiceCache", "docent.cache.cause", "started")
	return errors.Join(offered.CloseContext(ctx), disabled.CloseContext(ctx), p.srv.Delete("/services/orders/bad"))
}

// limited has a tree grow beyond its limit.
func (p *play) limited(ctx context.Context, c *client.Client) error {
	if err := p.srv.Create("/limited", nil); err != nil {
		return err
	}
	tree, err := cache.NewTree(c, "/limited", cache.Bytes, cache.WithLimits(cache.Limits{Nodes: 1}))
	if err != nil {
		return err
	}
	if err := tree.Start(ctx); err != nil {
		return err
	}
	defer tree.Close()
	if err := p.srv.Create("/limited/x", nil); err != nil {
		return err
	}
	if err := p.await(func() bool { return errors.Is(tree.State().Err, cache.ErrLimit) }); err != nil {
		return err
	}
	return errors.Join(p.srv.Delete("/limited/x"), p.srv.Delete("/limited"))
}

func (p *play) take(ctx context.Context, c *client.Client, path string) (*recipes.Hold, error) {
	m, err := recipes.NewInterProcessMutex(c, path)
	if err != nil {
		return nil, err
	}
	return m.Acquire(ctx)
}

// await waits for a state of the server.
func (p *play) await(reached func() bool) error {
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !reached() {
		select {
		case <-look.C:
		case <-limit.C:
			return errors.New("it did not come in 10 s:\n" + p.srv.Dump())
		}
	}
	return nil
}

// released is the error of a release, unless that says that the hold was lost.
func released(err error) error {
	if errors.Is(err, recipes.ErrLost) {
		return nil
	}
	return err
}
