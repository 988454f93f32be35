package duties

import (
	"context"
	"errors"
	"log/slog"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
	"github.com/docent-go/docent/retry"
)

// Remover deletes nodes that have no user any more: nodes of a create that was given
// up with an unknown outcome, and nodes of a release that failed. While there is one,
// a goroutine works on it until the node is gone, its session is over or the client
// is closed (Curator: FailedDeleteManager, FindAndDeleteProtectedNodeInBackground).
type Remover struct {
	cfg  RemoverConfig
	wake chan struct{} // holds a token when there may be a new removal

	mu   sync.Mutex // guards the rest; never held across I/O
	debt debt
}

// RemoverConfig is what a remover needs.
type RemoverConfig struct {
	Life

	Policy func() retry.Policy // of the tries to remove one node
	// Lasting reports whether err is a refusal that the servers will repeat.
	Lasting func(err error) bool
	// Closed reports whether err is the end of the client.
	Closed func(err error) bool
	// Tell is called with each news of a removal. It must not block.
	Tell func(m *Removal, state State, err error)
}

// NewRemover returns a remover that owes nothing.
func NewRemover(cfg RemoverConfig) *Remover { return &Remover{cfg: cfg, wake: make(chan struct{}, 1)} }

// Remove deletes one node of s.
func (r *Remover) Remove(s Session, full string) {
	r.Add(&Removal{Owner: s, What: full, Full: []string{full}})
}

// Add starts the removal m, unless the session of its nodes is over, which deletes
// them. It never blocks.
func (r *Remover) Add(m *Removal) {
	if !r.added(m) {
		m.over()
	}
}

// added is Add, and reports whether there is anything to do.
func (r *Remover) added(m *Removal) bool {
	if m.pointless() {
		return false
	}
	m.backoff = r.cfg.Policy().BackOff()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.debt.work && !r.cfg.Go(r.run) { // run ends when nothing is left to do, or with the client; it waits for r.mu first
		return false
	}
	r.debt.add(m, time.Now())
	r.cfg.Tell(m, Owed, nil)
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return true
}

func (r *Remover) run() {
	for {
		s, err := r.cfg.Await(r.cfg.Context)
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
		case <-r.cfg.Context.Done():
		}
		t.Stop()
	}
}

// giveUp ends the work: the client is closed, or no server accepts it.
func (r *Remover) giveUp(why error) {
	r.mu.Lock()
	left, ended := r.debt.giveUp()
	r.mu.Unlock()
	r.end(ended, WithSession, nil)
	r.end(left, GivenUp, why)
	if r.cfg.Closed(why) {
		return
	}
	for _, m := range left {
		r.cfg.Journal.Say(slog.LevelWarn, "zookeeper: a node that is no longer wanted could not be removed", "node", m.What, "reason", why)
	}
}

// end tells that removals have ended.
func (r *Remover) end(ended []*Removal, state State, why error) {
	for _, m := range ended {
		r.cfg.Tell(m, state, why)
		m.over()
	}
}

// gathering is how long the remover waits for more removals before it begins. Nodes
// that are given up at one moment leave together, and in the order of the queue.
const gathering = 10 * time.Microsecond

// round tries the removals that are due on s. It returns when to come again. If no
// removal is left, more is false and the goroutine counts as ended.
func (r *Remover) round(s Session) (next time.Time, more bool) {
	_ = ctxerr.Sleep(s.Context(), gathering)
	r.mu.Lock()
	known, sought, ended := r.debt.begin(s, time.Now())
	r.mu.Unlock()
	r.end(ended, WithSession, nil)
	r.try(s, known) // a released node does not wait for a search
	r.try(s, sought)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.debt.rest()
}

// AtOnce is how many deletions are sent together.
const AtOnce = 256

// try deletes nodes.
func (r *Remover) try(s Session, due []*Removal) {
	dirs := map[string][]string{}
	for batch := range slices.Chunk(due, AtOnce) {
		for _, m := range batch {
			m.err = m.find(s.Context(), s, dirs)
		}
		slices.SortStableFunc(batch, inLine)
		var xs []*wire.Exchange
		for _, m := range batch {
			for _, full := range m.Full {
				xs = append(xs, deletion(full, anyVersion))
			}
		}
		var ended error
		if len(xs) > 0 {
			ended = s.Do(s.Context(), xs...)
		}
		for _, m := range batch {
			for _, x := range xs[:len(m.Full)] {
				if err := s.Outcome(s.Context(), x, ended); err != nil && !errors.Is(err, zk.ErrNoNode) {
					m.err = err
				}
			}
			xs = xs[len(m.Full):]
			if m.Tries++; m.err == nil {
				r.end([]*Removal{m}, Done, nil)
				continue
			}
			r.cfg.Tell(m, Failed, m.err)
			r.again(m)
		}
	}
}

// again puts m off.
func (r *Remover) again(m *Removal) {
	r.mu.Lock()
	r.debt.again(m, time.Now().Add(m.backoff.NextBackOff()))
	r.mu.Unlock()
	if r.cfg.Lasting(m.err) && !m.refused {
		// The right may be given later. To give up would leave the node in the way of
		// other clients.
		m.refused = true
		r.cfg.Journal.Say(slog.LevelWarn, "zookeeper: a server refuses to remove a node that is no longer wanted; trying on", "node", m.What, "reason", m.err)
	}
}

// find learns which nodes a create has made. It first waits for the end of the
// request: the answer, the loss of its connection, or the end of ctx. If that got no answer, find searches in lists, which it adds to dirs. A
// request that is still on its way comes before the list on the same connection. On
// an older connection servers do not carry it out any more, once the session has
// moved to the next.
func (m *Removal) find(ctx context.Context, s Session, dirs map[string][]string) error {
	if m.From == nil {
		return nil
	}
	var full []string
	x := m.From.Request
	x.AwaitAnswer(ctx)
	if x.Answered() && x.Err() == nil && x.Reply.Code == 0 {
		full = m.From.Made()
	} else {
		for _, dir := range m.From.Dirs {
			names, seen := dirs[dir]
			if !seen {
				var err error
				if names, err = Listed(ctx, s, dir); err != nil {
					return err
				}
				dirs[dir] = names
			}
			for _, name := range WithPrefix(names, m.From.Prefix) {
				full = append(full, path.Join(dir, name))
			}
		}
	}
	m.Full, m.From = full, nil
	return nil
}
