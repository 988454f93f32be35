// Package ported has what a Java service does with Curator's usual recipes, in Go.
// docs/curator-migration.md shows it beside the original.
package ported

import (
	"context"
	"errors"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/recipes/shared"
)

// Service is safe for concurrent use. Close its Limits and its Worker at the end.
type Service struct {
	Orders *recipes.InterProcessMutex
	Stock  *recipes.InterProcessReadWriteLock
	DB     *recipes.InterProcessSemaphoreV2
	Leader *recipes.LeaderLatch
	Limits *cache.Value[map[string]int]
	Worker *nodes.GroupMember
	Sold   *shared.DistributedAtomicLong
	Start  *barrier.DistributedDoubleBarrier
}

// New starts the worker of the given id. Its barrier waits for as many workers as given.
func New(ctx context.Context, c *client.Client, id string, workers int) (*Service, error) {
	var s Service
	var errs [8]error // each says which path is wrong
	s.Orders, errs[0] = recipes.NewInterProcessMutex(c, "/shop/orders")
	s.Stock, errs[1] = recipes.NewInterProcessReadWriteLock(c, "/shop/stock")
	s.DB, errs[2] = recipes.NewInterProcessSemaphoreV2(c, "/shop/db", 5)
	s.Leader, errs[3] = recipes.NewLeaderLatch(c, "/shop/leader", recipes.WithID(id))
	s.Limits, errs[4] = cache.NewValue(c, "/shop/limits", cache.JSON[map[string]int]())
	s.Worker, errs[5] = nodes.NewGroupMember(c, "/shop/workers", id, nil)
	s.Sold, errs[6] = shared.NewDistributedAtomicLong(c, "/shop/sold")
	s.Start, errs[7] = barrier.NewDistributedDoubleBarrier(c, "/shop/start", workers)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return &s, errors.Join(s.Limits.Start(ctx), s.Worker.Start(ctx))
}

// Loop takes the lock for each order, again if it was lost, until ctx ends.
func (s *Service) Loop(ctx context.Context, next func(context.Context, *recipes.Hold) error) error {
	for {
		err := s.Orders.Do(ctx, next)
		if ctx.Err() != nil || err != nil && !errors.Is(err, recipes.ErrLost) && !errors.Is(err, client.ErrSessionLost) {
			return err
		}
	}
}

// Restock writes alone, and then reads beside other readers before another writer comes.
func (s *Service) Restock(ctx context.Context, write, read func(context.Context) error) error {
	return s.Stock.WriteLock().Do(ctx, func(ctx context.Context, hold *recipes.WriteHold) error {
		if err := write(ctx); err != nil {
			return err
		}
		reading, err := hold.Downgrade(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = reading.Close() }()
		return read(reading.Context())
	})
}
