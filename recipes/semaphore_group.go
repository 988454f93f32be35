// How the waiters of one client get their permits: the shell around the book. A transaction
// makes the leases of a group of waiters, deletes their nodes in the queue, and deletes leases
// that holds of the client have released meanwhile. Package book decides which. A release
// may leave its leases to such a transaction. The waiters hear of every other end of a lease
// as well.

package recipes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/recipes/internal/book"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// clientWaiters has the waiters of one client, for each semaphore that has any.
type clientWaiters struct {
	mu  sync.Mutex // guards all; never locked while the mutex of waiters is held
	all map[waitersKey]*waiters
}

// waitersKey tells the semaphores of one client apart. Paths are in the namespace of c.
type waitersKey struct {
	c    *client.Client
	path string
}

// keptWaiters is the key under which a client keeps its clientWaiters.
type keptWaiters struct{}

// clientWaitersOf returns the clientWaiters of the client of c.
func clientWaitersOf(c *client.Client) *clientWaiters {
	all, _ := inner.Kept(c, keptWaiters{}, func() any { return &clientWaiters{all: map[waitersKey]*waiters{}} }).(*clientWaiters) // no other package has the key
	return all
}

// waiters are the acquires of one client that wait for permits of one semaphore, also if the
// program has several values for its path. Those that name it in another namespace are other
// waiters, with another book. The semaphore has a fixed number of permits.
type waiters struct {
	waiting int // guarded by clientWaiters.mu

	mu    sync.Mutex // guards the rest; never held across I/O
	book  *book.Book[*heir, *handing]
	heirs map[*seqqueue.Member]*heir

	// next stood behind the last one granted. Its number alone would not tell. If an operator
	// deletes the queue, the numbers begin at 0 again. Meanwhile the waiters of another book,
	// who name the semaphore in another namespace, may have been granted.
	next *seqqueue.Member
}

// heir is an acquire among waiters.
type heir struct {
	book.Waiter[*heir] // guarded by the mutex of w

	p    permits
	m    *seqqueue.Member
	w    *waiters
	poke chan struct{} // has a token when the acquire has to look again

	got place // of a served one; guarded by the mutex of w
	err error // of a failed one; guarded by the mutex of w
}

// waiters returns the waiters of the semaphore, nil if no acquire of the client waits.
func (s *InterProcessSemaphoreV2) waiters() *waiters {
	s.waiting.mu.Lock()
	defer s.waiting.mu.Unlock()
	return s.waiting.all[waitersKey{s.c, s.path}]
}

// newHeir enters m, whose acquire has to wait, among the waiters of its client.
func (p permits) newHeir(m *seqqueue.Member) *heir {
	h := &heir{p: p, m: m, poke: make(chan struct{}, 1)}
	h.Waiter = book.Waiter[*heir]{N: p.n, Max: p.max, Session: m.Session.ID(), Number: m.Node.Sequence(), Czxid: m.Czxid, Of: h}
	p.waiting.mu.Lock()
	defer p.waiting.mu.Unlock()
	key := waitersKey{p.c, p.path}
	if h.w = p.waiting.all[key]; h.w == nil {
		h.w = &waiters{heirs: map[*seqqueue.Member]*heir{}}
		h.w.book = book.New[*heir, *handing](h.w.behind)
		p.waiting.all[key] = h.w
	}
	h.w.waiting++
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.w.heirs[m] = h
	return h
}

// leave takes h out of the waiters. If the acquire does not hold, what was granted to it is
// deleted in the background.
func (h *heir) leave(holds bool) {
	p, w := h.p, h.w
	h.m.Unwatch()
	p.waiting.mu.Lock()
	if w.waiting--; w.waiting == 0 {
		delete(p.waiting.all, waitersKey{p.c, p.path})
	}
	p.waiting.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.heirs, h.m)
	if w.book.Leave(&h.Waiter, holds) {
		w.drop(h.got)
	}
	w.act()
}

// behind returns the waiter right behind x, nil if there is none in the process. The caller
// holds w.mu.
func (w *waiters) behind(x *book.Waiter[*heir]) *book.Waiter[*heir] {
	if h := w.heirs[x.Of.m.Next()]; h != nil {
		return &h.Waiter
	}
	return nil
}

