package client

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
	"github.com/docent-go/docent/retry"
)

// remover deletes nodes that have no user any more: nodes of a create that was given
// up with an unknown outcome, and nodes of a release that failed. While there is one,
// a goroutine works on it until the node is gone, its session is over or the client
// is closed (Curator: FailedDeleteManager, FindAndDeleteProtectedNodeInBackground).
type remover struct {
	core *core
	wake chan struct{} // holds a token when there may be a new removal

	mu      sync.Mutex // guards the rest; never held across I/O
	todo    []*removal
	running bool
}

func newRemover(c *core) *remover { return &remover{core: c, wake: make(chan struct{}, 1)} }

// removal is one node to delete, or what one protected create may have left.
type removal struct {
	owner *sessionState // nil if the nodes outlive their session
	what  string        // the node, or the directory in which it may be
	full  []string      // the nodes, once they are known
	from  *attempt      // the create that may have made them; nil if full is known
	gone  func()        // is called at the end, or nil

	begun   time.Time
	tries   int
	backoff backoff.BackOff
	due     time.Time
	refused bool  // and that was logged
	err     error // of the newest try
}

// protectedName tells a protected node from others, whatever its number.
type protectedName struct{ dir, prefix string }

// deleteInBackground is inside.Functions.DeleteInBackground.
func deleteInBackground(s *Session, path string, gone func()) error {
	full, err := s.full(path)
	if err != nil {
		call(gone)
		return &OpError{Op: "delete", Path: path, Outcome: OutcomeNeverSent, Err: err}
	}
	s.core.remover.add(&removal{owner: s.session, what: full, full: []string{full}, gone: gone})
	return nil
}

// remove deletes one node of s.
func (r *remover) remove(s *sessionState, full string) {
	r.add(&removal{owner: s, what: full, full: []string{full}})
}

// over says that there is nothing left to remove, or that nobody will.
func (m *removal) over() { call(m.gone) }

// call calls f, unless it is nil.
func call(f func()) {
	if f != nil {
		f()
	}
}

// add starts the removal m, unless the session of its nodes is over, which deletes
// them.
func (r *remover) add(m *removal) {
	if !r.added(m) {
		m.over()
	}
}

