package client

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

const (
	// feedQueue is how many events wait for the reader of a feed. When there are
	// more, one FeedMissed takes the place of all.
	feedQueue = 1 << 14
	// comparedBytes is how many bytes of paths one request compares.
	comparedBytes = 128 << 10
)

// errOtherConnection says that the connection is not the one that the reader of a feed
// knows.
var errOtherConnection = errors.New("client: the connection is another one")

// feed is an [inside.Feed]. With persistent watches it is the reader of one; the
// watches that Compare leaves are one-shot watches all the same.
type feed struct {
	o       *ops
	all     *lastingWatches
	changes *Changes // of the persistent watch; nil if there are one-shot watches only
	some    chan struct{}
	line    int // the connection of the last FeedMissed that was taken; of the reader alone

	held map[watchKey]*sharedWatch // that tell this feed; guarded by all.mu

	mu     sync.Mutex // guards the rest; a leaf
	events []inside.FeedEvent
	queued int // the connection of the FeedMissed at the head of events
	err    error
}

func openFeed(ctx context.Context, c *Client, path string, mode inside.FeedMode) (inside.Feed, error) {
	f := &feed{o: &c.ops, all: c.core.lasting, some: make(chan struct{}, 1), held: map[watchKey]*sharedWatch{}}
	w := &Changes{
		o: f.o, path: path, recursive: mode == inside.FeedDeep, feed: f,
		ready: make(chan struct{}), over: make(chan struct{}), some: make(chan struct{}, 1),
	}
	if mode == inside.FeedOneShot {
		return f, f.begin(ctx, path)
	}
	f.changes = w
	if err := w.begin(ctx); err != nil {
		w.Close()
		return nil, err
	}
	return f, nil
}

// begin waits for a connection, and lets the feed begin with a FeedMissed.
func (f *feed) begin(ctx context.Context, path string) error {
	if err := f.o.perform(ctx, nil, "watch", path, reads, func(context.Context, try) error { return nil }); err != nil {
		return err
	}
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if f.all.over != nil {
		return f.all.over
	}
	f.all.feeds[f] = struct{}{}
	f.missed()
	return nil
}

func (f *feed) Ready() <-chan struct{} { return f.some }

func (f *feed) Take() ([]inside.FeedEvent, error) {
	var over error
	if f.changes != nil {
		over = f.changes.ended()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.events
	f.events = nil
	if len(events) > 0 && events[0].Kind == inside.FeedMissed {
		f.line = f.queued
	}
	if over == nil {
		over = f.err
	}
	return events, over
}

// missed says that events before now may be missing. The caller holds all.mu.
func (f *feed) missed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.missedLocked()
}

func (f *feed) missedLocked() {
	f.queued = f.all.line
	f.events = []inside.FeedEvent{{Kind: inside.FeedMissed, Zxid: -1}}
	f.signal()
}

// put adds an event. The caller holds all.mu.
func (f *feed) put(kind ChangeKind, full string, ev wire.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.events) >= feedQueue {
		f.missedLocked()
		return
	}
	f.events = append(f.events, inside.FeedEvent{Kind: feedKinds[kind], Path: f.o.stripped(full), Zxid: ev.Zxid, After: ev.After})
	f.signal()
}

var feedKinds = [...]inside.FeedKind{ //nolint:gochecknoglobals // a constant table
	ChangeCreated: inside.FeedCreated, ChangeDeleted: inside.FeedDeleted, ChangeData: inside.FeedData, ChangeChildren: inside.FeedChildren,
}

func (f *feed) signal() {
	select {
	case f.some <- struct{}{}:
	default:
	}
}

// end ends a feed of one-shot watches: the client is closed.
func (f *feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.signal()
}

// firedLocked is called when a watch that tells the feed is over.
func (f *feed) firedLocked(w *sharedWatch) {
	delete(f.held, w.key)
	kind, known := kinds[w.event]
	switch {
	case w.err == nil && known:
		f.put(kind, w.key.path, w.hub.event)
	case errors.Is(w.err, errReconnected), w.hub.over != nil: // the next connection says FeedMissed
	default:
		f.missed()
	}
}

// at returns the hub of the connection that the reader knows.
func (f *feed) at() (*hub, error) {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if f.all.hub == nil || f.all.line != f.line || f.all.hub.over != nil {
		return nil, errOtherConnection
	}
	// While the client sets the persistent watch again for another reader, events are
	// lost. A FeedMissed follows.
	if f.changes != nil && !f.all.stands(f.all.paths[f.changes.full]) {
		return nil, errOtherConnection
	}
	return f.all.hub, nil
}

