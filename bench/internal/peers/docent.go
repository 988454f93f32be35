package peers

import (
	"context"
	"log/slog"

	"github.com/docent-go/docent/bench/internal/load"
	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// releaser is what all holds have.
type releaser interface {
	Release(ctx context.Context) error
}

// docentLock is any lock of this repository.
type docentLock[H releaser] struct {
	acquire func(ctx context.Context) (H, error)
	hold    H
}

func (l *docentLock[H]) Acquire(ctx context.Context) (err error) {
	l.hold, err = l.acquire(ctx)
	return err
}

func (l *docentLock[H]) Release(ctx context.Context) error { return l.hold.Release(ctx) }

func docent(ctx context.Context, spec *load.Spec) (*load.Field, error) {
	var clients []*client.Client
	field := &load.Field{Close: func(ctx context.Context) {
		for _, c := range clients {
			_ = c.CloseContext(ctx) // nothing depends on it any more
		}
	}}
	for i := range spec.Sessions {
		c, err := client.Connect(ctx, spec.Server(i), client.WithSessionTimeout(spec.Timeout),
			client.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	if spec.Kind == load.Counter || spec.Kind == load.Promoted {
		err := counters(field, spec, clients)
		return field, err
	}
	for i := range spec.Contenders {
		c, err := docentContender(clients[i%spec.Sessions], spec, i)
		if err != nil {
			return nil, err
		}
		field.Contenders = append(field.Contenders, c)
	}
	return field, nil
}

func docentContender(c *client.Client, spec *load.Spec, i int) (load.Contender, error) {
	path := spec.Path(i)
	switch spec.Kind {
	case load.Mutex:
		m, err := recipes.NewInterProcessMutex(c, path)
		if err != nil {
			return load.Contender{}, err
		}
		return load.Contender{Lock: &docentLock[*recipes.Hold]{acquire: m.Acquire}}, nil
	case load.ReadWrite:
		l, err := recipes.NewInterProcessReadWriteLock(c, path)
		if err != nil {
			return load.Contender{}, err
		}
		return load.Contender{
			Lock:  &docentLock[*recipes.Hold]{acquire: l.ReadLock().Acquire},
			Write: &docentLock[*recipes.WriteHold]{acquire: l.WriteLock().Acquire},
		}, nil
	case load.Semaphore:
		s, err := recipes.NewInterProcessSemaphoreV2(c, path, spec.Limit)
		if err != nil {
			return load.Contender{}, err
		}
		return load.Contender{Lock: &docentLock[*recipes.Lease]{acquire: func(ctx context.Context) (*recipes.Lease, error) {
			return s.Acquire(ctx, spec.Permits)
		}}}, nil
	case load.Multi:
		return docentMulti(c, path)
	case load.Counter, load.Promoted: // the contenders of a session share one
	}
	return load.Contender{}, ErrNoSuch
}

func docentMulti(c *client.Client, path string) (load.Contender, error) {
	var locks []recipes.Lock
	for _, member := range members(path) {
		m, err := recipes.NewInterProcessMutex(c, member)
		if err != nil {
			return load.Contender{}, err
		}
		locks = append(locks, m)
	}
	m, err := recipes.NewInterProcessMultiLock(locks...)
	if err != nil {
		return load.Contender{}, err
	}
	return load.Contender{Lock: &docentLock[*recipes.MultiHold]{acquire: m.Acquire}}, nil
}
