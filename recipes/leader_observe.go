package recipes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// Leadership is what an observer of an election knows.
type Leadership struct {
	// Leader is the first in line. It is the zero Participant if the line is empty.
	Leader Participant
	// Vacant is set if the line is empty.
	Vacant bool
	// Term is the token of the leader's term, which grows with every term. It is 0 if
	// there is no leader, or if its node may not be read.
	Term int64
	// InDoubt is set while the observer has no connection, and there may be
	// another leader by now; or if Leader.InDoubt is.
	InDoubt bool
}

// String is for people.
func (l Leadership) String() string {
	text := "vacant"
	if !l.Vacant {
		text = fmt.Sprintf("led by %q, term %d", l.Leader.ID, l.Term)
	}
	if l.InDoubt {
		text += ", in doubt"
	}
	return text
}

// same reports whether there is no news in l for an observer that knows old.
func (l Leadership) same(old Leadership) bool {
	return l.Leader.Path == old.Leader.Path && l.Leader.ID == old.Leader.ID &&
		l.Vacant == old.Vacant && l.Term == old.Term && l.InDoubt == old.InDoubt
}

// Observe yields the leadership, at once and then whenever it changes, until ctx ends.
// It takes no part in the election. Before a server has answered it yields nothing. Terms
// only grow. When the connection is lost it yields what it knew last, with InDoubt. After
// that, in the next session too, it asks the servers again, and yields what is true then. It
// may miss a leader whose term ends before it has read it, never one that stays.
//
// Terms go back when an ensemble is restored from a backup, or loses its data. The observer
// believes the servers after they have been behind what it knew for 30 seconds.
//
// It ends when ctx ends. It also ends when the client is closed or a server refuses a
// read; its last pair is then the error. It yields other errors as well and goes on.
//
// An observer has one watch, on the leader's node, and one goroutine, which ends with the
// loop.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leadership, error] {
	ctxerr.Require(ctx)
	return func(yield func(Leadership, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		o := &observation{Election: e, yield: yield, link: newLinkState()}
		go o.link.follow(ctx, e.l.c)
		for ctx.Err() == nil && o.step(ctx) {
		}
	}
}

// observation is one loop over Observe.
type observation struct {
	*Election

	yield  func(Leadership, error) bool
	link   *linkState
	synced context.Context //nolint:containedctx // the connection on which the server was asked to catch up
	known  bool            // last is something
	last   Leadership
	newest int64 // the newest change that was seen: answers do not go back behind it
}

