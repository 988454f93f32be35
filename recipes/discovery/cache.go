package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/cache"
)

// ServiceCache is a directory of one service: its instances in memory, up to date. It is built on
// a [cache.Tree], whose promises it keeps: a snapshot is what one transaction has left, and a
// snapshot that is not Stale lacks no change for longer than a second. It writes nothing. It is safe for concurrent use.
//
// A node that cannot be read, decoded or called is [Skipped], and changes nothing for the others.
// While there is no connection the instances stay as they were read last. An instance whose process hangs
// or is cut off stays too, until the servers end its session. So a caller also needs to know
// which instances fail: see [ServiceProvider].
type ServiceCache struct {
	d       *ServiceDiscovery
	service string
	tree    *cache.Tree[[]byte]
	latest  atomic.Pointer[published]

	mu     sync.Mutex // guards the rest; decoding goes on under it, no I/O
	dir    directory
	seen   *cache.Snapshot[[]byte] // that dir has
	timer  *time.Timer             // nil while no instance is held
	began  chan struct{}           // closed with the first snapshot, or the end; nil while no Start waits for it
	ended  chan struct{}           // closed when the goroutine has ended
	starts int                     // under way, or done
	closed bool
}

// published is a snapshot as readers wait for it.
type published struct {
	Snapshot

	seq        int // counts the snapshots that readers can tell apart
	over       bool
	superseded chan struct{} // closed when there is a newer one
}

// CacheOption configures a [ServiceCache].
type CacheOption interface{ apply(*cacheSettings) error }

type cacheSettings struct {
	hold time.Duration
	tree []cache.Option
}

type cacheOptionFunc func(*cacheSettings) error

func (f cacheOptionFunc) apply(s *cacheSettings) error { return f(s) }

// WithHold keeps an instance whose node is gone for d, in case it comes back: Curator's Java
// clients delete and create the node of a live instance whenever they reconnect. 100 ms is enough for
// that. For that long a snapshot then has instances that have left. The default is 0.
func WithHold(d time.Duration) CacheOption {
	return cacheOptionFunc(func(s *cacheSettings) error {
		if d < 0 {
			return fmt.Errorf("discovery: WithHold of %v is negative", d)
		}
		s.hold = d
		return nil
	})
}

// WithLazyStart makes Start return at once. The service is read in the background, and is tried again for
// as long as the directory lives. Until then the snapshot is empty, and Stale with the reason. It is for a
// program that starts without its servers, with client.WithLazyConnect.
func WithLazyStart() CacheOption {
	return cacheOptionFunc(func(s *cacheSettings) error {
		s.tree = append(s.tree, cache.WithLazyStart())
		return nil
	})
}

// WithLimits bounds what the directory keeps, see [cache.WithLimits]. The default is
// [cache.DefaultLimits].
func WithLimits(l cache.Limits) CacheOption {
	return cacheOptionFunc(func(s *cacheSettings) error {
		s.tree = append(s.tree, cache.WithLimits(l))
		return nil
	})
}

// Cache returns a directory of a service, which is not yet started. It does no I/O. The service need
// not exist: it has no instances then, and shows them when it has.
func (d *ServiceDiscovery) Cache(service string, opts ...CacheOption) (*ServiceCache, error) {
	folder, err := d.folder(service)
	if err != nil {
		return nil, err
	}
	set := cacheSettings{tree: []cache.Option{cache.WithDepth(1), cache.WithRecipe("ServiceCache")}}
	for _, o := range opts {
		if o != nil {
			err = errors.Join(err, o.apply(&set))
		}
	}
	if err != nil {
		return nil, err
	}
	tree, err := cache.NewTree(d.c, folder, cache.Bytes, set.tree...)
	if err != nil {
		return nil, raised(err)
	}
	s := &ServiceCache{d: d, service: service, tree: tree, dir: directory{hold: set.hold}}
	s.dir.now = Snapshot{Service: service, Stale: true, Since: time.Now(), Err: errNotStarted}
	s.latest.Store(&published{Snapshot: s.dir.now, superseded: make(chan struct{})})
	return s, nil
}

