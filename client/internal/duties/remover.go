package duties

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
	"github.com/docent-go/docent/internal/inside"
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

	mu      sync.Mutex // guards the rest; never held across I/O
	todo    []*Removal
	running bool
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

// State says what has become of a removal.
type State int

// The states of a removal. Owed comes once and first. Failed comes after every try that failed.
// One of the others comes once, at the end.
const (
	Owed        State = iota // the remover has taken it on
	Failed                   // a try failed, and another follows
	Done                     // the node is gone, or never was
	WithSession              // the session is over, and the server deletes the node with it
	GivenUp                  // the client is closed, or no server accepts it
)

// Removal is one node to delete, or what one protected create may have left.
type Removal struct {
	Owner Session   // nil if the nodes outlive their session
	What  string    // the node, or the directory in which it may be
	Full  []string  // the nodes, once they are known
	From  *Lost     // the create that may have made them; nil if Full is known
	Due   time.Time // not before then
	Gone  func()    // is called at the end, or nil

	Begun   time.Time
	Tries   int
	backoff backoff.BackOff
	refused bool  // and that was logged
	err     error // of the newest try
}

// Lost is a create of protected nodes whose answer did not come.
type Lost struct {
	Request *wire.Exchange
	Dirs    []string        // where the nodes may be
	Prefix  string          // of their names; "" if they are not protected
	Made    func() []string // the nodes that the answer names
}

// over says that there is nothing left to remove, or that nobody will.
func (m *Removal) over() {
	if m.Gone != nil {
		m.Gone()
	}
}

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
	// run ends when nothing is left to do, or with the client. It waits for r.mu first.
	if r.running = r.running || r.cfg.Go(r.run); !r.running {
		return false
	}
	m.Begun = time.Now()
	r.todo = append(r.todo, m)
	r.cfg.Tell(m, Owed, nil)
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return true
}

// pointless reports that m's nodes are deleted with their session, or have been.
func (m *Removal) pointless() bool {
	return m.Owner != nil && m.Owner.Ended() && (!m.Owner.Lingers() || !m.unique())
}

// within reports whether s may delete m's nodes.
func (m *Removal) within(s Session) bool {
	return m.Owner == nil || m.Owner == s || m.Owner.Lingers()
}

// unique reports whether no other client can have made a node with the name of one of
// m's: the names are protected.
func (m *Removal) unique() bool {
	if m.From != nil {
		return m.From.Prefix != ""
	}
	return !slices.ContainsFunc(m.Full, func(full string) bool {
		return !strings.HasPrefix(path.Base(full), inside.ProtectedPrefix)
	})
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
	left := r.todo
	r.todo, r.running = nil, false
	r.mu.Unlock()
	for _, m := range left {
		m.over()
		if m.pointless() {
			r.cfg.Tell(m, WithSession, nil)
			continue
		}
		r.cfg.Tell(m, GivenUp, why)
		if !r.cfg.Closed(why) {
			r.cfg.Journal.Say(slog.LevelWarn, "zookeeper: a node that is no longer wanted could not be removed", "node", m.What, "reason", why)
		}
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
	now := time.Now()
	var due, later, over []*Removal
	for _, m := range r.todo {
		switch {
		case m.pointless():
			r.cfg.Tell(m, WithSession, nil)
			over = append(over, m)
		case !m.Due.After(now) && m.within(s):
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
	sought := slices.IndexFunc(due, func(m *Removal) bool { return m.From != nil })
	if sought < 0 {
		sought = len(due)
	}
	left := append(r.try(s, due[:sought]), r.try(s, due[sought:])...) // a released node does not wait for a search
	r.mu.Lock()
	defer r.mu.Unlock()
	r.todo = append(r.todo, left...)
	for i, m := range r.todo {
		if i == 0 || m.Due.Before(next) {
			next = m.Due
		}
	}
	r.running = len(r.todo) > 0
	return next, r.running
}

// AtOnce is how many deletions are sent together.
const AtOnce = 256

// try deletes nodes, and returns the removals of due that are not done.
func (r *Remover) try(s Session, due []*Removal) (left []*Removal) {
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
				r.cfg.Tell(m, Done, nil)
				m.over()
				continue
			}
			r.cfg.Tell(m, Failed, m.err)
			r.again(m, m.err)
			left = append(left, m)
		}
	}
	return left
}

// inLine orders removals by directory and number. Removals whose nodes have to be
// sought come last.
func inLine(a, b *Removal) int {
	position := func(m *Removal) (dir, number string) {
		if len(m.Full) == 0 {
			return m.What, ""
		}
		return path.Dir(m.Full[0]), Ending(m.Full[0])
	}
	switch {
	case a.From == nil && b.From != nil:
		return -1
	case a.From != nil && b.From == nil:
		return 1
	}
	aDir, aNumber := position(a)
	bDir, bNumber := position(b)
	return cmp.Or(strings.Compare(aDir, bDir), strings.Compare(aNumber, bNumber))
}

// again puts m off after err.
func (r *Remover) again(m *Removal, err error) {
	m.Due = time.Now().Add(m.backoff.NextBackOff())
	if r.cfg.Lasting(err) && !m.refused {
		// The right may be given later. To give up would leave the node in the way of
		// other clients.
		m.refused = true
		r.cfg.Journal.Say(slog.LevelWarn, "zookeeper: a server refuses to remove a node that is no longer wanted; trying on", "node", m.What, "reason", err)
	}
}

// find learns which nodes a create has made. It first waits for the end of the
// request. If that got no answer, find searches in lists, which it adds to dirs. A
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
