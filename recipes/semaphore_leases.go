package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
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

// taken returns the leases among the children, or nothing if at most others
// have a lease's name. Curator counts every child. Here a child without the name of a
// lease takes no room. A node that is deleted with no session would take room for ever,
// and takes none either. To find such nodes costs requests, so taken looks for them only
// if the names alone leave no room.
func (l *leases) taken(ctx context.Context, session *client.Session, children []string, others int) ([]lease, error) {
	names := slices.DeleteFunc(children, func(name string) bool {
		_, ok := leaseNumber(name)
		return !ok
	})
	if len(names) <= others {
		return nil, nil
	}
	return l.owned(ctx, session, names)
}

// owned returns the leases that are deleted with a session, and remembers them. A node
// that this client may not read counts as a lease, as in Curator: then there are never
// too many holders. Since 3.8.4 and 3.9.2 a server takes READ for exists
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

// leaseNumber is the number of a child that has the name of a lease, ours or
// Curator's. It is negative where the counter has passed its end: unlike
// places in a queue, leases are good without an order.
func leaseNumber(name string) (string, bool) {
	const uuid = 36
	rest, ok := strings.CutPrefix(name, inside.ProtectedPrefix)
	if !ok || len(rest) < uuid || !isUUID(rest[:uuid]) {
		return "", false
	}
	number, ok := strings.CutPrefix(rest[uuid:], "-"+leaseTag)
	return number, ok && len(number) >= 10 && strings.Trim(strings.TrimPrefix(number, "-"), "0123456789") == ""
}

// isUUID reports whether s, of 36 bytes, is a UUID as Java and we write it.
func isUUID(s string) bool {
	for i := range len(s) {
		switch dash := i == 8 || i == 13 || i == 18 || i == 23; {
		case dash != (s[i] == '-'):
			return false
		case !dash && !strings.ContainsRune("0123456789abcdef", rune(s[i])):
			return false
		}
	}
	return true
}

// occupied is what the first in the queue has seen of the permits.
type occupied struct {
	others int     // permits that others may hold beside those asked for
	taken  []lease // that are held; none are looked for if there is certainly room
}

// room reports whether there is room for the permits asked for.
func (o occupied) room() bool { return len(o.taken) <= o.others }

// lease is the node of a permit that is held.
type lease struct {
	name string
	stat *zk.Stat // nil if the node may not be read
}

// waited makes the end of a wait for permits say how many were free, and who held
// one, of what the waiter has read before: a lease of its own session if there is
// one, otherwise the oldest.
func (p permits) waited(session *client.Session, seen occupied, err error) error {
	own := func(l lease) bool { return l.stat != nil && l.stat.EphemeralOwner == session.ID() }
	ahead := slices.MinFunc(seen.taken, func(a, b lease) int {
		switch mine := own(a); {
		case mine && !own(b):
			return -1
		case !mine && own(b):
			return 1
		}
		x, _ := leaseNumber(a.name)
		y, _ := leaseNumber(b.name)
		return cmp.Compare(x, y)
	})
	number, _ := leaseNumber(ahead.name)
	n := seqqueue.Node{Name: ahead.name, Key: number, Tag: leaseTag}
	w := &WaitError{
		Ahead: *contenderAt(p.c, p.leases.queue.Path(n), n), SameClient: own(ahead), ended: true, hint: true,
		Err: fmt.Errorf("%d of %d permits are free, %d asked for: %w", max(0, seen.others+p.n-len(seen.taken)), seen.others+p.n, p.n, err),
	}
	w.Ahead.Holder, w.Ahead.Unreadable = true, ahead.stat == nil
	if ahead.stat != nil {
		fill(&w.Ahead, nil, ahead.stat)
		w.Ahead.QueuedSince, w.Ahead.HeldSince = time.Time{}, w.Ahead.QueuedSince
	}
	return w
}

// changes are watches of what can make room: the leases, and a shared count.
type changes [2]*client.OneShotWatch

// wait waits until looking again may tell something else.
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

// stop gives up the watches; one of them may stand for the next look, too.
func (c changes) stop() {
	for _, w := range c {
		w.Stop()
	}
}