// step looks once, tells what is new, and waits for a change. It returns false at the
// end.
func (o *observation) step(ctx context.Context) bool {
	up, changed, closed := o.link.now()
	switch {
	case closed:
		o.yield(Leadership{}, o.fail("observe", client.ErrClosed))
		return false
	case up == nil:
		if doubt := o.last; o.known && !doubt.InDoubt {
			doubt.InDoubt = true
			if !o.tell(doubt) {
				return false
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		return true
	}
	within, stop := context.WithCancel(up)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	now, w, err := o.look(within, up)
	defer w.Stop()
	switch {
	case ctx.Err() != nil:
		return false
	case up.Err() != nil: // the answer may be old, or there is none
		return true
	case err != nil:
		if !o.yield(Leadership{}, o.fail("observe", reason(err))) || refused(err) || errors.Is(err, client.ErrClosed) {
			return false
		}
		pause(within)
		return true
	case (!o.known || !now.same(o.last)) && !o.tell(now):
		return false
	}
	select {
	case <-w.Done():
	case <-within.Done():
	}
	return true
}

func (o *observation) tell(now Leadership) bool {
	o.known, o.last = true, now
	return o.yield(now, nil)
}

// observerPause is how long an observer waits after an error, and for a server that lags
// behind what was seen.
const observerPause = 100 * time.Millisecond

// lagLimit is how long the servers may be behind what was seen, in spite of a Sync each time.
// A leader without a quorum resigns within syncLimit ticks, by default 10 seconds. So after
// that time it is another history: the ensemble was restored from a backup.
const lagLimit = 30 * time.Second

// look returns what a server says now, and a watch that fires when that changes. up ends
// with the connection, and ctx with that and with the loop.
func (o *observation) look(ctx, up context.Context) (Leadership, *client.OneShotWatch, error) {
	for begun := time.Now(); ; {
		if o.synced != up { // the server may be another one, and lag
			if err := o.l.c.Sync(ctx, o.l.path); err != nil {
				return Leadership{}, nil, err
			}
			o.synced = up //nolint:fatcontext // it is compared, and nothing descends from it
		}
		now, zxid, w, err := o.read(ctx)
		if w != nil && time.Since(begun) > lagLimit {
			o.newest = 0
		}
		if err != nil || w != nil && zxid >= o.newest {
			o.newest = max(o.newest, zxid)
			return now, w, err
		}
		w.Stop()
		if w == nil { // what was read is gone already
			continue
		}
		o.synced = nil
		if pause(ctx); ctx.Err() != nil {
			return Leadership{}, nil, ctxerr.Ended(ctx)
		}
	}
}

// pause keeps an observer from asking servers that do not help again and again.
func pause(ctx context.Context) {
	select {
	case <-time.After(observerPause):
	case <-ctx.Done():
	}
}

// read reads the line and its first node. The watch is nil if the line has changed
// in between.
func (o *observation) read(ctx context.Context) (now Leadership, zxid int64, w *client.OneShotWatch, err error) {
	all, zxid, err := o.line(ctx)
	if err != nil {
		return now, 0, nil, err
	}
	if len(all) == 0 {
		return o.vacant(ctx)
	}
	first := all[0]
	c := contenderAt(o.l.c, o.l.queue.Path(first), first)
	c.Holder = true
	data, stat, w, err := o.l.c.GetW(ctx, c.Path)
	switch {
	case err == nil:
		fill(c, data, stat)
		zxid = max(zxid, stat.Czxid)
	case errors.Is(err, zk.ErrNoNode):
		return now, 0, nil, nil
	case errors.Is(err, zk.ErrNoAuth):
		c.Unreadable = true
		if w, err = o.watchLine(ctx); err != nil {
			return now, 0, nil, err
		}
		if all, _, err = o.line(ctx); err != nil || len(all) == 0 || all[0] != first {
			w.Stop()
			return now, 0, nil, err
		}
	default:
		return now, 0, nil, err
	}
	p := o.participant(*c)
	if string(data) == revocation && o.last.Leader.Path == p.Path {
		p.ID = o.last.Leader.ID // the request stands where it was
	}
	return Leadership{Leader: p, Term: p.FencingToken, InDoubt: p.InDoubt}, zxid, w, nil
}

// vacant watches the line, and looks whether it is still empty.
func (o *observation) vacant(ctx context.Context) (now Leadership, zxid int64, w *client.OneShotWatch, err error) {
	if w, err = o.watchLine(ctx); err != nil {
		return now, 0, nil, err
	}
	all, zxid, err := o.line(ctx)
	if err != nil || len(all) > 0 {
		w.Stop()
		return now, 0, nil, err
	}
	if zxid == 0 { // a directory that is gone tells nothing of its past
		zxid = o.newest
	}
	return Leadership{Vacant: true}, zxid, w, nil
}

// watchLine watches the children of the directory, or for the directory to come.
func (o *observation) watchLine(ctx context.Context) (*client.OneShotWatch, error) {
	for {
		_, _, w, err := o.l.c.ChildrenW(ctx, o.l.path)
		if !errors.Is(err, zk.ErrNoNode) {
			return w, err
		}
		exists, _, w, err := o.l.c.ExistsW(ctx, o.l.path)
		if err != nil || !exists {
			return w, err
		}
		w.Stop()
	}
}

// linkState is whether a client is connected.
type linkState struct {
	mu      sync.Mutex         // guards the rest
	up      context.Context    //nolint:containedctx // it ends with the connection; nil without one
	down    context.CancelFunc // ends up
	closed  bool
	changed chan struct{} // closed at the next change
}

func newLinkState() *linkState { return &linkState{changed: make(chan struct{})} }

// now returns a context that ends with the connection, nil if there is none, and what is
// closed at the next change.
func (l *linkState) now() (up context.Context, changed <-chan struct{}, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up, l.changed, l.closed
}

// follow follows the states of c, until ctx ends.
func (l *linkState) follow(ctx context.Context, c *client.Client) {
	for s := range c.States(ctx) {
		l.set(ctx, s.State)
	}
	l.set(ctx, client.Suspended) // nothing is known any more
}

func (l *linkState) set(ctx context.Context, s client.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up != nil {
		l.down()
		l.up, l.down = nil, nil
	}
	if s == client.Connected {
		l.up, l.down = context.WithCancel(ctx)
	}
	l.closed = l.closed || s == client.Closed
	close(l.changed)
	l.changed = make(chan struct{})
}

// Participant is a node in the line of an election, of this library or of Curator. Its
// Holder is set for the first in line, which leads, as far as the servers know.
type Participant struct {
	Contender

	// ID is what the participant calls itself; see [WithID]. It is "" while the node
	// may not be read, and while only a request to release stands there.
	ID string
	// InDoubt is set if the participant is one of this value's own campaigns, and its
	// session is lost. The servers are about to delete the node, and the participant
	// does not lead.
	InDoubt bool
}

// Participants lists the leader and the waiting participants, in order. A path that no
// participant uses is an empty line. A participant that leaves while Participants reads
// is left out. The servers are asked, and one that lags may answer from the past.
func (e *Election) Participants(ctx context.Context) ([]Participant, error) {
	line, changed, err := e.line(ctx)
	if err != nil {
		return nil, e.fail("list", err)
	}
	found, err := contenders(ctx, e.l.c, e.l.queue, line, changed)
	if err != nil {
		return nil, e.fail("list", err)
	}
	e.l.tellWaiting(found)
	all := make([]Participant, len(found))
	for i, c := range found {
		if i == 0 && !c.Holder { // participants before it have left meanwhile
			c.Holder, c.Held.Earliest = true, c.QueuedSince
		}
		all[i] = e.participant(c)
	}
	return all, nil
}

// Leader returns the first participant in line. Without one the error matches
// [ErrNoParticipant].
func (e *Election) Leader(ctx context.Context) (Participant, error) {
	for {
		line, changed, err := e.line(ctx)
		if err == nil && len(line) == 0 {
			err = fmt.Errorf("%w: the line is empty", ErrNoParticipant)
		}
		if err != nil {
			return Participant{}, e.fail("find the leader of", err)
		}
		found, err := contenders(ctx, e.l.c, e.l.queue, line[:1], changed)
		if err != nil {
			return Participant{}, e.fail("find the leader of", err)
		}
		if len(found) > 0 {
			return e.participant(found[0]), nil
		}
		// It has left meanwhile: look again.
	}
}

// line lists the nodes of the election itself, in order, with the newest change of the
// directory's children.
func (e *Election) line(ctx context.Context) (line []seqqueue.Node, changed int64, err error) {
	line, changed, err = e.l.queue.LineWithChange(ctx)
	return slices.DeleteFunc(line, func(n seqqueue.Node) bool { return n.Recipe != "" }), changed, err
}

// participant is a contender as a participant.
func (e *Election) participant(c Contender) Participant {
	p := Participant{Contender: c, InDoubt: e.sessions.lost(c.Session)}
	if string(c.Data) != revocation {
		p.ID = string(c.Data)
	}
	return p
}
