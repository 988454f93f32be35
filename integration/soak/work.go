package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/recipes/shared"
)

const root = "/soak"

// turns are what pieces of work and faults take while they last. Who keeps the door begins none.
type turns struct{ door, free chan struct{} }

func newTurns(n int) turns {
	t := turns{make(chan struct{}, 1), make(chan struct{}, n)}
	t.door <- struct{}{}
	for range n {
		t.give()
	}
	return t
}

// take waits until something may begin.
func (t turns) take(ctx context.Context) bool {
	if !receive(ctx, t.door) {
		return false
	}
	t.door <- struct{}{}
	return receive(ctx, t.free)
}

func (t turns) give() { t.free <- struct{}{} }

// rest calls fn when no work and no fault has been under way for a time. It reports whether it did.
func (t turns) rest(ctx context.Context, settle time.Duration, fn func()) bool {
	if !receive(ctx, t.door) {
		return false
	}
	defer func() { t.door <- struct{}{} }()
	for range cap(t.free) {
		if !receive(ctx, t.free) {
			return false // and nothing begins any more
		}
		defer t.give()
	}
	if !pause(ctx, settle) {
		return false
	}
	fn()
	return true
}

func receive(ctx context.Context, from <-chan struct{}) bool {
	select {
	case <-from:
		return true
	case <-ctx.Done():
		return false
	}
}

// repeat does a piece of work again and again, with a pause of up to most in front. A piece that a fault
// ends counts as failed.
func repeat(ctx context.Context, most time.Duration, kind string, work func(context.Context) error, free turns, done, failed *atomic.Int64) {
	for pause(ctx, rand.N(most)) && free.take(ctx) {
		piece, cancel := context.WithTimeoutCause(ctx, opTimeout, fmt.Errorf("the %s took %v", kind, opTimeout))
		if err := work(piece); err != nil && ctx.Err() == nil {
			failed.Add(1)
		}
		done.Add(1)
		cancel()
		free.give()
	}
}

