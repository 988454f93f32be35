package barrier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
)

// Enter waits until as many members stand as the barrier is for, and opens a
// round with them. The one that opens it does so in a transaction which checks
// that they all still stand. So no member passes before there was a moment at
// which all stood, its own node included. A ready node that a crash has left lets
// no member pass: it is removed.
//
// While a round is open, a further member passes at once, as in Curator; see
// [WithRounds]. It writes its name into the ready node before, and needs the right to do so. A ready node that Curator's members have made lets the same
// members pass as in Curator.
//
// ctx bounds the waiting, and nothing after it. If it ends, the member's node is removed
// in the background and not counted any more, where Curator's stays (CURATOR-318,
// CURATOR-80). The error is a [*WaitError] then. If the round was opened meanwhile, the
// others have passed with this member counted; View tells. After a lost session Enter
// makes its node again in the next one, and never has two. It passes with a round that was
// opened meanwhile if it was counted in that, and is a further member of it otherwise.
// Other errors match [ErrMemberCount], [ErrNodeDeleted] if another client deleted the
// node, or are the server's refusal. After any error no node stays.
func (b *DistributedDoubleBarrier) Enter(ctx context.Context) (*Member, error) {
	ctxerr.Require(ctx)
	for {
		name := b.newName()
		e := &entry{b: b, path: b.at(name), rule: entering{name: name, rounds: b.rounds}, seen: -1}
		m, err := e.enter(ctx)
		if err == nil {
			return m, nil
		}
		if e.sent && !e.gone {
			b.abandon(e.session, e.path)
		}
		if !errors.Is(err, errOpen) {
			return nil, err
		}
	}
}

// errOpen says that the member has come into a round that was open before.
var errOpen = errors.New("an earlier round is open")

// entry is one Enter. It has one name for its node in all sessions, so that a request
// of a lost session that arrives late makes no second one.
type entry struct {
	b        *DistributedDoubleBarrier
	path     string
	session  *client.Session // the newest
	sent     bool            // the create of the node was sent
	gone     bool            // the node is known to be deleted
	rule     entering        // decides what is next
	seen     int             // members that stood at the last look, -1 before it
	compared string          // the member whose number was compared
}

// enter is one try of Enter, over all sessions.
func (e *entry) enter(ctx context.Context) (*Member, error) {
	for {
		if err := ctxerr.Ended(ctx); err != nil {
			return nil, e.waited(err)
		}
		s, err := e.b.c.Session(ctx)
		if err != nil {
			return nil, e.ended(ctx, err)
		}
		e.session = s
		e.rule.away()
		m, err := e.enterIn(ctx, s)
		if err == nil {
			return m, nil
		}
		if s.Err() == nil || ctx.Err() != nil {
			return nil, e.ended(ctx, err)
		}
	}
}

// ended makes a WaitError of err if the context has ended.
func (e *entry) ended(ctx context.Context, err error) error {
	if w := (*WaitError)(nil); ctx.Err() != nil && !errors.As(err, &w) {
		return e.waited(err)
	}
	return err
}

func (e *entry) waited(err error) error {
	return &WaitError{Path: e.b.path, Stood: e.seen, Members: e.b.members, Err: err}
}

// enterIn is enter in one session.
func (e *entry) enterIn(ctx context.Context, s *client.Session) (*Member, error) {
	for {
		var r readyNode
		var err error
		if e.rule.rounds || e.rule.czxid != 0 {
			if r, err = e.b.readReady(ctx, s); err != nil {
				return nil, err
			}
		}
		next, member, w := e.rule.next(r.round(), nil), "", (*client.OneShotWatch)(nil)
		if next == askLive {
			if member, w, err = e.b.live(ctx, s, r.round(), e.path); err != nil {
				return nil, err
			}
			stands := w != nil
			next = e.rule.next(r.round(), &stands)
		}
		if next == pass {
			return e.pass(ctx, s, r)
		}
		err = e.do(ctx, s, next, r, member, w)
		w.Stop()
		if err != nil {
			return nil, err
		}
	}
}

// do does what the rule says, except to pass. w watches the member, if one stands.
func (e *entry) do(ctx context.Context, s *client.Session, next deed, r readyNode, member string, w *client.OneShotWatch) error {
	switch next {
	case join:
		return e.join(ctx, s)
	case register:
		return e.register(ctx, s, r)
	case withdraw:
		return e.withdraw(ctx, s, member)
	case awaitEnd:
		return e.awaitEnd(ctx, s, w)
	case removeStale:
		return e.b.clear(ctx, s, r)
	default:
		return e.await(ctx, s)
	}
}

// awaitEnd waits until the ready node or the watched member of its round has changed.
func (e *entry) awaitEnd(ctx context.Context, s *client.Session, member *client.OneShotWatch) error {
	there, _, ready, err := look(ctx, s, e.b.ready())
	if err != nil || !there {
		return err
	}
	defer ready.Stop()
	return either(ctx, member, ready)
}

