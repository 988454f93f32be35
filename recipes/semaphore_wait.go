package recipes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

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
