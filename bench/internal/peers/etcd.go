package peers

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/docent-go/docent/bench/internal/load"
)

const dialTimeout = 10 * time.Second

// etcdLocker is etcd's concurrency.Mutex.
type etcdLocker struct{ *concurrency.Mutex }

// Acquire waits for the lock.
func (l etcdLocker) Acquire(ctx context.Context) error { return l.Lock(ctx) }

// Release deletes the key.
func (l etcdLocker) Release(ctx context.Context) error { return l.Unlock(ctx) }

// etcd connects a client for each session. Two contenders of one of etcd's own sessions
// would hold the lock together, so each contender has one of those.
func etcd(ctx context.Context, spec *load.Spec) (*load.Field, error) {
	if spec.Kind != load.Mutex {
		return nil, ErrNoSuch
	}
	var (
		clients  []*clientv3.Client
		sessions []*concurrency.Session
	)
	for i := range spec.Sessions {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{spec.Server(i)}, DialTimeout: dialTimeout, Logger: zap.NewNop()})
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	field := &load.Field{}
	for i := range spec.Contenders {
		// The context ends the session's heartbeats, so it is not one of this call.
		s, err := concurrency.NewSession(clients[i%spec.Sessions], concurrency.WithTTL(int(spec.Timeout.Seconds())),
			concurrency.WithContext(context.WithoutCancel(ctx)))
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, s)
		field.Contenders = append(field.Contenders, load.Contender{Lock: etcdLocker{concurrency.NewMutex(s, spec.Path(i))}})
	}
	field.Close = func(context.Context) { closeEtcd(clients, sessions) }
	return field, nil
}

// closeEtcd revokes the leases, many at a time, and closes the clients.
func closeEtcd(clients []*clientv3.Client, sessions []*concurrency.Session) {
	const atOnce = 64
	var (
		wg    sync.WaitGroup
		slots = make(chan struct{}, atOnce)
	)
	for _, s := range sessions {
		slots <- struct{}{}
		wg.Go(func() {
			_ = s.Close() // nothing depends on it any more
			<-slots
		})
	}
	wg.Wait()
	for _, c := range clients {
		_ = c.Close()
	}
}