var errNotStarted = errors.New("discovery: the directory is not started; call Start")

// Service is the name of the service.
func (s *ServiceCache) Service() string { return s.service }

// Start begins to follow the service, and returns with the first snapshot. ctx bounds the start
// alone: from then on the directory lasts until Close or the end of its client. A second call
// fails, and so does one after Close. After an error Start may be called again. See
// [cache.Tree.Start] for what ends it early.
func (s *ServiceCache) Start(ctx context.Context) error {
	ctxerr.Require(ctx)
	s.begin(1)
	if err := s.tree.Start(ctx); err != nil {
		s.begin(-1)
		return raised(err)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("%w before its start was done", ErrClosed)
	}
	s.began, s.ended = make(chan struct{}), make(chan struct{})
	began, first := s.began, s.tree.Snapshot().Zxid() > 0
	go s.follow(context.WithoutCancel(ctx)) // ends with the tree
	s.mu.Unlock()
	if first {
		<-began
	}
	if hook := s.d.c.Observer().Service; hook != nil {
		go s.observe(hook) // ends with the directory
	}
	return nil
}

// begin counts the calls of Start that have not failed.
func (s *ServiceCache) begin(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts += n
}

// unstarted returns an error if nobody has called Start, or if that has failed.
func (s *ServiceCache) unstarted() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.starts > 0 || s.closed {
		return nil
	}
	return errNotStarted
}

// follow publishes what the tree tells, until it ends.
func (s *ServiceCache) follow(ctx context.Context) {
	defer close(s.ended)
	for change, err := range s.tree.Changes(ctx) {
		if err != nil {
			s.finish(err)
			return
		}
		s.mu.Lock()
		differs := s.update()
		differs = s.dir.state(change.State.Phase != cache.Synced, change.State.Since, raised(change.State.Err)) || differs
		s.publish(differs, false)
		s.begins()
		s.mu.Unlock()
	}
}

// begins lets Start return. The caller holds s.mu.
func (s *ServiceCache) begins() {
	if s.began != nil {
		close(s.began)
		s.began = nil
	}
}

// update brings the directory to the newest snapshot of the tree. The caller holds s.mu.
func (s *ServiceCache) update() (differs bool) {
	now := s.tree.Snapshot()
	if now == s.seen || now.Zxid() == 0 {
		return false
	}
	var events []event
	for was, is := range now.Diff(s.seen) {
		e, news := s.event(was, is)
		if news {
			events = append(events, e)
		}
	}
	s.seen = now
	return s.dir.nodes(time.Now(), now.Zxid(), events)
}

// event is what has become of a node, and whether that matters.
func (s *ServiceCache) event(was, is *cache.Node[[]byte]) (e event, news bool) {
	switch {
	case is == nil:
		return event{node: was.Name()}, was.Path != s.tree.Path()
	case is.Path == s.tree.Path(): // the folder is no instance
		return event{}, false
	case was != nil && was.Err == nil && is.Err == nil && bytes.Equal(was.Value, is.Value):
		return event{}, false // set again, or made again, with the same bytes
	}
	e.node, e.err = is.Name(), is.Err
	if e.err == nil {
		e.instance, e.err = s.d.decode(s.service, e.node, is.Value)
	}
	if e.err == nil {
		e.err = usable(e.instance)
	}
	if e.err != nil {
		e.instance = nil
	}
	return e, true
}

// publish publishes what the directory has. The caller holds s.mu.
func (s *ServiceCache) publish(differs, over bool) {
	before := s.latest.Load()
	if before.over {
		return
	}
	now := &published{Snapshot: s.dir.now, seq: before.seq, over: over, superseded: make(chan struct{})}
	if differs || before.Zxid == 0 {
		now.seq++
	}
	s.latest.Store(now)
	close(before.superseded)
	s.wakeUp()
}

// wakeUp sets the timer to when a held instance must go. The caller holds s.mu.
func (s *ServiceCache) wakeUp() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if next, waits := s.dir.next(); waits && !s.latest.Load().over {
		s.timer = time.AfterFunc(time.Until(next), s.expire)
	}
}

