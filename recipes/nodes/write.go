package nodes

import (
	"context"
	"errors"
	"slices"
	"time"

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
	sent := time.Now()
	now, err := s.Set(ctx, n.path, data, stat.Version, client.AcceptEqual())
	switch {
	case err == nil && now.Czxid == n.czxid:
		n.wrote, n.touch.since = gen, sent
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

// remove deletes the node if this object has made it. It tries until that is done, a
// server refuses it, the client is closed, or the session of an ephemeral node is over.
func (n *PersistentNode) remove(ctx context.Context) error {
	s := n.session
	if s == nil || n.mode == persistentTTL || !n.mayHaveMade() {
		return nil
	}
	for {
		again, err := n.removeIn(ctx, s)
		switch {
		case s.Err() == nil && (err == nil && !again || refused(err) || errors.Is(err, client.ErrClosed)):
			return err
		case s.Err() == nil:
			if !again {
				n.pause(ctx)
			}
		case n.mode.ephemeral():
			return nil // it is deleted with the session
		default:
			if s, err = n.c.Session(ctx); errors.Is(err, client.ErrClosed) {
				return err
			} else if err != nil {
				s = n.session
				n.pause(ctx)
			}
			n.stale = true
		}
	}
}

// mayHaveMade reports whether a node of this object may stand.
func (n *PersistentNode) mayHaveMade() bool {
	return n.made || n.doubt || n.search || n.next != ""
}

// removeIn is one try of remove. again says that the next may come at once.
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
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return false, nil
	case errors.Is(err, zk.ErrBadVersion):
		n.stale = true
		return true, nil
	}
	n.stale = true
	return client.UnknownOutcome(err), err
}
