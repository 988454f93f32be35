package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
)

const (
	leastBatch = 16        // requests in one write
	mostBatch  = 1024      // and at most
	batchBytes = 512 << 10 // of data that the answers to one write should have

	leastPause  = 20 * time.Millisecond // after a fault
	mostPause   = time.Second
	limitPause  = 10 * time.Second // after a LimitError
	refusedWait = 30 * time.Second // until nodes that may not be read are tried again
)

// errBehind says that a server has not seen what the snapshot shows.
var errBehind = errors.New("cache: the server is behind the snapshot")

// keeper is the goroutine of a cache. The package comment has its rules.
type keeper[V any] struct {
	*follower[V]

	feed   inside.Feed // nil while there is none
	root   *treap[V]   // the newest readings
	bytes  int64       // of data in root
	newest string      // the node that came into root last
	doubts map[task]*doubt
	queue  []task // the tasks of doubts, in the order in which they are to be read
	batch  int    // how many to read next

	queued map[task]struct{} // the tasks of queue, each there once
	leaves []task            // perhaps in doubts, and bare
	large  bool              // doubts and queued have been large

	head  int64 // zxid of the newest answer on this connection
	valid int64 // every event of a transaction up to this one has been taken
	floor int64 // some reading in root is true from this transaction on, and not before

	resync    bool  // events may be missing after valid
	comparing bool  // events may be of transactions soon after since
	since     int64 // of the comparison
	plain     bool  // the servers cannot compare
	resynced  bool  // since the newest version
	refused   map[string]struct{}
	again     time.Time // when refused nodes are read again
	fault     error
	pause     time.Duration
}

func newKeeper[V any](f *follower[V]) *keeper[V] {
	return &keeper[V]{follower: f, doubts: map[task]*doubt{}, queued: map[task]struct{}{}, refused: map[string]struct{}{}, batch: leastBatch}
}

