package client

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/watches"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// OneShotWatch is a watch that fires once. All such watches of this client on the
// same path, of the same kind and in the same session, are one watch on the server.
// However many callers wait, they cost the server one watch.
type OneShotWatch struct {
	wait watches.Wait
	stop sync.Once
}

// Done is closed at the first of: a change of the node or its children, a
// reconnection, the end of the session. Read again in each case; a wake-up without a
// change is possible.
//
// A session can end while no server is reached. Then the next read waits for one by the
// retry policy. If the policy gives up by itself, the read fails with [ErrNotConnected],
// and the caller has no watch any more. A loop that shall go on reads by a policy that
// does not give up, see [Client.Retrying].
func (w *OneShotWatch) Done() <-chan struct{} { return w.wait.Done() }

// Event says what ended the watch once Done is closed. It returns the type of the
// server's event and nil. If no event ended the watch, it returns
// [zk.EventNotWatching] and the reason, which matches [ErrSessionLost] or [ErrClosed]
// when the session is over.
func (w *OneShotWatch) Event() (zk.EventType, error) { return w.wait.Event() }

// Stop says that the caller does not wait for the watch any more. It returns at once.
// If the watch has not fired a second after all callers that share it have stopped, the
// client removes it from the server in the background. A watch that its callers do not
// stop stays on the server until it fires or the session ends. Servers before ZooKeeper
// 3.5 cannot remove watches: there it stays too.
//
// A second call does nothing, and so does a call after the watch has fired or on a
// nil OneShotWatch. Done may never be closed after Stop.
func (w *OneShotWatch) Stop() {
	if w != nil {
		w.stop.Do(w.wait.Stop)
	}
}

// ErrOverflow says that changes were dropped because the reader of a [Changes] was
// too slow.
var ErrOverflow = errors.New("client: more changes came than the watch keeps for its reader")

// DefaultWatchQueue is how many changes a [Changes] keeps for its reader, unless
// [WatchQueue] says otherwise.
const DefaultWatchQueue = 1024

// A WatchOption changes what [Client.Watch] does.
type WatchOption func(*Changes)

// Recursive makes [Client.Watch] tell of all nodes below the path as well. It then
// tells which child was created or deleted, and not that the children changed.
func Recursive() WatchOption { return func(c *Changes) { c.recursive = true } }

// WatchQueue sets how many changes wait for a slow reader; n below 1 counts as 1.
// When the queue is full, the next change empties it, and one [ChangeMissed] with
// [ErrOverflow] takes the place of all.
func WatchQueue(n int) WatchOption { return func(c *Changes) { c.limit = max(1, n) } }

// Changes are the changes that a persistent watch sees. [Client.Watch] makes it.
// It is safe for concurrent use; each change is given to one reader.
type Changes struct {
	o         *ops
	full      string
	path      string // as the caller gave it
	recursive bool
	limit     int
	ready     chan struct{} // closed when the watch stands for the first time
	over      chan struct{} // closed when err is set
	some      chan struct{} // holds a token while queue is not empty

	mu    sync.Mutex // guards the rest; never held across I/O
	queue []Change
	begun bool
	err   error
	stop  func() bool // detaches from the context
}

