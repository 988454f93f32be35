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

var errNotStarted = errors.New("cache: it is not started; call Start")

// follower is what the three kinds of caches have in common.
type follower[V any] struct {
	settings

	c     *client.Client
	path  string
	codec Codec[V]
	whole bool // the path is the root of the servers

	latest atomic.Pointer[version[V]]
	asked  chan struct{} // holds a token when there is a new Wait
	done   chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex    // guards the rest
	wanted  map[int64]int // the zxids that Waits wait for, and how many each
	started bool
	closed  bool
	cancel  context.CancelFunc
}

// Path is the path that the cache follows.
func (f *follower[V]) Path() string { return f.path }

func newFollower[V any](c *client.Client, path string, codec Codec[V], depth int, opts []Option) (*follower[V], error) {
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
	f := &follower[V]{settings: set, c: c, path: path, codec: codec, whole: full == "/", wanted: map[int64]int{}, asked: make(chan struct{}, 1), done: make(chan struct{})}
	f.latest.Store(&version[V]{
		Snapshot: Snapshot[V]{path: path}, state: State{Since: time.Now(), Err: errNotStarted}, superseded: make(chan struct{}),
	})
	return f, nil
}

// Start begins to follow the nodes of the cache and returns at once; WaitSynced waits
// until they are read. When ctx ends the cache ends, as by Close. A second call fails, and
// so does one after Close.
func (f *follower[V]) Start(ctx context.Context) error {
	ctxerr.Require(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return fmt.Errorf("start %s: %w", f.path, ErrClosed)
	case f.started:
		return fmt.Errorf("cache: start %s: it was started before; make a new cache", f.path)
	}
	f.started = true
	ctx, f.cancel = context.WithCancel(ctx) //nolint:gosec // run calls it
	// Waits that began before Start wait for the channel of the first version.
	begun := *f.latest.Load()
	begun.state = State{Since: time.Now()}
	f.latest.Store(&begun)
	k := newKeeper(f)
	go k.run(ctx) // ends with ctx, the client, or Close, which waits for it
	return nil
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
// client.CreateStat as Czxid, and the fencing token of a hold is one. If no snapshot
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

// WaitSynced waits until the state is Synced, and returns the snapshot. The error is
// that of ctx, or ErrClosed. If ctx ends, its error says what the state is.
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

// Close ends the cache and waits for its goroutine. The client removes the watches in
// the background. The snapshot stays readable. A second call does nothing.
func (f *follower[V]) Close() {
	f.mu.Lock()
	started, was := f.started, f.closed
	f.closed = true
	f.mu.Unlock()
	switch {
	case started:
		f.cancel()
		<-f.done
	case !was:
		f.end()
	}
}

// end publishes the last version.
func (f *follower[V]) end() {
	v := f.latest.Load()
	last := &version[V]{Snapshot: v.Snapshot, over: true, cause: v.cause, seq: v.seq, superseded: make(chan struct{})}
	last.state = State{Phase: Stale, Since: time.Now(), Err: ErrClosed}
	f.latest.Store(last)
	close(v.superseded)
}
