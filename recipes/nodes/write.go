package nodes

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// write sets the data of the node unless it has the newest. It returns false if the
// node must be looked at again. The version keeps it from a node that has taken the
// place of ours, unless that has the same version.
func (n *PersistentNode) write(ctx context.Context, s *client.Session, stat *zk.Stat) (bool, error) {
	data, gen := n.wanted()
	if n.wrote >= gen {
		return true, nil
	}
	now, err := s.Set(ctx, n.path, data, stat.Version, client.AcceptEqual())
	switch {
	case err == nil && now.Czxid == n.czxid:
		n.wrote = gen
		return true, nil
	case err == nil:
		inner.Logger(n.c).Warn("zookeeper: the data of a persistent node was set in another client's node, which was made at that moment", "path", n.path)
		return false, nil
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode):
		n.stale = true
		return false, nil
	}
	n.stale = true
	return false, err
}

// remove deletes the node if this object has made it.
func (n *PersistentNode) remove(ctx context.Context) error {
	s := n.session
	if s == nil || n.mode == persistentTTL || !n.made && !n.doubt {
		return nil
	}
	for {
		again, err := n.removeIn(ctx, s)
		switch {
		case ctx.Err() != nil, s.Err() == nil && !again:
			return err
		case s.Err() == nil:
		case n.mode.ephemeral():
			return nil // it is deleted with the session
		default:
			if s, err = n.c.Session(ctx); err != nil {
				return err
			}
			n.stale = true
		}
	}
}

// removeIn is one try of remove.
func (n *PersistentNode) removeIn(ctx context.Context, s *client.Session) (again bool, err error) {
	if err := n.resolve(ctx, s); err != nil || n.path == "" {
		return false, err
	}
	there, stat, err := s.Exists(ctx, n.path)
	if err != nil || !there {
		return false, err
	}
	whose, err := n.judge(ctx, s, n.path, stat)
	left := whose == ghost && slices.Contains(n.past, stat.EphemeralOwner)
	if err != nil || !left && (whose != ours || !n.made) {
		return false, err
	}
	err = s.Delete(ctx, n.path, stat.Version)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	n.stale = true
	return errors.Is(err, zk.ErrBadVersion) || client.UnknownOutcome(err), err
}
