package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
)

var errStarted = errors.New("it is started already")

// Start begins to follow the nodes of the cache, and returns as soon as there is the first
// snapshot. ctx bounds the start alone: from then on the cache lasts until Close or the
// end of its client. With [WithLazyStart] Start returns at once. A second call fails, and
// so does one after Close.
//
// Start tries again until ctx ends, but not in vain. A tree that is too large is a
// [*LimitError] at once. What the client refuses, or gives up by its retry policy, ends
// the start too, as it ends the client's own calls. If ctx ends, the error matches
// ctx.Err() and says what was missing. Close makes Start return [ErrClosed].
//
// After an error the cache is as it was before: nothing runs, the client removes the watches
// in the background, and Start may be called again. Loops of Changes and calls of Wait that
// began before go on waiting.
func (f *follower[V]) Start(ctx context.Context) (err error) {
	ctxerr.Require(ctx)
	alive, err := f.begin(ctx)
	if err != nil {
		return fmt.Errorf("cache: start %s: %w", f.path, err)
	}
	k, stands := newKeeper(f), f.lazy
	defer func() {
		if stands {
			go k.run(alive) // ends with the client, or by Close, which waits for it
			return
		}
		k.leave()
		f.fail(err)
	}()
	if stands {
		return nil
	}
	if err := k.first(ctx, alive); err != nil {
		return fmt.Errorf("cache: start %s: %w", f.path, err)
	}
	stands = true
	return nil
}

// run keeps the cache until ctx ends or the client is closed.
func (k *keeper[V]) run(ctx context.Context) {
	defer k.stop(true)
	defer k.leave()
	_ = k.follow(ctx, func(error) bool { return false }) // the state says why it is stale
}

// begin begins a life, which does not end with ctx.
func (f *follower[V]) begin(ctx context.Context) (alive context.Context, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, ErrClosed
	case f.life != nil:
		return nil, errStarted
	}
	alive, end := context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // stop and Close call it, of a generic life
	f.life = &life[V]{end: end, ended: make(chan struct{})}
	f.restate(State{Since: time.Now()})
	if hook := f.c.Observer().Cache; hook != nil {
		go f.observe(f.life, f.latest.Load(), hook)
	}
	return alive, nil
}

// restate changes the state of a cache that has no snapshot yet. Waits that began before
// go on waiting for the next version.
func (f *follower[V]) restate(s State) {
	f.issuing.Lock()
	defer f.issuing.Unlock()
	v := *f.latest.Load()
	v.state = s
	f.latest.Store(&v)
}

// fail ends the life of a Start that has failed.
func (f *follower[V]) fail(err error) {
	f.mu.Lock()
	f.life.err = err
	f.mu.Unlock()
	f.stop(errors.Is(err, client.ErrClosed))
}

// stop ends the life. The cache is over then, or may be started again.
func (f *follower[V]) stop(over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = f.closed || over
	if f.closed {
		f.end()
	}
	if f.life.last = f.latest.Load(); !f.closed {
		f.restate(State{Since: time.Now(), Err: errNotStarted})
	}
	f.life.end()
	close(f.life.ended)
	f.life = nil
}

// Close ends the cache and waits for its goroutine. If a codec runs, Close does not wait: the
// goroutine ends when the codec has returned, and no codec is called any more. The client removes
// the watches in the background. The snapshot stays readable. A second call does nothing.
func (f *follower[V]) Close() {
	f.mu.Lock()
	life, was, busy := f.life, f.closed, f.busy
	f.closed = true
	f.mu.Unlock()
	if life != nil {
		life.end()
	}
	switch {
	case life != nil && !busy:
		<-life.ended
	case !was:
		f.end()
	}
}

// end publishes the last version.
func (f *follower[V]) end() {
	f.issuing.Lock()
	defer f.issuing.Unlock()
	v := f.latest.Load()
	if v.over {
		return
	}
	last := &version[V]{Snapshot: v.Snapshot, over: true, cause: v.cause, seq: v.seq, sums: v.sums, superseded: make(chan struct{})}
	last.state = State{Phase: Stale, Since: time.Now(), Err: ErrClosed}
	f.latest.Store(last)
	close(v.superseded)
}