// Watch watches a node that need not exist, until ctx ends or [Changes.Close] is
// called. It tells of the creation and deletion of the node, of new data, and of
// children that are created or deleted. With [Recursive] it tells all that for every
// node below the path. The watch stays on the server, so no change is lost between
// two reads. With [Client.GetW] a change can be.
//
// The first change is a ChangeMissed. At every ChangeMissed the reader reads every
// node that it wants to know, and forgets nodes that have been deleted since. At any
// other change it reads the one node:
//
//	changes, err := c.Watch(ctx, "/app", client.Recursive())
//	if err != nil {
//		return err
//	}
//	defer changes.Close()
//	for change, err := range changes.All() {
//		switch {
//		case err != nil:
//			return err
//		case change.Kind == client.ChangeMissed:
//			readAll()
//		default:
//			readOne(change.Path)
//		}
//	}
//
// Between two ChangeMissed the reader gets every change, once and in its order. After
// every reconnection, and in every new session, the client asks the server for the
// watch and then says ChangeMissed. The reader gets every change after that. Changes
// wait in a queue ([WatchQueue]), so a slow reader delays no other reader. An
// overflow empties the queue and leaves one ChangeMissed. A reader may see a change
// that it has read already.
//
// Watch returns when the watch stands on the server. It waits for a connection as
// every call does: until ctx ends, or until a retry policy that gives up by itself
// does. The error is an [*OpError]. It matches [ErrUnsupported] if the servers are
// too old: persistent watches take ZooKeeper 3.6. All watches of a client on the same
// path are one watch on the server. The client removes that in the background when
// the last of them is closed.
//
// On ClickHouse Keeper Watch always fails with [ErrUnsupported]. Keeper gives all
// events of a recursive watch the path of the watch (ClickHouse issue 115475), so
// Change.Path could not name the node.
//
// Other users of the same session, by [Client.Conn], must not leave watches on the
// same path: servers before ZooKeeper 3.9 would forget this one
// (ZOOKEEPER-4466).
func (c *Client) Watch(ctx context.Context, path string, opts ...WatchOption) (*Changes, error) {
	w := &Changes{
		o: &c.ops, path: path, limit: DefaultWatchQueue,
		ready: make(chan struct{}), over: make(chan struct{}), some: make(chan struct{}, 1),
	}
	for _, opt := range opts {
		if opt != nil {
			opt(w)
		}
	}
	if err := w.begin(ctx); err != nil {
		w.Close()
		if op := (*OpError)(nil); errors.As(err, &op) {
			return nil, op
		}
		op := &OpError{Op: "watch", Path: path, Outcome: Outcome(fate.Of(err)), Err: err}
		return nil, op
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = context.AfterFunc(ctx, func() { w.finish(ctxerr.Ended(ctx)) })
	return w, nil
}

// begin waits, within ctx, until the watch stands.
func (c *Changes) begin(ctx context.Context) (err error) {
	if c.full, err = c.o.followed(ctx, c.path); err != nil {
		return err
	}
	if err := c.o.core.watches.Add(c.full, (*reader)(c), c.recursive); err != nil {
		return err
	}
	select {
	case <-c.ready:
	case <-c.over:
		return c.ended()
	case <-ctx.Done():
		return ctxerr.Ended(ctx)
	}
	return nil
}

// followed is the full path of a node that is to be followed. It waits for a connection, and
// checks what a lazy Connect has left to the first call.
func (o *ops) followed(ctx context.Context, path string) (full string, err error) {
	if err := ctxerr.Ended(ctx); err != nil {
		return "", err
	}
	if full, err = o.full(path); err != nil {
		return "", err
	}
	if len(full)+overhead > o.core.cfg.maxRequest {
		return "", fate.Unsent(ErrTooLarge)
	}
	return full, o.perform(ctx, nil, "watch", path, reads, func(context.Context, try) error { return nil })
}

// overhead is the most that a request has beside its path, in bytes.
const overhead = 64

// Next returns the next change, and waits for it until ctx ends. After the end of the
// watch it returns what is left in the queue, and then why the watch ended. That is the
// error of the context given to [Client.Watch], or [ErrClosed] after Close of the client
// or of the watch. It may also match [ErrUnsupported].
func (c *Changes) Next(ctx context.Context) (Change, error) {
	for {
		if err := ctxerr.Ended(ctx); err != nil {
			return Change{}, err
		}
		if change, ok, err := c.take(); ok || err != nil {
			return change, err
		}
		select {
		case <-c.some:
		case <-c.over:
		case <-ctx.Done():
		}
	}
}

func (c *Changes) take() (change Change, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return Change{}, false, c.err
	}
	change, c.queue = c.queue[0], c.queue[1:]
	if len(c.queue) > 0 {
		c.signal() // wakes another reader
	}
	return change, true, nil
}

