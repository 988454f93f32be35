package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/recipes/shared"
)

// The lock that most workers want, a semaphore, and the election.
const (
	orders   = "/orders/4711"
	gate     = "/stock/gate"
	election = "/nightly"
)

// job is what a worker does again and again.
type job func(context.Context, worker) error

// role is what one instance does: a worker for each of its jobs.
type role struct {
	name string
	jobs []job
}

// roles has two busy instances, and two that only wait to lead. Writes of an instance
// spare it heartbeats. So only a quiet holder sends them.
func roles() []role {
	shop := []job{order, order, order, order, stock, stock, stock, stock, report, count, count, look, follow, overflow, register, discover}
	return []role{{"shop-1", shop}, {"shop-2", shop}, {"cron-1", []job{nightly}}, {"cron-2", []job{nightly}}}
}

// worker is a goroutine of an instance. Its times are those of a scene of two minutes. In
// a shorter scene it is as much faster, so that as much happens.
type worker struct {
	client *client.Client
	scene  time.Duration // how long the scene takes
	rand   *rand.Rand
}

// scaled is a time in this scene.
func (w worker) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * w.scene.Seconds() / 120)
}

// between waits for a time between two bounds, drawn at random.
func (w worker) between(ctx context.Context, lo, hi time.Duration) {
	pause(ctx, w.scaled(lo+time.Duration(w.rand.Int64N(int64(hi-lo)))))
}

// repeat does a job again and again. Jobs fail while the server gives trouble.
func (w worker) repeat(ctx context.Context, job job) {
	for ctx.Err() == nil {
		_ = job(ctx, w) // the metrics tell of the error
		w.between(ctx, 200*time.Millisecond, 1500*time.Millisecond)
	}
}

// order holds a mutex for a while; at times it takes the mutex again within.
func order(ctx context.Context, w worker) error {
	m, err := recipes.NewInterProcessMutex(w.client, orders)
	if err != nil {
		return err
	}
	return m.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		w.between(ctx, 100*time.Millisecond, 400*time.Millisecond)
		if w.rand.IntN(4) > 0 {
			return nil
		}
		return m.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
			w.between(ctx, 50*time.Millisecond, 200*time.Millisecond)
			return nil
		})
	})
}

// stock takes one of four permits, and waits for no longer than half a second.
func stock(ctx context.Context, w worker) error {
	s, err := recipes.NewInterProcessSemaphoreV2(w.client, gate, 4)
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, w.scaled(500*time.Millisecond))
	defer cancel()
	lease, err := s.Acquire(short, 1)
	if err != nil {
		return err
	}
	w.between(lease.Context(), 400*time.Millisecond, 1500*time.Millisecond)
	return lease.Release(ctx)
}

// report takes a mutex if no other instance has it.
func report(ctx context.Context, w worker) error {
	m, err := recipes.NewInterProcessMutex(w.client, "/report/daily")
	if err != nil {
		return err
	}
	hold, err := m.TryAcquire(ctx)
	if err != nil {
		return err
	}
	w.between(hold.Context(), 500*time.Millisecond, 2*time.Second)
	return hold.Release(ctx)
}

// nightly waits until no other instance leads, and leads for some seconds.
func nightly(ctx context.Context, w worker) error {
	latch, err := recipes.NewLeaderLatch(w.client, election)
	if err != nil {
		return err
	}
	term, err := latch.Campaign(ctx)
	if err != nil {
		return err
	}
	w.between(term.Context(), 8*time.Second, 16*time.Second)
	return term.Release(ctx)
}

// count adds to a number that all instances share.
func count(ctx context.Context, w worker) error {
	n, err := shared.NewDistributedAtomicLong(w.client, "/numbers/sold")
	if err != nil {
		return err
	}
	if w.rand.IntN(5) == 0 {
		_, err = n.CompareAndSet(ctx, 0, 1)
		return err
	}
	_, err = n.Increment(ctx)
	return err
}

// look reads a node, which at times is not there.
func look(ctx context.Context, w worker) error {
	path := "/stock"
	if w.rand.IntN(10) == 0 {
		path = fmt.Sprintf("/none/%d", w.rand.IntN(100))
	}
	_, _, err := w.client.Get(ctx, path)
	return err
}

// follow follows the numbers for a while.
func follow(ctx context.Context, w worker) error {
	tree, err := cache.NewTree(w.client, "/numbers", cache.Bytes)
	if err != nil {
		return err
	}
	if err := tree.Start(ctx); err != nil {
		return err
	}
	defer tree.Close()
	w.between(ctx, 30*time.Second, 60*time.Second)
	return nil
}

// register is a member of a group for a while. Both instances want the same name, and at times a place
// that the server refuses: below the node of a member.
func register(ctx context.Context, w worker) error {
	group := "/members"
	if w.rand.IntN(3) == 0 {
		group = "/members/shop"
	}
	m, err := nodes.NewGroupMember(w.client, group, "shop", nil, nodes.WithLazyStart())
	if err != nil {
		return err
	}
	defer m.CloseContext(context.WithoutCancel(ctx)) //nolint:errcheck // it goes with its session
	if err := m.Start(ctx); err != nil {
		return err
	}
	w.between(ctx, time.Second, 4*time.Second)
	return nil
}

// discover registers an instance of a service, and follows the service for a while.
func discover(ctx context.Context, w worker) error {
	d, err := discovery.New(w.client, "/services", discovery.Curator())
	if err != nil {
		return err
	}
	i, err := d.Register(ctx, discovery.ServiceInstance{Service: "orders", Address: "10.0.0.7", Port: 80})
	if err != nil {
		return err
	}
	defer i.CloseContext(context.WithoutCancel(ctx)) //nolint:errcheck // it goes with its session
	directory, err := d.Cache("orders")
	if err != nil {
		return err
	}
	if err := directory.Start(ctx); err != nil {
		return err
	}
	defer directory.Close()
	w.between(ctx, 5*time.Second, 15*time.Second)
	return nil
}

// overflow follows more nodes than its cache may have.
func overflow(ctx context.Context, w worker) error {
	tree, err := cache.NewTree(w.client, "/stock", cache.Bytes, cache.WithLimits(cache.Limits{Nodes: 1}), cache.WithLazyStart())
	if err != nil {
		return err
	}
	if err := tree.Start(ctx); err != nil {
		return err
	}
	defer tree.Close()
	w.between(ctx, 10*time.Second, 20*time.Second)
	return nil
}

// pause waits, and reports whether ctx is still good.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
