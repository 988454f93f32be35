package bad

import (
	"context"
	"errors"
	"log"

	"github.com/docent-go/docent/recipes"
)

func blank(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	_ = hold
	return err
}

func asked2(ctx context.Context, lock *recipes.InterProcessMutex, ready bool) error {
	hold, err := lock.Acquire(ctx) // want `the return in line 20 is reached`
	if err != nil || !ready {
		return err
	}
	return hold.Close()
}

func looped(ctx context.Context, lock *recipes.InterProcessMutex, jobs []int64) error {
	for _, job := range jobs {
		hold, err := lock.Acquire(ctx) // want `the return in line 36 is reached`
		if err != nil {
			return err
		}
		if job == 0 {
			continue
		}
		hold.Close()
	}
	return nil
}

func broken(ctx context.Context, lock *recipes.InterProcessMutex, jobs []int64) error {
outer:
	for {
		hold, err := lock.Acquire(ctx) // want `hold is neither`
		if err != nil {
			return err
		}
		for _, job := range jobs {
			if sell(job) != nil {
				break outer
			}
		}
		hold.Close()
	}
	return nil
}

func named(ctx context.Context, lock *recipes.InterProcessMutex) (hold *recipes.Hold, err error) {
	hold, err = lock.Acquire(ctx) // want `the return in line 62 is reached`
	if err != nil {
		return nil, err
	}
	if hold.Err() != nil {
		return nil, errors.New("lost")
	}
	return hold, nil
}

func watched(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return err
	}
	go func() {
		<-hold.Context().Done()
		log.Print("ended: ", context.Cause(hold.Context()))
	}()
	return nil
}

func afterwards(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	if err == nil {
		err = sell(hold.FencingToken())
	}
	if err == nil {
		return hold.Close()
	}
	return err
}

func selects(ctx context.Context, latch *recipes.LeaderLatch, stop <-chan struct{}) error {
	term, err := latch.Campaign(ctx) // want `term is neither`
	if err != nil {
		return err
	}
	select {
	case <-stop:
	case <-ctx.Done():
		return ctx.Err()
	}
	return term.Close()
}

func both(ctx context.Context, first, second *recipes.InterProcessMutex) error {
	one, err := first.Acquire(ctx) // want `one is neither`
	if err != nil {
		return err
	}
	two, err := second.Acquire(ctx)
	if err != nil {
		return err
	}
	defer two.Close()
	defer one.Close()
	return nil
}

func goes(ctx context.Context, lock *recipes.InterProcessMutex) {
	go lock.Acquire(ctx)       // want `the hold that Acquire returns is dropped`
	defer lock.TryAcquire(ctx) // want `the hold that TryAcquire returns is dropped`
}

func typed(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.TryAcquire(ctx) // want `hold is neither`
	switch err.(type) {
	case nil:
		return sell(hold.FencingToken())
	}
	return err
}

func embedded(ctx context.Context, s *recipes.InterProcessSemaphoreV2) (int64, error) {
	lease, err := s.Acquire(ctx, 1) // want `lease is neither`
	if err != nil {
		return 0, err
	}
	return lease.Hold.FencingToken(), nil
}

func generic[H recipes.AnyHold](ctx context.Context, lock interface {
	Acquire(ctx context.Context) (H, error)
}) error {
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return err
	}
	return hold.Err()
}

// The hold is sent, or not.
func offered(ctx context.Context, lock *recipes.InterProcessMutex, holds chan<- *recipes.Hold) error {
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return err
	}
	select {
	case holds <- hold:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func flagged(ctx context.Context, lock *recipes.InterProcessMutex, jobs []int64) error {
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return err
	}
	failed := false
	for _, job := range jobs {
		if sell(job) != nil {
			failed = true
		}
	}
	if failed {
		return errors.New("failed")
	}
	return hold.Close()
}

// The literal asks only, and the address is another's.
func literals(ctx context.Context, lock *recipes.InterProcessMutex, fill func(*int64)) error {
	var hold *recipes.Hold
	var job int64
	show := func() { log.Print(hold.Err()) }
	fill(&job)
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return err
	}
	show()
	if job == 0 {
		return errors.New("none")
	}
	defer func() { hold.Close() }()
	return sell(job)
}

func compared(ctx context.Context, lock *recipes.InterProcessMutex, last *recipes.Hold) error {
	hold, err := lock.Acquire(ctx) // want `hold is neither`
	if err != nil {
		return err
	}
	if hold == last || hold != nil && sell(1) != nil {
		return nil
	}
	return hold.Close()
}
