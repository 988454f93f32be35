package watches

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

// ErrReaderClosed is why the watch of a reader ends that has closed it.
var ErrReaderClosed = fmt.Errorf("%w: the watch was closed by its reader", fate.ErrClosed)

// feedQueue is how many events wait for the reader of a feed. When there are more, one
// FeedMissed takes the place of all.
const feedQueue = 1 << 14

// Names are how a namespace writes paths.
type Names struct {
	Top      string                       // the path of its root, as the servers know it
	Full     func(string) (string, error) // a path as the servers know it
	Stripped func(string) string          // such a path as the caller knows it
}

// feed is an [inside.Feed]: the reader of a persistent watch, or one whose reads leave one-shot
// watches.
type feed struct {
	names      Names
	all        *Watches
	full       string        // the path of the persistent watch
	oneShots   *listener     // nil if there is a persistent watch
	ready      chan struct{} // closed with the first FeedMissed
	some       chan struct{}
	connection int // the connection of the last FeedMissed that was taken; of the reader alone

	mu     sync.Mutex // guards the rest; a leaf
	begun  bool       // ready is closed
	events []inside.FeedEvent
	queued int // the connection of the FeedMissed at the head of events
	err    error
}

func (a *Watches) newFeed(names Names) *feed {
	return &feed{names: names, all: a, ready: make(chan struct{}), some: make(chan struct{}, 1)}
}

// Lone makes a feed whose reads leave one-shot watches. It hears of new connections. The error
// says that the client is closed.
func (a *Watches) Lone(names Names) (inside.Feed, error) {
	f := a.newFeed(names)
	f.oneShots = newListener(f)
	return f, a.follow(f.oneShots)
}

// Follow makes a feed that reads by a persistent watch on the node at full, and on all below if
// deep. It waits, within ctx, until the watch stands. After an error nothing is left.
func (a *Watches) Follow(ctx context.Context, names Names, full string, deep bool) (inside.Feed, error) {
	f := a.newFeed(names)
	f.full = full
	err := a.Add(full, f, deep)
	if err == nil {
		select {
		case <-f.ready:
			err = f.ended()
		case <-ctx.Done():
			err = ctxerr.Ended(ctx)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *feed) ended() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *feed) Ready() <-chan struct{} { return f.some }

func (f *feed) Take() ([]inside.FeedEvent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.events
	f.events = nil
	if len(events) > 0 && events[0].Kind == inside.FeedMissed {
		f.connection = f.queued
	}
	return events, f.err
}

// Missed says that events before now may be missing. The caller holds all.mu.
func (f *feed) Missed(error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open()
	f.gap()
}

// open closes ready, once.
func (f *feed) open() {
	if !f.begun {
		f.begun = true
		close(f.ready)
	}
}

func (f *feed) gap() {
	f.queued = f.all.table.connection
	f.events = []inside.FeedEvent{{Kind: inside.FeedMissed, Zxid: -1}}
	f.signal()
}

// Tell adds an event. The caller holds all.mu.
func (f *feed) Tell(ev wire.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind, known := feedKinds[ev.Type]
	switch {
	case !f.begun || f.err != nil:
	case !known || len(f.events) >= feedQueue:
		f.gap()
	default:
		f.events = append(f.events, inside.FeedEvent{Kind: kind, Path: f.names.Stripped(ev.Path), Zxid: ev.Zxid, After: ev.After})
		f.signal()
	}
}

var feedKinds = map[zk.EventType]inside.FeedKind{ //nolint:gochecknoglobals // a constant table
	zk.EventNodeCreated: inside.FeedCreated, zk.EventNodeDeleted: inside.FeedDeleted,
	zk.EventNodeDataChanged: inside.FeedData, zk.EventNodeChildrenChanged: inside.FeedChildren,
}

func (f *feed) signal() {
	select {
	case f.some <- struct{}{}:
	default:
	}
}

// End ends the feed: the client is closed, or the servers do not know its watch.
func (f *feed) End(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		f.open()
		f.signal()
	}
}

func (f *feed) Connection() int { return f.connection }

func (f *feed) Session() (id int64, timeout time.Duration) {
	h, err := f.at()
	if err != nil {
		return 0, 0
	}
	return h.s.ID(), h.s.Link().Timeout()
}

func (f *feed) Close() {
	f.End(ErrReaderClosed)
	if f.oneShots != nil {
		f.all.unfollow(f.oneShots)
		return
	}
	f.all.Remove(f.full, f)
}
