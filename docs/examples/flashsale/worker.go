package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// runWorker is one process of the crowd.
func runWorker(ctx context.Context, cfg config) (err error) {
	c, err := client.Connect(ctx, cfg.zk)
	if err != nil {
		return err
	}
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, c.Close(bye))
	}()
	lock, err := recipes.NewInterProcessMutex(c, cfg.path)
	if err != nil {
		return err
	}
	shop := newShop(cfg.dir)
	errs := make([]error, cfg.buyers)
	var crowd sync.WaitGroup
	for i := range cfg.buyers {
		crowd.Go(func() {
			buyer := fmt.Sprintf("process %d, buyer %d", cfg.worker, i+1)
			errs[i] = shopTillSoldOut(ctx, lock, shop, cfg.worker, buyer)
		})
	}
	crowd.Wait()
	return errors.Join(errs...)
}

// shopTillSoldOut buys one item after the other, each under the lock.
func shopTillSoldOut(ctx context.Context, lock *recipes.InterProcessMutex, shop *shop, worker int, buyer string) error {
	for {
		asked := time.Now()
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		s := sale{Worker: worker, Buyer: buyer, Waited: time.Since(asked), Token: hold.FencingToken()}
		// The purchase stops if the lock is lost while it is under way.
		soldOut, err := shop.buy(hold.Context(), s)
		if err := errors.Join(err, hold.Close()); err != nil {
			return err
		}
		if soldOut {
			return nil
		}
	}
}