// drop deletes leases that no hold relies on. The caller holds w.mu.
func (w *waiters) drop(leases place) {
	leases.Own.VacateInBackground()
	w.lose(leases.Paths)
}

// lose notes that nobody will tell the ends of leases. The caller holds w.mu.
func (w *waiters) lose(paths []string) {
	w.book.Lose(namesAt(paths))
	w.wakeReady()
}

// wakeReady makes the first in the queue look again. The caller holds w.mu.
func (w *waiters) wakeReady() {
	for _, first := range w.book.Ready() {
		first.Of.wake()
	}
}

// wake makes h look again.
func (h *heir) wake() {
	select {
	case h.poke <- struct{}{}:
	default: // there is a token
	}
}

// nameOf is the last part of a path.
func nameOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// namesAt are the last parts of paths.
func namesAt(paths []string) []string {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = nameOf(path)
	}
	return names
}

// act sends the next transaction, if the book has one. The caller holds w.mu.
func (w *waiters) act() {
	g, decided := w.book.Next()
	var t *transaction
	if g != nil {
		t = &transaction{Grants: g, w: w, done: make(chan struct{})}
		for _, x := range g.Waiters {
			t.heirs = append(t.heirs, x.Of)
		}
		t.behind = t.last().Next()
		go t.run() // bounded by the session: each of the group may give up
	}
	for _, r := range decided {
		if r.Granted() {
			r.Of.in = t
		}
		close(r.Of.decided)
	}
}

// transaction carries out what the book has decided.
type transaction struct {
	*book.Grants[*heir, *handing]

	w      *waiters
	heirs  []*heir
	behind *seqqueue.Member // the last one's follower before it was run, or nil
	read   answerRead
	done   chan struct{} // closed with the answer

	applied   bool
	unchanged bool // the servers have refused it
	err       error
}

// answerRead is what the goroutine that reads from a connection saw when it read the answer.
// The answers of a connection come in the order of the requests. So a follower that was known
// by then had its node before the transaction was run.
type answerRead struct {
	connection uint64
	behind     *seqqueue.Member
}

// witness is told of the answer to a transaction: seen as it is read, also of an earlier try,
// and tried with the connection of the answer that counts.
type witness interface {
	seen(path string, connection uint64)
	tried(connection uint64)
}

// nobody is the witness of a transaction that serves no waiters.
type nobody struct{}

func (nobody) seen(string, uint64) {}
func (nobody) tried(uint64)        {}

// last is the last member of the group.
func (t *transaction) last() *seqqueue.Member { return t.heirs[len(t.heirs)-1].m }

// seen notes who stands behind the group as the answer is read.
func (t *transaction) seen(_ string, connection uint64) {
	behind := t.last().Next()
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.read = answerRead{connection, behind}
}

// tried notes on which connection the answer came that counts.
func (t *transaction) tried(connection uint64) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if t.read.behind != nil && t.read.connection == connection {
		t.behind = t.read.behind
	}
}

// run makes the transaction, and tells each waiter of the result.
func (t *transaction) run() {
	var leases []place
	if t.Alone {
		leases = t.claimOne()
	} else {
		leases = t.claim()
	}
	w := t.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case leases != nil:
		t.granted(leases)
	case t.unchanged:
		w.book.Refused()
	default:
		for _, again := range w.book.Lost() {
			again.Of.wake()
		}
	}
	for _, h := range t.heirs {
		if h.State() == book.Failed {
			h.err = t.err
		}
		h.wake()
	}
	t.applied = leases != nil
	close(t.done)
	w.act()
}

// granted gives each waiter its leases. The caller holds w.mu.
func (t *transaction) granted(leases []place) {
	var names []string
	for _, got := range leases {
		names = append(names, namesAt(got.Paths)...)
	}
	first, successor := leases[0], int64(-1)
	if t.behind != nil {
		successor = t.behind.Number()
	}
	t.w.next = t.behind
	t.w.book.Granted(names, &zk.Stat{EphemeralOwner: first.Session.ID(), Czxid: first.token, Ctime: time.Now().UnixMilli()}, successor, t.err != nil)
	for i, h := range t.heirs {
		next := t.behind
		if i+1 < len(t.heirs) {
			next = t.heirs[i+1].m
		}
		h.m.Granted(next)
		h.got, h.err = leases[i], t.err
		if h.State() != book.Served { // another lock is there, or nobody waits
			t.w.drop(h.got)
		}
	}
	if h := t.w.heirs[t.behind]; h != nil {
		h.goOn() // before the next release, which may come at once
	}
}