// works are the kinds of work of client i of n, each in its own goroutine.
func works(c *client.Client, i, n int) map[string]func(context.Context) error {
	me := fmt.Sprint(i)
	sleep := func(ctx context.Context) { pause(ctx, rand.N(5*time.Millisecond)) }
	return map[string]func(context.Context) error{
		"mutex": func(ctx context.Context) error {
			m, err := recipes.NewInterProcessMutex(c, root+"/mutex")
			if err != nil {
				return err
			}
			return m.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error { sleep(ctx); return nil })
		},
		"many mutexes": func(ctx context.Context) error {
			m, err := recipes.NewInterProcessMutex(c, fmt.Sprint(root, "/mutexes/", rand.IntN(1000)))
			if err != nil {
				return err
			}
			return m.Do(ctx, func(context.Context, *recipes.Hold) error { return nil })
		},
		"read lock": func(ctx context.Context) error {
			l, err := recipes.NewInterProcessReadWriteLock(c, root+"/rwlock")
			if err != nil {
				return err
			}
			return l.ReadLock().Do(ctx, func(ctx context.Context, _ *recipes.Hold) error { sleep(ctx); return nil })
		},
		"write lock": func(ctx context.Context) error {
			l, err := recipes.NewInterProcessReadWriteLock(c, root+"/rwlock")
			if err != nil {
				return err
			}
			return l.WriteLock().Do(ctx, func(ctx context.Context, _ *recipes.WriteHold) error { sleep(ctx); return nil })
		},
		"semaphore": func(ctx context.Context) error {
			s, err := recipes.NewInterProcessSemaphoreV2(c, root+"/semaphore", 3)
			if err != nil {
				return err
			}
			return s.Do(ctx, 1+rand.IntN(2), func(ctx context.Context, _ *recipes.Lease) error { sleep(ctx); return nil })
		},
		"multi-lock": func(ctx context.Context) error {
			a, err := recipes.NewInterProcessMutex(c, root+"/a")
			if err != nil {
				return err
			}
			b, err := recipes.NewInterProcessSemaphoreMutex(c, root+"/b")
			if err != nil {
				return err
			}
			m, err := recipes.NewInterProcessMultiLock(a, b)
			if err != nil {
				return err
			}
			return m.Do(ctx, func(ctx context.Context, _ *recipes.MultiHold) error { sleep(ctx); return nil })
		},
		"latch": func(ctx context.Context) error {
			l, err := recipes.NewLeaderLatch(c, root+"/latch", recipes.WithID(me))
			if err != nil {
				return err
			}
			return l.Do(ctx, func(ctx context.Context, _ *recipes.Term) error { sleep(ctx); return nil })
		},
		"selector": func(ctx context.Context) error {
			l, err := recipes.NewLeaderSelector(c, root+"/selector", recipes.WithID(me))
			if err != nil {
				return err
			}
			return l.Do(ctx, func(ctx context.Context, _ *recipes.Term) error { sleep(ctx); return nil })
		},
		"double barrier": func(ctx context.Context) error {
			b, err := barrier.NewDistributedDoubleBarrier(c, root+"/barrier", n)
			if err != nil {
				return err
			}
			m, err := b.Enter(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = m.Close() }()
			return m.Leave(ctx)
		},
		"count": func(ctx context.Context) error {
			s, err := shared.NewSharedCount(c, root+"/count", 0)
			if err != nil {
				return err
			}
			now, err := s.Get(ctx)
			if err != nil {
				return err
			}
			_, err = s.TrySet(ctx, now, now.Value+1)
			return err
		},
		"number": func(ctx context.Context) error {
			s, err := shared.NewDistributedAtomicLong(c, root+"/number")
			if err != nil {
				return err
			}
			_, err = s.Increment(ctx)
			return err
		},
		"node": func(ctx context.Context) error {
			node, err := nodes.NewPersistentNode(c, nodes.Ephemeral, root+"/nodes/"+me, nil, nodes.TakeOver())
			if err != nil {
				return err
			}
			defer func() { _ = node.Close() }()
			if err := node.Start(ctx); err != nil {
				return err
			}
			pause(ctx, rand.N(2*time.Second))
			return node.Set(ctx, []byte(me))
		},
		"member": func(ctx context.Context) error {
			member, err := nodes.NewGroupMember(c, root+"/members", me, nil, nodes.TakeOver())
			if err != nil {
				return err
			}
			defer func() { _ = member.Close() }()
			if err := member.Start(ctx); err != nil {
				return err
			}
			pause(ctx, rand.N(2*time.Second))
			return nil
		},
		"keys": func(ctx context.Context) error {
			key := fmt.Sprint(root, "/keys/", rand.IntN(200))
			if _, err := c.CreateOrSet(ctx, key, make([]byte, rand.IntN(1000)), client.WithParents()); err != nil {
				return err
			}
			if _, _, err := c.ChildrenData(ctx, root+"/keys"); err != nil {
				return err
			}
			err := c.Delete(ctx, key, client.AnyVersion)
			if errors.Is(err, client.ErrNoNode) {
				return nil
			}
			return err
		},
		"short cache": func(ctx context.Context) error {
			tree, err := cache.NewTree(c, root+"/keys", cache.Bytes)
			if err != nil {
				return err
			}
			defer tree.Close()
			if err := tree.Start(ctx); err != nil {
				return err
			}
			pause(ctx, rand.N(time.Second))
			return nil
		},
		"long cache": func(ctx context.Context) error {
			children, err := cache.NewChildren(c, root+"/nodes", cache.Text)
			if err != nil {
				return err
			}
			defer children.Close()
			if err := children.Start(ctx); err != nil {
				return err
			}
			for range children.Changes(ctx) { // until the piece's time is up
			}
			return nil
		},
	}
}
