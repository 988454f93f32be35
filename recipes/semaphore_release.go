// How leases of a semaphore end. A release may leave its leases to a transaction that serves
// waiters of the same client. These waiters hear of every other end as well.

package recipes

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// handing is a release that may be part of a transaction.
type handing struct {
	release
	seqqueue.Own

	decided chan struct{} // closed when in is set for good
	in      *transaction  // that deletes the leases, nil if the releaser has to
}

// handOver deletes released leases in a transaction that serves waiters. If there is no
// waiter, or if the servers have refused the transaction, ok is false. Then the caller still
// has to delete the leases. After an error the remover deletes what is left.
func (w *waiters) handOver(ctx context.Context, released place) (ok bool, err error) {
	if ctx.Err() != nil || released.Session.Err() != nil {
		return false, nil // the delete that follows says so
	}
	r := &handing{Own: released.Own, decided: make(chan struct{})}
	r.release = release{names: namesAt(released.Paths), session: released.Session.ID(), of: r}
	w.mu.Lock()
	wait := w.book.release(&r.release, statOfOwn(released))
	if wait {
		w.act()
	}
	w.mu.Unlock()
	if !wait {
		return false, nil
	}
	select {
	case <-r.decided:
	case <-ctx.Done():
		w.mu.Lock()
		alone := w.book.withdraw(&r.release)
		w.mu.Unlock()
		if alone {
			return false, nil // to delete them fails with the end of ctx
		}
	}
	t := r.in
	if t == nil {
		return false, nil
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		w.drop(released)
		return true, fmt.Errorf("the transaction that hands the leases over has no answer yet: %w", ctxerr.Ended(ctx))
	}
	switch {
	case t.applied:
		return true, nil
	case t.unchanged && !inner.LostTry(t.err):
		return false, nil
	}
	return true, w.deleteEach(ctx, released)
}

// statOfOwn is what the client knows of the nodes of its leases without a request.
func statOfOwn(leases place) *zk.Stat {
	return &zk.Stat{EphemeralOwner: leases.Session.ID(), Czxid: leases.token}
}

// deleteEach deletes leases of which a transaction may have deleted some. So a node that is
// missing was most likely deleted by that, and not by another client.
func (w *waiters) deleteEach(ctx context.Context, released place) error {
	for _, path := range released.Paths {
		if err := released.Session.Delete(ctx, path, client.AnyVersion); err != nil && !errors.Is(err, zk.ErrNoNode) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.drop(released)
			if over := released.Session.Err(); over != nil {
				err = over
			}
			return err
		}
	}
	w.deleted(released, nil)
	return nil
}

// deleted notes the end of a delete of own leases.
func (w *waiters) deleted(leases place, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil || errors.Is(err, seqqueue.ErrGone) && len(leases.Paths) == 1 {
		w.book.ended(namesAt(leases.Paths))
	} else {
		w.lose(leases.Paths)
	}
	w.act()
}

// lending returns the waiters who are to hear of the end of the leases, nil if there are none.
func (p place) lending() *waiters {
	if p.of == nil {
		return nil
	}
	return p.of.waiters()
}

// Delete deletes the nodes of a place, or hands them over to waiters.
func (p place) Delete(ctx context.Context) error {
	w := p.lending()
	if w == nil {
		return p.Own.Delete(ctx)
	}
	done, err := w.handOver(ctx, p)
	if !done {
		err = p.Own.Delete(ctx)
		w.deleted(p, err)
	}
	return err
}

// DeleteInBackground deletes the nodes of a place without waiting.
func (p place) DeleteInBackground() {
	p.Own.DeleteInBackground()
	p.untold()
}

// Break says that the hold of the nodes was lost.
func (p place) Break() {
	p.Own.Break()
	p.untold()
}

// untold notes that nobody will tell the end of the leases.
func (p place) untold() {
	if w := p.lending(); w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lose(p.Paths)
	}
}
