package peers

import (
	"context"
	"time"

	"github.com/docent-go/docent/bench/internal/load"
	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
)

// counter is a lock whose acquire adds 1.
type counter struct{ n *shared.DistributedAtomicLong }

func (c counter) Acquire(ctx context.Context) error {
	_, err := c.n.Increment(ctx)
	return err
}

func (c counter) Release(context.Context) error { return nil }

// counters adds the contenders of an atomic number to field. Those of one session share
// what they use, as goroutines of one process do.
func counters(field *load.Field, spec *load.Spec, clients []*client.Client) error {
	var all []*shared.DistributedAtomicLong
	for _, c := range clients {
		var opts []shared.AtomicOption
		if spec.Kind == load.Promoted {
			lock, err := recipes.NewInterProcessMutex(c, spec.Path(0)+"-lock")
			if err != nil {
				return err
			}
			opts = append(opts, shared.WithTries(retry.NTimes(3, time.Millisecond)),
				shared.PromotedToLock(lock, time.Minute, retry.NTimes(1000, time.Millisecond)))
		}
		n, err := shared.NewDistributedAtomicLong(c, spec.Path(0), opts...)
		if err != nil {
			return err
		}
		all = append(all, n)
	}
	for i := range spec.Contenders {
		field.Contenders = append(field.Contenders, load.Contender{Lock: counter{all[i%len(all)]}})
	}
	return nil
}