// first follows until there is the first snapshot, ctx ends, or trying again is in vain.
func (k *keeper[V]) first(ctx, alive context.Context) error {
	start, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(alive, end)()
	err := k.follow(start, func(err error) bool {
		return k.latest.Load().zxid > 0 || err != nil && (k.feed == nil || errors.Is(err, ErrLimit))
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

// run keeps the cache until ctx ends or the client is closed.
func (k *keeper[V]) run(ctx context.Context) {
	defer k.stop(true)
	defer k.leave()
	_ = k.follow(ctx, func(error) bool { return false }) // the state says why it is stale
}

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

var (
	errIdle         = errors.New("cache: there is nothing to do")
	errNotConnected = errors.New("cache: the client has no connection")
	errNotRead      = errors.New("not all nodes have been read yet")
)

// step does the next thing.
func (k *keeper[V]) step(ctx context.Context, now inside.Contact) error {
	if k.feed == nil {
		return k.open(ctx)
	}
	if err := k.absorb(); err != nil {
		k.leave()
		if errors.Is(err, client.ErrUnsupported) {
			k.oneShot = true // the client has come to older servers
			return nil
		}
		return err
	}
	if err := k.publish(now); err != nil {
		return err
	}
	switch {
	case !now.Connected:
		return errNotConnected
	case k.resync:
		return k.catchUp(ctx)
	case len(k.doubts) > 0:
		return k.read(ctx)
	case k.next() > 0:
		return k.ask(ctx)
	default:
		return errIdle
	}
}

// open makes a feed: of persistent watches, if the servers have them.
func (k *keeper[V]) open(ctx context.Context) error {
	mode := inside.FeedDeep
	switch {
	case k.oneShot:
		mode = inside.FeedOneShot
	case k.depth == 0:
		mode = inside.FeedNode
	}
	feed, err := inner.Feed(ctx, k.c, k.path, mode)
	if errors.Is(err, client.ErrUnsupported) && !k.oneShot {
		k.oneShot = true
		return nil
	}
	if err == nil {
		k.feed, k.resync = feed, true
	}
	return err
}

// leave closes the feed.
func (k *keeper[V]) leave() {
	if k.feed != nil {
		k.feed.Close()
		k.feed, k.resync = nil, true
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
	if errors.Is(err, ErrLimit) {
		pause = limitPause
		k.leave()
		k.revert()
	}
	_ = k.publish(now) // the next step sees its error
	until := time.Now().Add(pause)
	k.wait(ctx, now, pause)
	for errors.Is(err, ErrLimit) && ctx.Err() == nil && time.Now().Before(until) {
		if now = inner.Contact(k.c); now.Closed {
			return
		}
		k.wait(ctx, now, time.Until(until)) // no news shortens this pause
	}
}

// revert goes back to what the newest version has.
func (k *keeper[V]) revert() {
	v := k.latest.Load()
	k.root, k.valid, k.floor, k.bytes = v.root, v.zxid, v.zxid, 0
	k.root.walk("", "\xff", func(n *Node[V]) bool {
		k.bytes += int64(n.size)
		return true
	})
	clear(k.doubts)
	clear(k.queued)
	clear(k.refused)
	k.queue, k.leaves = nil, nil
}

// idle is how long to wait if nothing happens; 0 means for ever.
func (k *keeper[V]) idle() time.Duration {
	if len(k.refused) > 0 {
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
	} else if errors.Is(k.fault, ErrLimit) {
		ready = nil
	}
	select {
	case <-ready:
	case <-now.Changed:
	case <-asked:
	case <-late:
		k.retryRefused()
	case <-ctx.Done():
	}
}

// retryRefused doubts the nodes that may not be read, if it is time.
func (k *keeper[V]) retryRefused() {
	if now := time.Now(); !now.Before(k.again) {
		k.again = now.Add(refusedWait)
		for path := range k.refused {
			k.doubt(task{path, ofData}, k.valid-1)
		}
	}
}

// publish publishes a new version if the readings are a state that the tree had, or
// if the state of the cache has changed. The error is that of a state that is too
// large.
func (k *keeper[V]) publish(now inside.Contact) error {
	v := k.latest.Load()
	here := k.feed != nil && !k.resync && !k.stuck() && now.Connected && now.Connection == k.feed.Connection()
	zxid := k.head
	for _, m := range k.doubts {
		if zxid = min(zxid, m.bounds[0]); zxid < k.floor {
			break
		}
	}
	switch {
	case here && zxid > 0 && zxid >= k.floor && zxid >= v.zxid:
		if k.root != v.root {
			if err := k.exceeded(k.newest, 1); err != nil {
				return err
			}
		}
		if k.root != v.root || v.state.Phase != Synced || v.connection != now.Connection || zxid > v.zxid && k.next() > 0 {
			k.issue(zxid, State{Phase: Synced})
		}
	case v.state.Phase == Synced && !here:
		k.issue(v.zxid, State{Phase: Stale, Err: errors.Join(k.reason(), now.Err)})
	case v.state.Phase != Synced && k.news(v.state.Err):
		k.issue(v.zxid, State{Phase: v.state.Phase, Since: v.state.Since, Err: k.fault})
	}
	return nil
}

// news reports whether the fault says more than was said before. A limit counts for
// more than what befell the cache as it looked again.
func (k *keeper[V]) news(said error) bool {
	return k.fault != nil && !errors.Is(said, k.fault) && !errors.Is(k.fault, errNotConnected) &&
		(errors.Is(k.fault, ErrLimit) || !errors.Is(said, ErrLimit))
}

// stuck reports whether the cache knows of changes that it cannot read.
func (k *keeper[V]) stuck() bool { return len(k.doubts) > 0 && k.reason() != nil }

// reason is the fault, if that says more than how the client stands.
func (k *keeper[V]) reason() error {
	if errors.Is(k.fault, errNotConnected) || errors.Is(k.fault, errBehind) {
		return nil
	}
	return k.fault
}

// issue makes a version the newest. If it is Synced, it has the readings, which are
// the state at zxid.
func (k *keeper[V]) issue(zxid int64, state State) {
	v := k.latest.Load()
	next := &version[V]{Snapshot: v.Snapshot, state: state, seq: v.seq, superseded: make(chan struct{})}
	if state.Phase == Synced {
		next.root, next.zxid, next.connection = k.root, zxid, k.feed.Connection()
		if k.resynced {
			next.cause, k.resynced = Resync, false
		}
	}
	if next.root != v.root || state.Phase != v.state.Phase {
		next.seq++
	} else {
		next.cause = v.cause // a reader may see this version in place of v
	}
	if state.Phase == v.state.Phase {
		next.state.Since = v.state.Since
	} else {
		next.state.Since = time.Now()
	}
	k.latest.Store(next)
	close(v.superseded)
}