// added is add, and reports whether there is anything to do.
func (r *remover) added(m *removal) bool {
	c := r.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || m.pointless() {
		return false
	}
	m.backoff = retry.Default().WithRand(c.cfg.rand).WithCap(c.servers.Timeout() / 3).BackOff()
	r.mu.Lock()
	defer r.mu.Unlock()
	m.begun = time.Now()
	r.todo = append(r.todo, m)
	r.told(m, RemovalOwed, nil)
	if !r.running {
		r.running = true
		c.wg.Go(r.run) // ends when nothing is left to do, or with the client
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return true
}

// pointless reports that m's nodes are deleted with their session, or have been.
func (m *removal) pointless() bool {
	return m.owner != nil && m.owner.over() != nil && (!m.owner.lingers() || !m.unique())
}

// within reports whether s may delete m's nodes.
func (m *removal) within(s *sessionState) bool {
	return m.owner == nil || m.owner == s || m.owner.lingers()
}

func (r *remover) run() {
	c := r.core
	for {
		s, err := c.await(c.ctx, nil, nil)
		if err != nil {
			r.giveUp(err)
			return
		}
		next, more := r.round(s)
		if !more {
			return
		}
		t := time.NewTimer(time.Until(next))
		select {
		case <-t.C:
		case <-r.wake:
		case <-c.ctx.Done():
		}
		t.Stop()
	}
}

// giveUp ends the work: the client is closed, or no server accepts it.
func (r *remover) giveUp(why error) {
	r.mu.Lock()
	left := r.todo
	r.todo, r.running = nil, false
	r.mu.Unlock()
	for _, m := range left {
		m.over()
		if m.pointless() {
			r.told(m, RemovalWithSession, nil)
			continue
		}
		r.told(m, RemovalGivenUp, why)
		if !errors.Is(why, ErrClosed) {
			r.core.journal.Say(slog.LevelWarn, "zookeeper: a node that is no longer wanted could not be removed", "node", m.what, "reason", why)
		}
	}
}

// gathering is how long the remover waits for more removals before it begins. Nodes
// that are given up at one moment leave together, and in the order of the queue.
const gathering = 10 * time.Microsecond

// round tries the removals that are due on s. It returns when to come again. If no
// removal is left, more is false and the goroutine counts as ended.
func (r *remover) round(s *sessionState) (next time.Time, more bool) {
	_ = ctxerr.Sleep(s.ctx, gathering)
	r.mu.Lock()
	now := time.Now()
	var due, later, over []*removal
	for _, m := range r.todo {
		switch {
		case m.pointless():
			r.told(m, RemovalWithSession, nil)
			over = append(over, m)
		case !m.due.After(now) && m.within(s):
			due = append(due, m)
		default:
			later = append(later, m)
		}
	}
	r.todo = later
	r.mu.Unlock()
	for _, m := range over {
		m.over()
	}
	slices.SortStableFunc(due, inLine)
	sought := slices.IndexFunc(due, func(m *removal) bool { return m.from != nil })
	if sought < 0 {
		sought = len(due)
	}
	left := append(r.try(s, due[:sought]), r.try(s, due[sought:])...) // a released node does not wait for a search
	r.mu.Lock()
	defer r.mu.Unlock()
	r.todo = append(r.todo, left...)
	for i, m := range r.todo {
		if i == 0 || m.due.Before(next) {
			next = m.due
		}
	}
	r.running = len(r.todo) > 0
	return next, r.running
}

// deletionsAtOnce are sent together.
const deletionsAtOnce = 256

// try deletes nodes, and returns the removals of due that are not done.
func (r *remover) try(s *sessionState, due []*removal) (left []*removal) {
	dirs := map[string][]string{}
	for batch := range slices.Chunk(due, deletionsAtOnce) {
		for _, m := range batch {
			m.err = m.find(s.ctx, s, dirs)
		}
		slices.SortStableFunc(batch, inLine)
		var xs []*wire.Exchange
		for _, m := range batch {
			for _, full := range m.full {
				xs = append(xs, deletion(full, AnyVersion))
			}
		}
		var ended error
		if len(xs) > 0 {
			ended = s.link.Do(s.ctx, xs...)
		}
		for _, m := range batch {
			for _, x := range xs[:len(m.full)] {
				if err := s.outcome(s.ctx, x, ended); err != nil && !errors.Is(err, zk.ErrNoNode) {
					m.err = err
				}
			}
			xs = xs[len(m.full):]
			if m.tries++; m.err == nil {
				r.told(m, RemovalDone, nil)
				m.over()
				continue
			}
			r.told(m, RemovalFailed, m.err)
			r.again(m, m.err)
			left = append(left, m)
		}
	}
	return left
}

// inLine orders removals by directory and number. Removals whose nodes have to be
// sought come last.
func inLine(a, b *removal) int {
	position := func(m *removal) (dir, number string) {
		if len(m.full) == 0 {
			return m.what, ""
		}
		return path.Dir(m.full[0]), ending(m.full[0])
	}
	switch {
	case a.from == nil && b.from != nil:
		return -1
	case a.from != nil && b.from == nil:
		return 1
	}
	aDir, aNumber := position(a)
	bDir, bNumber := position(b)
	return cmp.Or(strings.Compare(aDir, bDir), strings.Compare(aNumber, bNumber))
}

// again puts m off after err.
func (r *remover) again(m *removal, err error) {
	m.due = time.Now().Add(m.backoff.NextBackOff())
	var ft *fault
	if errors.As(err, &ft) && ft.outcome == OutcomeRefused && !passing(err) && !m.refused {
		// The right may be given later. To give up would leave the node in the way of
		// other clients.
		m.refused = true
		r.core.journal.Say(slog.LevelWarn, "zookeeper: a server refuses to remove a node that is no longer wanted; trying on", "node", m.what, "reason", err)
	}
}

// find learns which nodes a create has made. It first waits for the end of the
// request. If that got no answer, find searches in lists, which it adds to dirs. A
// request that is still on its way comes before the list on the same connection. On
// an older connection servers do not carry it out any more, once the session has
// moved to the next.
func (m *removal) find(ctx context.Context, s *sessionState, dirs map[string][]string) error {
	if m.from == nil {
		return nil
	}
	var full []string
	x := m.from.last
	x.AwaitAnswer(ctx)
	if x.Answered() && x.Err() == nil && x.Reply.Code == 0 {
		full = m.from.made()
	} else {
		for _, p := range m.from.protectedNames() {
			names, seen := dirs[p.dir]
			if !seen {
				var err error
				if names, err = listed(ctx, s, p.dir); err != nil {
					return err
				}
				dirs[p.dir] = names
			}
			for _, name := range withPrefix(names, p.prefix) {
				full = append(full, join(p.dir, name))
			}
		}
	}
	m.full, m.from = full, nil
	return nil
}
