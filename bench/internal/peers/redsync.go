package peers

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	pools "github.com/go-redsync/redsync/v4/redis"
	goredis9 "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"

	"github.com/docent-go/docent/bench/internal/load"
)

// redsyncLocker is redsync's Mutex. Its expiry is redsync's own, and so is the delay of
// 50 to 250 ms between two tries; only the number of tries is not limited to 32.
type redsyncLocker struct{ *redsync.Mutex }

// Acquire tries until it has the lock.
func (l redsyncLocker) Acquire(ctx context.Context) error { return l.LockContext(ctx) }

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
		m := syncs[i%spec.Sessions].NewMutex(name, redsync.WithTries(math.MaxInt))
		field.Contenders = append(field.Contenders, load.Contender{Lock: redsyncLocker{m}})
	}
	return field, nil
}
