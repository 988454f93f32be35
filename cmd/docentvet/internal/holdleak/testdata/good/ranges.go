package good

import (
	"context"

	"github.com/docent-go/docent/recipes"
)

func each(ctx context.Context, locks map[string]*recipes.InterProcessMutex, next []*recipes.Hold) error {
	for name, lock := range locks {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		if name == "" {
			hold.Close()
			continue
		}
		if err := hold.Release(ctx); err != nil {
			return err
		}
	}
	for _, hold := range next {
		hold.Close()
	}
	return nil
}
