package recipes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/book"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

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
func namesOf(leases []book.Lease) []string {
	names := make([]string, len(leases))
	for i, l := range leases {
		names[i] = l.Name
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
func (l *leases) owned(ctx context.Context, session *client.Session, names []string) ([]book.Lease, error) {
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
	var owned []book.Lease
	now := make(map[string]*zk.Stat, len(names))
	for i, name := range names {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if hidden[i] || stats[i] != nil && sessionOf(stats[i]) != 0 {
			owned = append(owned, book.Lease{Name: name, Stat: stats[i]})
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
		asLease(&all[i])
	}
	return all, nil
}
