package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
)

// follower is what the three kinds of caches have in common.
type follower[V any] struct {
	settings

	c      *client.Client
	recipe string // the type of the cache
	path   string
	codec  Codec[V]
	whole  bool // the path is the root of the servers

	latest atomic.Pointer[version[V]]
	asked  chan struct{} // holds a token when there is a new Wait

	issuing sync.Mutex // held to store latest

	mu     sync.Mutex    // guards the rest
	wanted map[int64]int // the zxids that Waits wait for, and how many each
	life   *life[V]      // nil while it is not started
	closed bool
	busy   bool // a codec runs
}

// life is what lies between Start and the end.
type life[V any] struct {
	end   context.CancelFunc
	ended chan struct{} // closed when nothing runs any more
	last  *version[V]   // of the life; set before ended is closed, as is err
	err   error         // of a Start that has failed
}

var errNotStarted = errors.New("cache: it is not started; call Start")

// Path is the path that the cache follows.
func (f *follower[V]) Path() string { return f.path }

func newFollower[V any](c *client.Client, recipe, path string, codec Codec[V], depth int, opts []Option) (*follower[V], error) {
	switch {
	case c == nil:
		return nil, errors.New("cache: the client is nil; make one with client.Connect")
	case codec == nil:
		return nil, errors.New("cache: the codec is nil; Bytes, Text and JSON are some")
	}
	set, err := newSettings(depth, opts)
	if err != nil {
		return nil, err
	}
	full, err := inner.ServerPath(c, path)
	if err != nil {
		return nil, fmt.Errorf("cache: path: %w", err)
	}
	if set.recipe != "" {
		recipe = set.recipe
	}
	f := &follower[V]{settings: set, c: c, recipe: recipe, path: path, codec: codec, whole: full == "/", wanted: map[int64]int{}, asked: make(chan struct{}, 1)}
	f.latest.Store(&version[V]{
		Snapshot: Snapshot[V]{path: path}, state: State{Since: time.Now(), Err: errNotStarted}, superseded: make(chan struct{}),
	})
	return f, nil
}

// Snapshot returns the newest snapshot. It costs a load of a pointer. It is empty
// until the nodes have been read for the first time, and stays after Close.
func (f *follower[V]) Snapshot() *Snapshot[V] { return &f.latest.Load().Snapshot }

// State returns the state. It looks at the connection itself, so it never says Synced
// of a connection that is known to be gone.
func (f *follower[V]) State() State { return f.latest.Load().at(inner.Contact(f.c)) }

// Synced reports whether the state is Synced.
func (f *follower[V]) Synced() bool { return f.State().Phase == Synced }

// Wait waits for a snapshot with all transactions up to zxid, and returns it. The zxid
// may come from any client. The Stat of client.Set has it as Mzxid, the Stat of
// client.CreateStat as Czxid, the results of client.Multi and of a Guard as Zxid, and the
// fencing token of a hold is one. A delete in a transaction is known so, too. If no snapshot
// reaches zxid by itself, Wait makes the cache ask the servers. With zxid 0 Wait waits
// for the first snapshot. The error is that of ctx, or ErrClosed. After an error the
// cache asks no more for that zxid.
func (f *follower[V]) Wait(ctx context.Context, zxid int64) (*Snapshot[V], error) {
	if v := f.latest.Load(); v.zxid >= max(zxid, 1) {
		return &v.Snapshot, nil
	}
	defer f.want(zxid)()
	return f.until(ctx, func(v *version[V]) bool { return v.zxid >= max(zxid, 1) })
}

// want notes that a Wait waits for zxid, and wakes the goroutine of the cache.
func (f *follower[V]) want(zxid int64) (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted[zxid]++
	select {
	case f.asked <- struct{}{}:
	default:
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.wanted[zxid]--; f.wanted[zxid] == 0 {
			delete(f.wanted, zxid)
		}
	}
}

// next is the smallest zxid larger than that of the newest version that a Wait waits
// for, or 0.
func (f *follower[V]) next() (zxid int64) {
	now := f.latest.Load().zxid
	f.mu.Lock()
	defer f.mu.Unlock()
	for z := range f.wanted {
		if z > now && (zxid == 0 || z < zxid) {
			zxid = z
		}
	}
	return zxid
}

// WaitSynced waits until the state is Synced, and returns the snapshot. It is for a cache
// that is stale, or that has started with [WithLazyStart]. The error is that of ctx, or
// ErrClosed. If ctx ends, its error says what the state is.
func (f *follower[V]) WaitSynced(ctx context.Context) (*Snapshot[V], error) {
	return f.until(ctx, func(v *version[V]) bool { return v.at(inner.Contact(f.c)).Phase == Synced })
}

func (f *follower[V]) until(ctx context.Context, ready func(*version[V]) bool) (*Snapshot[V], error) {
	for {
		v := f.latest.Load()
		switch {
		case ready(v):
			return &v.Snapshot, nil
		case v.over:
			return nil, ErrClosed
		}
		select {
		case <-v.superseded:
		case <-ctx.Done():
			return nil, fmt.Errorf("cache: %s is %v: %w", f.path, f.State(), ctxerr.Ended(ctx))
		}
	}
}
