package peers

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	pools "github.com/go-redsync/redsync/v4/redis"
	goredis9 "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"

	"github.com/docent-go/docent/bench/internal/load"
)

// redsyncLocker is redsync's Mutex with its own expiry.
type redsyncLocker struct{ *redsync.Mutex }

// Acquire tries until it has the lock, as LockContext does, with the same delay between
// two tries, but more than 32 times. It gives up between tries only: redsync leaves its
// key behind when the context ends within one.
func (l redsyncLocker) Acquire(ctx context.Context) error {
	const least, most = 50 * time.Millisecond, 250 * time.Millisecond
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		if l.TryLockContext(context.WithoutCancel(ctx)) == nil {
			return nil
		}
		timer.Reset(least + rand.N(most-least))
	}
}

// Release deletes the key if it is still this holder's.
func (l redsyncLocker) Release(ctx context.Context) error {
	ok, err := l.UnlockContext(ctx)
	if err == nil && !ok {
		err = errors.New("redsync: the lock was no longer held")
	}
	return err
}

// redis connects to every server for each session: redsync wants most of them.
func redis(spec *load.Spec) (*load.Field, error) {
	if spec.Kind != load.Mutex {
		return nil, ErrNoSuch
	}
	const patience = time.Minute // for a connection of the pool, in which thousands may poll
	var (
		clients []*goredis.Client
		syncs   []*redsync.Redsync
	)
	for range spec.Sessions {
		var all []pools.Pool
		for _, addr := range spec.Addrs {
			c := goredis.NewClient(&goredis.Options{Addr: addr, PoolTimeout: patience})
			clients = append(clients, c)
			all = append(all, goredis9.NewPool(c))
		}
		syncs = append(syncs, redsync.New(all...))
	}
	field := &load.Field{Polls: true, Close: func(context.Context) {
		for _, c := range clients {
			_ = c.Close() // nothing depends on it any more
		}
	}}
	for i := range spec.Contenders {
		name := strings.TrimPrefix(spec.Path(i), "/")
		m := syncs[i%spec.Sessions].NewMutex(name)
		field.Contenders = append(field.Contenders, load.Contender{Lock: redsyncLocker{m}})
	}
	return field, nil
}
