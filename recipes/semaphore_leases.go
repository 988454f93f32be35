// What takes room in a semaphore: the children of "<path>/leases" that are named as leases
// and are deleted with a session. There is room for n permits if there are no more than
// max-n such nodes. max is fixed, or is read from a shared count at each look.
//
// This file also has the turn of a nested acquire, whose context descends from a lease of
// the same semaphore. It must not wait for permits, as it may hold the very permits that the
// waiters ahead wait for.

package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// leaseTag stands before the number of a semaphore's lease.
const leaseTag = "lease-"

// leases is the directory of a semaphore's leases.
type leases struct {
	c     *client.Client
	dir   string
	queue *seqqueue.Queue // for their paths; no acquire waits in it

	mu    sync.Mutex          // guards known; never held across I/O
	known map[string]*zk.Stat // of the children last listed; nil of a node that is gone
}

func newLeases(c *client.Client, dir string) *leases {
	return &leases{c: c, dir: dir, queue: seqqueue.New(c, dir, seqqueue.Tags{})}
}

// list lists the directory, with a watch if watch is set.
func (l *leases) list(ctx context.Context, session *client.Session, watch bool) (children []string, w *client.OneShotWatch, err error) {
	if watch {
		children, _, w, err = session.ChildrenW(ctx, l.dir)
	} else {
		children, _, err = session.Children(ctx, l.dir)
	}
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	return children, w, err
}

// leaseNames are the children with a lease's name.
func leaseNames(children []string) []string {
	return slices.DeleteFunc(children, func(name string) bool {
		_, ok := leaseNumber(name)
		return !ok
	})
}

// namesOf are the names of leases.
func namesOf(leases []lease) []string {
	names := make([]string, len(leases))
	for i, l := range leases {
		names[i] = l.name
	}
	return names
}

// owned returns which nodes with the given names are leases that are held: nodes that are
// deleted with a session. It remembers their stats. Curator counts every child. Here a
// child without the name of a lease takes no room. A node without a session would take room
// for ever, and takes none either. To find such nodes costs requests. So owned is called
// only if the names alone leave no room.
//
// A node that this client may not read counts as a lease, as in Curator: then there are
// never too many holders. Since 3.8.4 and 3.9.2 a server wants READ for exists
// (ZOOKEEPER-2590).
func (l *leases) owned(ctx context.Context, session *client.Session, names []string) ([]lease, error) {
	l.mu.Lock()
	before := l.known
	l.mu.Unlock()
	stats, hidden, errs := make([]*zk.Stat, len(names)), make([]bool, len(names)), make([]error, len(names))
	slots := make(chan struct{}, lookups)
	var wg sync.WaitGroup
	for i, name := range names {
		var known bool
		if stats[i], known = before[name]; known {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			_, stats[i], errs[i] = session.Exists(ctx, l.dir+"/"+name)
			if hidden[i] = errors.Is(errs[i], zk.ErrNoAuth); hidden[i] {
				stats[i], errs[i] = nil, nil
			}
		})
	}
	wg.Wait()
	var owned []lease
	now := make(map[string]*zk.Stat, len(names))
	for i, name := range names {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if hidden[i] || stats[i] != nil && sessionOf(stats[i]) != 0 {
			owned = append(owned, lease{name, stats[i]})
		}
		if !hidden[i] { // its ACL may be changed
			now[name] = stats[i]
		}
	}
	l.mu.Lock()
	l.known = now
	l.mu.Unlock()
	return owned, nil
}

// contenders reads the leases, in the order of their numbers.
func (l *leases) contenders(ctx context.Context) ([]Contender, error) {
	children, _, err := l.c.Children(ctx, l.dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	var line []seqqueue.Node
	for _, name := range children {
		if number, ok := leaseNumber(name); ok {
			line = append(line, seqqueue.Node{Name: name, Key: number, Tag: leaseTag})
		}
	}
	slices.SortFunc(line, func(a, b seqqueue.Node) int { return cmp.Compare(a.Key, b.Key) })
	all, err := contenders(ctx, l.c, l.queue, line, 0)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c Contender) bool { return c.Session == 0 && !c.Unreadable })
	for i := range all {
		all[i].Holder = true
		all[i].QueuedSince, all[i].HeldSince = time.Time{}, all[i].QueuedSince
	}
	return all, nil
}

