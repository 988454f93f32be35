package crowd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// Worker is one process of the crowd.
type Worker struct {
	ZK     string // connect string
	Path   string // of the lock
	Number int
	Buyers int // goroutines
	Client []client.Option
}

// ErrLate says that the lock was lost during a purchase, which has dealt with
// that; the buyer goes on to the next.
var ErrLate = errors.New("too late")

// Purchase buys one item under a hold, and says if there was none. It ends
// when the hold's context does.
type Purchase func(hold *recipes.Hold, entry Sale) (soldOut bool, err error)

// Run lets the buyers purchase until everything is sold or one of them fails.
func (w Worker) Run(ctx context.Context, purchase Purchase) (err error) {
	c, err := client.Connect(ctx, w.ZK, w.Client...)
	if err != nil {
		return err
	}
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, c.CloseContext(bye))
	}()
	lock, err := recipes.NewInterProcessMutex(c, w.Path)
	if err != nil {
		return err
	}
	errs := make([]error, w.Buyers)
	var crowd sync.WaitGroup
	for i := range w.Buyers {
		crowd.Go(func() {
			entry := Sale{Worker: w.Number, Buyer: fmt.Sprintf("process %d, buyer %d", w.Number, i+1)}
			errs[i] = shopTillSoldOut(ctx, lock, purchase, entry)
		})
	}
	crowd.Wait()
	return errors.Join(errs...)
}

// shopTillSoldOut buys one item after the other, each under the lock.
func shopTillSoldOut(ctx context.Context, lock *recipes.InterProcessMutex, purchase Purchase, entry Sale) error {
	for {
		asked := time.Now()
		hold, err := lock.Acquire(ctx)
		if errors.Is(err, client.ErrSessionLost) && ctx.Err() == nil {
			continue // the place in the queue is gone: to its end, in the next session
		}
		if err != nil {
			return err
		}
		entry.Waited, entry.Token = time.Since(asked), hold.FencingToken()
		soldOut, err := purchase(hold, entry)
		released := hold.Close()
		if errors.Is(err, ErrLate) {
			continue
		}
		if err := errors.Join(err, released); err != nil {
			return err
		}
		if soldOut {
			return nil
		}
	}
}