// All yields the changes until the watch ends. The last pair is the error that ended
// the watch, unless that was [Changes.Close] or the end of the context. The watch
// goes on if the caller leaves the loop early.
func (c *Changes) All() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for {
			change, ok, err := c.take()
			switch {
			case ok && !yield(change, nil):
				return
			case ok:
				continue
			case errors.Is(err, watches.ErrReaderClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
				return
			case err != nil:
				yield(Change{}, err)
				return
			}
			select {
			case <-c.some:
			case <-c.over:
			}
		}
	}
}

// Close ends the watch and drops changes that were not read. It returns at once; the
// client removes the watch from the server in the background. A second call does
// nothing.
func (c *Changes) Close() {
	c.mu.Lock()
	c.queue = nil
	stop := c.stop
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	c.finish(watches.ErrReaderClosed)
}

// finish ends the watch and takes it from the client's list.
func (c *Changes) finish(err error) {
	(*reader)(c).End(err)
	c.o.core.watches.Remove(c.full, (*reader)(c))
}

// reader is a Changes as the watches see it.
type reader Changes

// End ends the watch. The caller of Next may read what is left in the queue.
func (c *reader) End(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.over)
	}
}

func (c *Changes) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Missed says that changes before now may have been missed.
func (c *reader) Missed(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.begun {
		c.begun, why = true, nil
		close(c.ready)
	}
	if n := len(c.queue); n > 0 && c.queue[n-1].Kind == ChangeMissed {
		return // the caller has yet to read
	}
	c.put(Change{Kind: ChangeMissed, Path: c.path, Zxid: -1, Err: why})
}

// Tell adds a change.
func (c *reader) Tell(ev wire.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(Change{Kind: kinds[ev.Type], Path: c.o.stripped(ev.Path), Zxid: ev.Zxid, State: ev.State})
}

// put adds a change. If too many wait, one ChangeMissed takes the place of all: a
// reader that reads the nodes again has no use for them. The caller holds c.mu.
func (c *reader) put(change Change) {
	if !c.begun || c.err != nil {
		return
	}
	if len(c.queue) >= c.limit {
		c.queue, change = nil, Change{Kind: ChangeMissed, Path: c.path, Zxid: -1, Err: ErrOverflow}
	}
	c.queue = append(c.queue, change)
	(*Changes)(c).signal()
}

func (c *Changes) signal() {
	select {
	case c.some <- struct{}{}:
	default:
	}
}

var kinds = map[zk.EventType]ChangeKind{ //nolint:gochecknoglobals // a constant table
	zk.EventNodeCreated:         ChangeCreated,
	zk.EventNodeDeleted:         ChangeDeleted,
	zk.EventNodeDataChanged:     ChangeData,
	zk.EventNodeChildrenChanged: ChangeChildren,
}

// ChangeKind is the kind of a [Change].
type ChangeKind int

// The kinds of changes.
const (
	// ChangeMissed: changes may have been missed; read again. See [Client.Watch].
	ChangeMissed ChangeKind = iota
	// ChangeCreated: the node at the path was created.
	ChangeCreated
	// ChangeDeleted: the node at the path was deleted.
	ChangeDeleted
	// ChangeData: the data of the node at the path was set.
	ChangeData
	// ChangeChildren: a child of the node at the path was created or deleted.
	ChangeChildren
)

// String returns the kind in lower case.
func (k ChangeKind) String() string {
	if k < ChangeMissed || k > ChangeChildren {
		return "unknown"
	}
	return [...]string{"missed", "created", "deleted", "data", "children"}[k]
}

// Change is one change that a [Changes] tells of.
type Change struct {
	Kind ChangeKind
	// Path is the node that changed, in the client's namespace. For a ChangeMissed it
	// is the path that is watched.
	Path string
	// Zxid is the transaction that made the change. It is -1 for a ChangeMissed, and
	// where the server does not say it (before ZooKeeper 3.9).
	Zxid int64
	// State is the state that the server put into the event, mostly
	// [zk.StateSyncConnected]. It is zero for a ChangeMissed.
	State zk.State
	// Err is why changes may have been missed: [ErrOverflow], [ErrSessionLost], or
	// another error after a reconnection. It is nil for the first ChangeMissed.
	Err error
}
