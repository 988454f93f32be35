package barrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

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
// [WithRounds]. A ready node that Curator's members have made lets the same
// members pass as in Curator.
//
// ctx bounds the waiting, and nothing after it. If it ends, the member's node is removed
// in the background and not counted any more, where Curator's stays (CURATOR-318,
// CURATOR-80). The error is a [*WaitError] then. If the round was opened meanwhile, the
// others have passed with this member counted; View tells. After a lost session Enter
// makes its node again in the next one, and never has two. Other errors match
// [ErrMemberCount], [ErrNodeDeleted] if another client deleted the node, or are the
// server's refusal. After any error no node stays.
func (b *DistributedDoubleBarrier) Enter(ctx context.Context) (*Member, error) {
	ctxerr.Require(ctx)
	for {
		e := &entry{b: b, path: b.at(newName()), seen: -1, same: map[string]bool{}}
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
	b       *DistributedDoubleBarrier
	path    string
	session *client.Session // the newest
	sent    bool            // the create of the node was sent
	gone    bool            // the node is known to be deleted
	czxid   int64           // of the node in this session
	first   int64           // of the first node, in whatever session
	created bool            // the ready node was made while the node stood
	seen    int             // members that stood at the last look, -1 before it
	same    map[string]bool // members whose number was compared
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
		e.session, e.created = s, false
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
	if e.b.rounds {
		if err := e.awaitEnd(ctx, s); err != nil {
			return nil, err
		}
	}
	if err := e.join(ctx, s); err != nil {
		return nil, err
	}
	e.first = cmp.Or(e.first, e.czxid)
	for {
		r, err := e.b.readReady(ctx, s)
		if err != nil {
			return nil, err
		}
		switch {
		case r.there && r.stat.Czxid > e.czxid, !r.there && e.created:
			if err := e.agrees(readyName, r.data); err != nil {
				return nil, err
			}
			return e.pass(ctx, s)
		case r.there:
			pass, err := e.late(ctx, s, r)
			if err != nil {
				return nil, err
			}
			if pass {
				return e.pass(ctx, s)
			}
		default:
			if err := e.await(ctx, s); err != nil {
				return nil, err
			}
		}
	}
}

// join makes the node of this member in this session. In the same transaction it
// removes what earlier entries of this barrier have left, and its own node of a
// lost session. So the others never count this process twice.
func (e *entry) join(ctx context.Context, s *client.Session) error {
	for {
		if e.sent {
			if err := s.Sync(ctx, e.path); err != nil {
				return err
			}
			there, stat, err := s.Exists(ctx, e.path)
			if err != nil {
				return err
			}
			if there && stat.EphemeralOwner == s.ID() { // no other client can know the name
				e.czxid = stat.Czxid
				return nil
			}
		}
		old := e.b.leftovers()
		parts, err := e.remains(ctx, s, old)
		if err != nil {
			return err
		}
		e.sent = true
		if len(parts) > 0 {
			_, err = s.Multi(ctx, append(parts, client.CreateOp(e.path, e.b.data(), e.b.creation(client.Ephemeral())...))...)
		} else {
			var stat *zk.Stat
			_, stat, err = s.CreateStat(ctx, e.path, e.b.data(), e.b.parents(client.Ephemeral())...)
			if err == nil {
				e.czxid = stat.Czxid
			}
		}
		switch {
		case err == nil:
			e.b.noteGone(old)
			if len(parts) == 0 {
				return nil
			}
		case !retries(ctx, s, err):
			return err
		}
	}
}

// retries reports whether the caller should look again after a refused or lost
// transaction.
func retries(ctx context.Context, s *client.Session, err error) bool {
	if ctx.Err() != nil || s.Err() != nil {
		return false
	}
	return client.UnknownOutcome(err) || errors.Is(err, zk.ErrNoNode) ||
		errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrBadVersion)
}

// remains are the deletions of nodes that this process has left.
func (e *entry) remains(ctx context.Context, s *client.Session, old []string) ([]client.Op, error) {
	var parts []client.Op
	if e.sent {
		old = append(old, e.path)
	}
	for _, path := range old {
		there, stat, err := s.Exists(ctx, path)
		if err != nil {
			return nil, err
		}
		if there {
			parts = append(parts, client.DeleteOp(path, stat.Version))
		}
	}
	return parts, nil
}

// late decides what to do in a round that was open before this member came.
func (e *entry) late(ctx context.Context, s *client.Session, r readyNode) (pass bool, err error) {
	if r.stat.Czxid > e.first { // it was opened during this Enter, whose session was lost then
		return true, e.agrees(readyName, r.data)
	}
	member, w, err := e.b.live(ctx, s, r.stat.Czxid, e.path)
	if err != nil {
		return false, err
	}
	w.Stop()
	switch {
	case w == nil:
		return false, e.b.clear(ctx, s, r)
	case e.b.rounds:
		return false, e.withdraw(ctx, s, member)
	}
	return true, e.agrees(readyName, r.data)
}