// claimOne makes the leases of one waiter alone. It returns nil if there are none.
func (t *transaction) claimOne() []place {
	h := t.heirs[0]
	got, err := h.p.claim(h.m.Session.Context(), h.m, t)
	if t.err = err; err == nil {
		return []place{got}
	}
	t.unchanged = refused(err) || errors.Is(err, ErrNodeDeleted) || errors.Is(err, client.ErrTooLarge)
	return nil
}

// claim makes the leases of the group. It returns nil if there are none.
func (t *transaction) claim() []place {
	var nodes []newNode
	var parts []client.Op
	for _, h := range t.heirs {
		nodes = append(nodes, h.p.nodes(h.p.nodeData(h.p.c))...)
		parts = append(parts, client.DeleteOp(h.m.Path, 0))
	}
	for _, r := range t.Released {
		for _, path := range r.Of.Paths {
			parts = append(parts, client.DeleteOp(path, client.AnyVersion))
		}
	}
	p, session := t.heirs[0].p, t.heirs[0].m.Session
	made, err := p.make(session.Context(), session, nodes, parts, t)
	t.unchanged = refused(err) || errors.Is(err, client.ErrTooLarge) // one request may be too small for all nodes
	switch {
	case made != nil:
		t.err = err // another lock is there
	case err != nil && !t.unchanged:
		t.err = takenAway(err)
	default:
		t.err = err
	}
	var leases []place
	for _, h := range t.heirs {
		if made == nil {
			return nil
		}
		if err != nil {
			h.p.unmixed.Store(false)
		}
		leases, made = append(leases, h.p.granted(session, made[:h.p.n])), made[h.p.n:]
	}
	return leases
}

// make makes leases in a transaction with parts. If another lock is in use on the path, it
// returns the leases and an error that names that lock. The path is listed behind the
// transaction, unless the guard tells. So if two locks of different kinds come in the same
// moment, at least one sees the other.
func (p permits) make(ctx context.Context, session *client.Session, nodes []newNode, parts []client.Op, w witness) ([]inside.Entry, error) {
	use := p.guard.borrow(session, p.path)
	defer func() { p.guard.giveBack(use) }()
	if !use.stands() {
		nodes[0].More = []string{p.path}
	}
	nodes[0].Made = w.seen
	made, err := inner.CreateGroup(ctx, session, nodes, parts...)
	if err != nil {
		return nil, err
	}
	w.tried(made[0].Connection)
	return made, p.refuseMixedAt(ctx, &use, made[0])
}

// handing is a release that may be part of a transaction.
type handing struct {
	book.Release[*heir, *handing]
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
	r.Release = book.Release[*heir, *handing]{Names: namesAt(released.Paths), Session: released.Session.ID(), Of: r}
	w.mu.Lock()
	wait := w.book.Release(&r.Release, statOfOwn(released))
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
		alone := w.book.Withdraw(&r.Release)
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
		w.book.Ended(namesAt(leases.Paths))
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

// Vacate deletes the nodes of a place, or hands them over to waiters.
func (p place) Vacate(ctx context.Context) error {
	w := p.lending()
	if w == nil {
		return p.Own.Vacate(ctx)
	}
	done, err := w.handOver(ctx, p)
	if !done {
		err = p.Own.Vacate(ctx)
		w.deleted(p, err)
	}
	return err
}

// VacateInBackground deletes the nodes of a place without waiting.
func (p place) VacateInBackground() {
	p.Own.VacateInBackground()
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

// goOn makes h ready, if it is the first without a gap. The caller holds the mutex of the
// waiters. It reports false if h still has to list the leases.
func (h *heir) goOn() bool {
	if !h.m.Gapless() || h.w.next != h.m || !h.w.book.Knows(&h.Waiter) {
		return false
	}
	h.w.book.First(&h.Waiter)
	return true
}