// either waits for one of two watches.
func either(ctx context.Context, one, other *client.OneShotWatch) error {
	select {
	case <-one.Done():
	case <-other.Done():
	case <-ctx.Done():
		return ctxerr.Ended(ctx)
	}
	return nil
}

// await opens the round if all have come, and otherwise waits until the ready
// node or the member's own node changes. The last member to come sees all others,
// as its list is newer than its node. So no other member needs to be woken.
func (e *entry) await(ctx context.Context, s *client.Session) error {
	there, opened, ready, err := s.ExistsW(ctx, e.b.ready())
	if err != nil {
		return err
	}
	defer ready.Stop()
	if there { // it may be gone again before it is read
		e.rule.saw(opened.Czxid)
		return nil
	}
	defer e.heard(ready)
	stands, stat, own, err := look(ctx, s, e.path)
	if err != nil {
		return err
	}
	defer own.Stop()
	if !stands || stat.Czxid != e.rule.czxid {
		e.gone = !stands
		return e.deleted()
	}
	names, _, err := e.b.list(ctx, s)
	if err != nil {
		return err
	}
	e.seen = len(names)
	if err := e.compare(ctx, s, names); err != nil {
		return err
	}
	if len(names) >= e.b.members {
		return e.open(ctx, s, names)
	}
	if err := either(ctx, ready, own); err != nil {
		return e.waited(err)
	}
	return nil
}

// heard notes that the ready node was made while this member's node stood. It may be gone
// again before it is read.
func (e *entry) heard(ready *client.OneShotWatch) {
	select {
	case <-ready.Done():
		if event, _ := ready.Event(); event == zk.EventNodeCreated {
			e.rule.passes = true
		}
	default:
	}
}

func (e *entry) deleted() error {
	return fmt.Errorf("barrier: %s: %w", e.path, ErrNodeDeleted)
}

// open makes the ready node, if all that are counted still stand.
func (e *entry) open(ctx context.Context, s *client.Session, names []string) error {
	counted, with := []client.Op{client.CheckOp(e.path, client.AnyVersion)}, []string{e.rule.name}
	for _, name := range names {
		if len(counted) < e.b.members && name != e.rule.name {
			counted, with = append(counted, client.CheckOp(e.b.at(name), client.AnyVersion)), append(with, name)
		}
	}
	ready := client.CreateOp(e.b.ready(), withNames(e.b.data(), with), e.b.creation()...)
	_, err := s.Multi(ctx, append(slices.Clone(counted), ready)...)
	refused := (*client.MultiError)(nil)
	if errors.Is(err, zk.ErrNoAuth) && errors.As(err, &refused) && refused.Index < len(counted) {
		// A check takes the right to read. Without it nobody is known to stand.
		_, err = s.Multi(ctx, client.CreateOp(e.b.ready(), e.b.data(), e.b.creation()...))
	}
	if err == nil {
		return nil
	}
	if !retries(ctx, s, err) {
		return err
	}
	return s.Sync(ctx, e.b.path) // or the same list may come again from a server that lags
}

// compare reads the number of one other member of this library, the lowest. A member whose
// number differs from that of others differs from that of the lowest.
func (e *entry) compare(ctx context.Context, s *client.Session, names []string) error {
	i := slices.IndexFunc(names, func(name string) bool { return name != e.rule.name && ofLibrary(name) })
	if i < 0 || names[i] == e.compared {
		return nil
	}
	data, _, err := s.Get(ctx, e.b.at(names[i]))
	switch {
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNoAuth):
		return nil
	case err != nil:
		return err
	}
	e.compared = names[i]
	return e.agrees(names[i], data)
}

// agrees compares the number in what another member wrote with that of this one.
func (e *entry) agrees(node string, data []byte) error {
	who, count, name := parse(data)
	if count == 0 || count == e.b.members {
		return nil
	}
	if name != "" {
		who = name
	}
	return &MemberCountError{Path: e.b.path, Node: node, Member: who, Theirs: count, Ours: e.b.members}
}

// pass makes a member of an entry, if its node still stands. r is the ready node, if that
// is there yet.
func (e *entry) pass(ctx context.Context, s *client.Session, r readyNode) (*Member, error) {
	if err := e.agrees(readyName, r.data); err != nil {
		return nil, err
	}
	there, stat, err := s.Exists(ctx, e.path)
	if err != nil {
		return nil, err
	}
	if !there || stat.Czxid != e.rule.czxid {
		e.gone = !there
		return nil, e.deleted()
	}
	m := &Member{b: e.b, path: e.path, session: s, opened: r.round().opened}
	m.ctx, m.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	m.holding, err = inner.Hold(ctx, s, m.lost, e.path)
	if err == nil {
		if err = m.Err(); err == nil { // a session that has ended meanwhile tells nobody else
			return m, nil
		}
		m.holding.Done()
	}
	m.stop(err)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, e.deleted()
	}
	return nil, err
}
