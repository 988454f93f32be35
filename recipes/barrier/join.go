package barrier

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// join makes the node of this member in this session. In the same transaction it
// removes what earlier entries of this barrier have left, and its own node of a
// lost session. So the others never count this process twice.
func (e *entry) join(ctx context.Context, s *client.Session) error {
	for {
		old := e.b.leftovers()
		if e.sent || len(old) > 0 { // a server that lags behind may not know the nodes yet
			if err := s.Sync(ctx, e.path); err != nil {
				return err
			}
		}
		if e.sent {
			there, stat, err := s.Exists(ctx, e.path)
			if err != nil {
				return err
			}
			if there && stat.EphemeralOwner == s.ID() { // no other client can know the name
				e.rule.czxid = stat.Czxid
				return nil
			}
		}
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
				e.rule.czxid = stat.Czxid
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

// register writes the name of this member into the ready node, if that is as it was read.
// From then on no member of this library removes it while this member stands. In the same
// transaction the member's node says so, for a Leave after Curator has removed the other.
func (e *entry) register(ctx context.Context, s *client.Session, r readyNode) error {
	if err := e.agrees(readyName, r.data); err != nil {
		return err
	}
	if r.unread { // its names would be lost
		if _, _, err := s.Get(ctx, e.b.ready()); !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		return nil // the round is over meanwhile: the caller looks again
	}
	now, err := s.Multi(ctx,
		client.SetOp(e.b.ready(), withNames(r.data, []string{e.rule.name}), r.stat.Version),
		client.SetOp(e.path, append(e.b.data(), lateMark...), client.AnyVersion))
	refused := (*client.MultiError)(nil)
	switch {
	case err == nil:
		e.rule.passes = now[0].Stat.Czxid == r.stat.Czxid
		return nil
	case errors.Is(err, zk.ErrNoNode) && errors.As(err, &refused) && refused.Index == 1:
		e.gone = true
		return e.deleted()
	case !retries(ctx, s, err):
		return err
	}
	return s.Sync(ctx, e.b.ready()) // or the same version may come again from a server that lags
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
