package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
)

// first follows until there is the first snapshot, ctx ends, or trying again is in vain.
func (k *keeper[V]) first(ctx, alive context.Context) error {
	start, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(alive, end)()
	err := k.follow(start, func(err error) bool {
		return k.latest.Load().zxid > 0 || err != nil && (k.feed == nil || errors.Is(err, ErrLimit) || errors.Is(err, errLongList))
	})
	switch ended := ctxerr.Ended(ctx); {
	case k.latest.Load().zxid > 0:
		return nil
	case alive.Err() != nil:
		return ErrClosed
	case ended == nil, errors.Is(err, client.ErrNotConnected):
		return err
	default:
		return fmt.Errorf("%w: %w", ended, cmp.Or(k.State().Err, errNotRead))
	}
}

var (
	errIdle    = errors.New("cache: there is nothing to do")
	errNotRead = errors.New("not all nodes have been read yet, or they change faster than that")
)

// follow does one thing after the other until ctx ends, the client is closed, or enough
// says so of the end of a step.
func (k *keeper[V]) follow(ctx context.Context, enough func(error) bool) (err error) {
	for ctx.Err() == nil {
		now := inner.Contact(k.c)
		if now.Closed {
			return ErrClosed
		}
		err = k.step(ctx, now)
		switch {
		case errors.Is(err, client.ErrClosed):
			return ErrClosed
		case enough(err):
			return err
		case errors.Is(err, errIdle):
			k.fault, k.pause = nil, 0
			k.shrink()
			k.wait(ctx, now, k.idle())
		case err != nil:
			k.stumble(ctx, now, err)
		default:
			k.fault, k.pause = nil, 0
		}
	}
	return err
}

// step does the next thing.
func (k *keeper[V]) step(ctx context.Context, now inside.Contact) error {
	if k.feed == nil {
		return k.open(ctx)
	}
	if err := k.absorb(); err != nil {
		k.leave()
		return k.older(err) // the client may have come to older servers
	}
	if err := k.publish(now); err != nil {
		return err
	}
	switch {
	case !now.Connected:
		return errNotConnected
	case k.interrupted:
		return k.catchUp(ctx)
	case len(k.doubts) > 0:
		return k.older(k.read(ctx))
	case k.next() > 0:
		return k.ask(ctx)
	default:
		return errIdle
	}
}

// open makes a feed: of one persistent watch, if the servers have such and the cache is no
// [Children], which would hear of all nodes below.
func (k *keeper[V]) open(ctx context.Context) error {
	k.oneShot = k.follower.oneShot || k.narrow
	mode := inside.FeedDeep
	switch {
	case k.oneShot:
		mode = inside.FeedOneShot
	case k.depth == 0:
		mode = inside.FeedNode
	}
	feed, err := inner.Feed(ctx, k.c, k.path, mode)
	if err != nil {
		return k.older(err)
	}
	k.feed, k.interrupted = feed, true
	return nil
}

// older goes on with one-shot watches if err says that the servers lack what the others need.
func (k *keeper[V]) older(err error) error {
	if !errors.Is(err, client.ErrUnsupported) || k.oneShot {
		return err
	}
	k.leave()
	k.follower.oneShot = true
	return nil
}

// leave closes the feed.
func (k *keeper[V]) leave() {
	if k.feed != nil {
		k.feed.Close()
		k.feed, k.interrupted = nil, true
	}
}

// stumble deals with a fault: it says what it was, and waits before the next try.
func (k *keeper[V]) stumble(ctx context.Context, now inside.Contact, err error) {
	if ctx.Err() != nil {
		return
	}
	k.pause = min(max(2*k.pause, leastPause), mostPause)
	pause := k.pause
	if errors.Is(err, errNotConnected) {
		pause = mostPause // the next state comes earlier
	}
	k.fault = err
	limited := limited(err)
	if limited {
		pause = k.longer()
		k.leave()
		k.rounds.begin(nil, 0)
	}
	_ = k.publish(now) // the next step sees its error
	until := time.Now().Add(pause)
	k.wait(ctx, now, pause)
	for limited && ctx.Err() == nil && time.Now().Before(until) {
		if now = inner.Contact(k.c); now.Closed {
			return
		}
		k.wait(ctx, now, time.Until(until)) // no news shortens this pause
	}
}

// longer is the pause after a limit. It grows, as each look costs the servers as much as the
// whole tree. From the second on it is drawn, so that the caches of a fleet do not look together.
func (k *keeper[V]) longer() time.Duration {
	if k.long == 0 {
		k.long = limitPause
		return k.long
	}
	k.long = min(2*k.long, longPause)
	return k.long/2 + rand.N(k.long/2)
}

// idle is how long to wait if nothing happens; 0 means for ever.
func (k *keeper[V]) idle() time.Duration {
	if len(k.unreadable) > 0 {
		return max(time.Until(k.again), 1)
	}
	return 0
}

// wait waits until there may be something to do.
func (k *keeper[V]) wait(ctx context.Context, now inside.Contact, most time.Duration) {
	var ready <-chan struct{}
	if k.feed != nil {
		ready = k.feed.Ready()
	}
	var late <-chan time.Time
	if most > 0 {
		t := time.NewTimer(most)
		defer t.Stop()
		late = t.C
	}
	var asked <-chan struct{}
	if k.fault == nil || errors.Is(k.fault, errBehind) {
		asked = k.asked
	} else if k.feed == nil {
		ready = nil
	}
	select {
	case <-ready:
	case <-now.Changed:
	case <-asked:
	case <-late:
		k.retryUnreadable()
	case <-ctx.Done():
	}
}

// retryUnreadable reads the nodes that may not be read again, if it is time.
func (k *keeper[V]) retryUnreadable() {
	if now := time.Now(); len(k.unreadable) > 0 && !now.Before(k.again) {
		k.again = now.Add(refusedWait)
		for path := range k.unreadable {
			k.doubt(task{path, ofData}, false)
		}
	}
}