// occupied is what the first in the queue has seen of the permits.
type occupied struct {
	others   int      // permits that other acquires may hold together with the ones asked for
	standing []string // names of the leases that may be held, all of those that are among them
	held     []lease  // the leases that are held; nil if the names alone say that there is room
}

// hasRoom reports whether there is room for the permits asked for.
func (o occupied) hasRoom() bool { return len(o.held) <= o.others }

// lease is the node of a permit that is held.
type lease struct {
	name string
	stat *zk.Stat // nil if the node may not be read
}

// changes are the watches on what can make room: the leases, and a shared count.
type changes [2]*client.OneShotWatch

// wait waits until one of the watches has fired.
func (c changes) wait(ctx context.Context) error {
	var done [len(c)]<-chan struct{} // nil never is
	for i, w := range c {
		if w != nil {
			done[i] = w.Done()
		}
	}
	select {
	case <-done[0]:
		return nil
	case <-done[1]:
		return nil
	case <-ctx.Done():
		return ctxerr.Ended(ctx)
	}
}

// stop gives up the watches. The client keeps a watch on the server for a moment, and the
// next call of seeLeases may get the same one.
func (c changes) stop() {
	for _, w := range c {
		w.Stop()
	}
}

// others is how many permits other acquires may hold together with these. If watch is set,
// a watch on a shared count comes with it.
func (p permits) others(ctx context.Context, watch bool) (int, *client.OneShotWatch, error) {
	most, w := p.max, (*client.OneShotWatch)(nil)
	if p.count != nil {
		now, changed, err := p.counted(ctx, watch)
		if err != nil {
			return 0, nil, err
		}
		most, w = int(now), changed
	}
	if p.n > most {
		return 0, w, fmt.Errorf("%w: asked for %d of %d", ErrTooManyPermits, p.n, most)
	}
	return most - p.n, w, nil
}

// counted is the number that the count says, with a watch if watch is set.
func (p permits) counted(ctx context.Context, watch bool) (int32, *client.OneShotWatch, error) {
	if watch {
		return p.count.ValueW(ctx)
	}
	now, err := p.count.Value(ctx)
	return now, nil, err
}

// othersDuring is others, but ends with session: the count may be of another client,
// whose servers may be out of reach for longer.
func (p permits) othersDuring(ctx context.Context, session *client.Session, watch bool) (int, *client.OneShotWatch, error) {
	if p.count == nil {
		return p.others(ctx, watch)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	over := session.Context()
	defer context.AfterFunc(over, func() { end(context.Cause(over)) })()
	n, w, err := p.others(ctx, watch)
	if err != nil {
		err = cmp.Or(session.Err(), err)
	}
	return n, w, err
}

// turnWithin is turn in the context of a lease of the semaphore. It waits for nothing.
func (p permits) turnWithin(ctx context.Context, m *seqqueue.Member) error {
	_, err := p.gate.turn(ctx, m, false)
	if err == nil {
		_, err = p.awaitRoom(ctx, m.Session, m.OtherChildren(), false)
	} else {
		err = waiterAhead(err)
	}
	return insteadOfWaiting(err)
}

// nested returns how many permits the leases of this semaphore have that ctx descends from.
// A waiter ahead may wait for them, so the acquire must not wait for that waiter. Another
// client's lease may be of another ensemble, which its path does not tell. So such a lease
// counts only if this client's servers have its node.
func (p permits) nested(ctx context.Context) (own int, err error) {
	var others []string
	h, _ := ctx.Value(p.key.on).(*held)
	for ; h != nil; h = h.outer {
		switch g := h.grant; {
		case g.key.tag != p.key.tag || g.err() != nil:
		case g.key == p.key:
			own += len(g.Paths)
		default:
			for _, node := range g.Paths {
				others = append(others, nameOf(node))
			}
		}
	}
	if others == nil {
		return own, nil
	}
	children, _, err := p.c.Children(ctx, p.leases.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return own, nil
	}
	for _, name := range others {
		if slices.Contains(children, name) {
			own++
		}
	}
	return own, err
}

// insteadOfWaiting turns a BusyError into the refusal of an acquire that must not wait.
func insteadOfWaiting(err error) error {
	var busy *BusyError
	if errors.As(err, &busy) { // the refusal does not match it: a second try fails as well
		return fmt.Errorf("%w: the caller holds permits of this semaphore and must not wait for more, and they are not free now: %v; acquire all of them at once, or release the held ones first", ErrWouldDeadlock, busy.Holder)
	}
	return err
}