// exchange sends requests on the connection that the reader knows. No answer of
// another connection counts: hub.up runs before the first of its answers.
func (f *feed) exchange(ctx context.Context, h *hub, xs []*wire.Exchange) error {
	if err := h.s.link.Do(ctx, xs...); err != nil {
		return err
	}
	now, err := f.at()
	if err == nil && now != h {
		err = errOtherConnection
	}
	return err
}

func (f *feed) Sync(ctx context.Context) (int64, error) {
	h, err := f.at()
	if err != nil {
		return 0, err
	}
	x := asked(wire.OpSync, max(f.o.prefix, "/"))
	if err := f.exchange(ctx, h, []*wire.Exchange{x}); err != nil {
		return 0, err
	}
	return x.Reply.Zxid, h.s.answer(x)
}

func (f *feed) Read(ctx context.Context, asks []inside.Ask) ([]inside.Answer, error) {
	h, err := f.at()
	if err != nil {
		return nil, err
	}
	xs := make([]*wire.Exchange, len(asks))
	armed := make([]*sharedWatch, len(asks))
	busy := make([]error, len(asks))
	for i, ask := range asks {
		key, err := f.key(ask)
		if err != nil {
			return nil, err
		}
		xs[i] = asked(key.op, key.path)
		if f.changes != nil {
			continue
		}
		switch armed[i], err = f.hold(ctx, h, key); {
		case errors.Is(err, errOtherReader):
			busy[i] = err
		case err != nil:
			f.arm(h, armed[:i], xs[:i], err)
			return nil, err
		}
		xs[i].Request.Watch = armed[i] != nil
	}
	free := make([]*wire.Exchange, 0, len(xs))
	for i, x := range xs {
		if busy[i] == nil {
			free = append(free, x)
		}
	}
	if len(free) > 0 {
		err = f.exchange(ctx, h, free)
	}
	f.arm(h, armed, xs, err)
	if err != nil {
		return nil, err
	}
	answers := make([]inside.Answer, len(xs))
	for i, x := range xs {
		if busy[i] != nil {
			answers[i].Err = busy[i]
			continue
		}
		if x.Err() != nil {
			return nil, x.Err()
		}
		answers[i] = inside.Answer{
			Zxid: x.Reply.Zxid, Err: h.s.answer(x), Data: x.Reply.Data, Names: x.Reply.Names, Stat: x.Reply.Stat,
			Unwatched: f.changes == nil && !f.holds(h, x),
		}
	}
	return answers, nil
}

// holds reports whether the watch of the read x stands, for all that is known.
func (f *feed) holds(h *hub, x *wire.Exchange) bool {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	w := f.held[watchKey{x.Request.Op, x.Request.Path}]
	return w != nil && w.hub == h
}

func (f *feed) key(ask inside.Ask) (watchKey, error) {
	full, err := f.o.full(ask.Path)
	key := watchKey{wire.OpGetData, full}
	switch {
	case ask.Children:
		key.op = wire.OpGetChildren
	case ask.Missing:
		key.op = wire.OpExists
	}
	return key, err
}

// hold makes the watch on key tell the feed. It returns the watch if a request of the
// feed has to arm it, and nil if it stands. The error matches errOtherReader while
// another reader arms the watch. hold does not wait for that reader, which may wait
// for the feed.
func (f *feed) hold(ctx context.Context, h *hub, key watchKey) (*sharedWatch, error) {
	f.all.mu.Lock()
	w := f.held[key]
	f.all.mu.Unlock()
	if w != nil && w.hub == h {
		return nil, nil //nolint:nilnil // there is nothing to arm
	}
	w, arm, err := h.join(ctx, key)
	if err != nil {
		return nil, err
	}
	f.all.mu.Lock()
	alive, stands := h.watches[key] == w, w.stands
	if alive && (arm || stands) {
		w.feeds = append(w.feeds, f)
		f.held[key] = w
	}
	f.all.mu.Unlock()
	switch {
	case !alive && arm: // only a new connection ends a watch that no request has armed
		h.armed(w, &wire.Exchange{}, errOtherConnection)
		return nil, errOtherConnection
	case !alive:
		return nil, errOtherReader
	case arm:
		return w, nil
	case stands:
		return nil, nil //nolint:nilnil // there is nothing to arm
	default:
		h.giveUp(w)
		return nil, errOtherReader
	}
}

var errOtherReader = errors.New("client: another reader is setting the watch")