// expire removes the held instances whose time has come.
func (s *ServiceCache) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir.expire(time.Now()) {
		s.publish(true, false)
		return
	}
	s.wakeUp()
}

// finish publishes the last snapshot.
func (s *ServiceCache) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dir.state(true, time.Now(), raised(err))
	s.publish(true, true)
	s.begins()
}

// Snapshot returns the newest snapshot. It costs a load of a pointer. It is empty, Stale and has Zxid 0
// until the service was read for the first time. After Close it stays, and is Stale.
func (s *ServiceCache) Snapshot() *Snapshot {
	now := s.latest.Load()
	if now.Zxid > 0 || now.over {
		return &now.Snapshot
	}
	none, state := now.Snapshot, s.tree.State()
	none.Since, none.Err = state.Since, raised(state.Err)
	return &none
}

// Changes yields the newest snapshot as soon as there is one, and then the newest each time that
// readers can tell it from the one before. What one transaction changes, and what comes while the loop
// is busy, is one snapshot. So a slow reader misses snapshots, never the last.
//
// The last pair has ErrClosed and the last snapshot, unless ctx ended first; the end of ctx ends the loop without a
// word. The loop runs on the caller's goroutine.
func (s *ServiceCache) Changes(ctx context.Context) iter.Seq2[*Snapshot, error] {
	ctxerr.Require(ctx)
	return func(yield func(*Snapshot, error) bool) {
		for seen := 0; ctx.Err() == nil; {
			now := s.latest.Load()
			switch {
			case now.over:
				yield(&now.Snapshot, ErrClosed)
				return
			case now.seq != seen:
				seen = now.seq
				if !yield(&now.Snapshot, nil) {
					return
				}
			}
			select {
			case <-now.superseded:
			case <-ctx.Done():
			}
		}
	}
}

// Wait waits for a snapshot with all transactions up to zxid, and returns it; with 0 for the first.
// The Stat of a write has its zxid. The error is that of ctx, or ErrClosed.
func (s *ServiceCache) Wait(ctx context.Context, zxid int64) (*Snapshot, error) {
	ctxerr.Require(ctx)
	if _, err := s.tree.Wait(ctx, zxid); err != nil {
		return nil, raised(err)
	}
	s.mu.Lock()
	if s.seen != nil { // otherwise the goroutine is about to
		s.publish(s.update(), false)
	}
	s.mu.Unlock()
	return s.until(ctx, func(now *published) bool { return now.Zxid >= max(zxid, 1) })
}

// WaitSynced waits until the directory is not Stale, and returns the snapshot. It is for one that
// has started with [WithLazyStart], or was cut off. The error is that of ctx, or ErrClosed; that of ctx
// says why the directory is Stale.
func (s *ServiceCache) WaitSynced(ctx context.Context) (*Snapshot, error) {
	ctxerr.Require(ctx)
	return s.until(ctx, func(now *published) bool { return !now.Stale })
}

func (s *ServiceCache) until(ctx context.Context, ready func(*published) bool) (*Snapshot, error) {
	for {
		now := s.latest.Load()
		switch {
		case now.over:
			return nil, ErrClosed
		case ready(now):
			return &now.Snapshot, nil
		}
		select {
		case <-now.superseded:
		case <-ctx.Done():
			if err := s.Snapshot().Err; err != nil {
				return nil, fmt.Errorf("%w: %w", err, ctxerr.Ended(ctx))
			}
			return nil, fmt.Errorf("discovery: wait for %s: %w", s.service, ctxerr.Ended(ctx))
		}
	}
}

// Close ends the directory and waits for its goroutines, but for that of Observer.Service, whose
// hook may block. A second call does nothing. It must not be
// called from a [Codec].
func (s *ServiceCache) Close() {
	s.mu.Lock()
	s.closed = true
	ended := s.ended
	s.mu.Unlock()
	s.tree.Close()
	if ended != nil {
		<-ended
		return
	}
	s.finish(cache.ErrClosed)
}