// withdraw deletes the node of this member and returns errOpen, if another member
// of the open round stands at path. If that member has left, the round may be
// over and the next one opened with this member counted. Then withdraw returns
// nil, and the caller looks again.
func (e *entry) withdraw(ctx context.Context, s *client.Session, path string) error {
	own := client.DeleteOp(e.path, client.AnyVersion)
	_, err := s.Multi(ctx, client.CheckOp(path, client.AnyVersion), own)
	refused := (*client.MultiError)(nil)
	if errors.Is(err, zk.ErrNoAuth) && errors.As(err, &refused) && refused.Index == 0 {
		_, err = s.Multi(ctx, own) // a check takes the right to read
	}
	if err != nil {
		if !retries(ctx, s, err) {
			return err
		}
		if err := s.Sync(ctx, e.path); err != nil {
			return err
		}
		if there, _, err := s.Exists(ctx, e.path); err != nil || there {
			return err
		}
	}
	e.gone = true
	return errOpen
}

// awaitEnd waits until no round is open that was open before this Enter had a node. A
// member that has lost its session since belongs to a round that was opened meanwhile.
func (e *entry) awaitEnd(ctx context.Context, s *client.Session) error {
	for {
		r, err := e.b.readReady(ctx, s)
		if err != nil || !r.there || e.first != 0 && r.stat.Czxid > e.first {
			return err
		}
		_, member, err := e.b.live(ctx, s, r.stat.Czxid, e.path)
		if err != nil {
			return err
		}
		if member == nil {
			if err := e.b.clear(ctx, s, r); err != nil {
				return err
			}
			continue
		}
		there, _, ready, err := look(ctx, s, e.b.ready())
		if err == nil && there {
			err = either(ctx, member, ready)
		}
		member.Stop()
		ready.Stop()
		if err != nil {
			return err
		}
	}
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
		e.created = e.created || opened.Czxid > e.czxid
		return nil
	}
	defer e.heard(ready)
	stands, stat, own, err := look(ctx, s, e.path)
	if err != nil {
		return err
	}
	defer own.Stop()
	if !stands || stat.Czxid != e.czxid {
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
			e.created = true
		}
	default:
	}
}

func (e *entry) deleted() error {
	return fmt.Errorf("barrier: %s: %w", e.path, ErrNodeDeleted)
}

// open makes the ready node, if all that are counted still stand.
func (e *entry) open(ctx context.Context, s *client.Session, names []string) error {
	counted := []client.Op{client.CheckOp(e.path, client.AnyVersion)}
	for _, name := range names {
		if len(counted) < e.b.members && e.b.at(name) != e.path {
			counted = append(counted, client.CheckOp(e.b.at(name), client.AnyVersion))
		}
	}
	ready := client.CreateOp(e.b.ready(), e.b.data(), e.b.creation()...)
	_, err := s.Multi(ctx, append(slices.Clone(counted), ready)...)
	refused := (*client.MultiError)(nil)
	if errors.Is(err, zk.ErrNoAuth) && errors.As(err, &refused) && refused.Index < len(counted) {
		_, err = s.Multi(ctx, ready) // a check takes the right to read
	}
	if err == nil {
		return nil
	}
	if !retries(ctx, s, err) {
		return err
	}
	return s.Sync(ctx, e.b.path) // or the same list may come again from a server that lags
}

// compare reads the nodes of other members that were not read yet.
func (e *entry) compare(ctx context.Context, s *client.Session, names []string) error {
	seen := make([][]byte, len(names))
	errs := make([]error, len(names))
	turns := make(chan struct{}, readers)
	var all sync.WaitGroup
	for i, name := range names {
		if e.same[name] || e.b.at(name) == e.path {
			continue
		}
		turns <- struct{}{}
		all.Go(func() { // ends with ctx or the answer; this call waits for it
			defer func() { <-turns }()
			seen[i], _, errs[i] = s.Get(ctx, e.b.at(name))
		})
	}
	all.Wait()
	for i, name := range names {
		switch {
		case errs[i] != nil && !errors.Is(errs[i], zk.ErrNoNode) && !errors.Is(errs[i], zk.ErrNoAuth):
			return errs[i]
		case errs[i] == nil:
			if err := e.agrees(name, seen[i]); err != nil {
				return err
			}
			e.same[name] = true
		}
	}
	return nil
}

// readers is how many members are read at once.
const readers = 16

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

// pass makes a member of an entry, if its node still stands.
func (e *entry) pass(ctx context.Context, s *client.Session) (*Member, error) {
	there, stat, err := s.Exists(ctx, e.path)
	if err != nil {
		return nil, err
	}
	if !there || stat.Czxid != e.czxid {
		e.gone = !there
		return nil, e.deleted()
	}
	m := &Member{b: e.b, path: e.path, session: s}
	m.ctx, m.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	m.holding, err = inner.Hold(ctx, s, m.lost, e.path)
	if err != nil {
		m.stop(err)
		if errors.Is(err, zk.ErrNoNode) {
			return nil, e.deleted()
		}
		return nil, err
	}
	return m, nil
}