// arm notes what has become of requests that were to arm watches. Watches that do not
// stand tell the feed no more: the reader knows that its request has failed.
func (f *feed) arm(h *hub, armed []*sharedWatch, xs []*wire.Exchange, err error) {
	for i, w := range armed {
		if w == nil {
			continue
		}
		result := err
		if xs[i].Answered() {
			result = h.s.answer(xs[i])
		}
		if w.key.op == wire.OpExists && errors.Is(result, zk.ErrNoNode) {
			result = nil // the watch stands
		}
		if result != nil {
			f.all.mu.Lock()
			f.detachLocked(w)
			f.all.mu.Unlock()
		}
		h.armed(w, xs[i], result)
		if result == nil && f.changes != nil {
			f.dismiss(h, w)
		}
	}
}

// dismiss makes the client remove a watch that it takes for fired, if it was set by a
// comparison beside a persistent watch: the event may have come before the watch, and
// no read of the feed sets the watch again.
func (f *feed) dismiss(h *hub, w *sharedWatch) {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if h.watches[w.key] == nil && h.over == nil {
		h.discardLocked(w.key)
	}
}

func (f *feed) detachLocked(w *sharedWatch) {
	w.feeds = slices.DeleteFunc(w.feeds, func(other *feed) bool { return other == f })
	if f.held[w.key] == w {
		delete(f.held, w.key)
	}
}

func (f *feed) Compare(ctx context.Context, since int64, asks []inside.Ask) (unasked []inside.Ask, zxid int64, err error) {
	h, err := f.at()
	if err != nil {
		return nil, 0, err
	}
	if err := h.s.supports(ctx, watchTransfer); err != nil {
		return nil, 0, err
	}
	var watches []*sharedWatch
	request := &wire.Watches{Since: since}
	send := func() error {
		if len(watches) == 0 {
			return nil
		}
		x := &wire.Exchange{Request: wire.Request{Op: wire.OpSetWatches, Watches: request}}
		err := f.exchange(ctx, h, []*wire.Exchange{x})
		f.arm(h, watches, slices.Repeat([]*wire.Exchange{x}, len(watches)), err)
		watches, request = nil, &wire.Watches{Since: since}
		if err == nil {
			zxid, err = x.Reply.Zxid, h.s.refused(watchTransfer, h.s.answer(x))
		}
		return err
	}
	size := 0
	for _, ask := range asks {
		key, err := f.key(ask)
		if err != nil {
			return nil, 0, err
		}
		w, err := f.compared(ctx, h, key)
		switch {
		case errors.Is(err, errOtherReader):
			unasked = append(unasked, ask)
			continue
		case err != nil:
			f.arm(h, watches, slices.Repeat([]*wire.Exchange{{}}, len(watches)), err)
			return nil, 0, err
		case w == nil: // the watch stands and has not fired since it told the feed
			continue
		}
		watches = append(watches, w)
		if ask.Children {
			request.Children = append(request.Children, key.path)
		} else {
			request.Data = append(request.Data, key.path)
		}
		if size += len(key.path); size >= comparedBytes {
			size = 0
			if err := send(); err != nil {
				return nil, 0, err
			}
		}
	}
	return unasked, zxid, send()
}

// compared is hold for a watch that a comparison is to arm. A watch that stands for
// another reader says nothing of the time before.
func (f *feed) compared(ctx context.Context, h *hub, key watchKey) (*sharedWatch, error) {
	f.all.mu.Lock()
	was := f.held[key]
	f.all.mu.Unlock()
	w, err := f.hold(ctx, h, key)
	if err == nil && w == nil && (was == nil || was.hub != h) {
		return nil, errOtherReader
	}
	return w, err
}

func (f *feed) Line() int { return f.line }

// clientStanding says how a client stands.
func clientStanding(c *Client) inside.Standing {
	state := c.core.state()
	newest := c.core.states.newest()
	c.core.lasting.mu.Lock()
	line := c.core.lasting.line
	c.core.lasting.mu.Unlock()
	return inside.Standing{
		Connected: state == Connected, Closed: state == Closed, Line: line,
		Since: newest.change.At, Err: newest.change.Err, Changed: newest.ready,
	}
}

func (f *feed) Close() {
	if f.changes != nil {
		f.changes.Close()
	}
	f.all.mu.Lock()
	delete(f.all.feeds, f)
	var left []*sharedWatch
	for _, w := range f.held {
		f.detachLocked(w)
		left = append(left, w)
	}
	f.all.mu.Unlock()
	for _, w := range left {
		w.hub.giveUp(w)
	}
}
