package barrier

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// readyNode is the ready node as it was read.
type readyNode struct {
	there  bool
	unread bool // it may not be read
	data   []byte
	stat   *zk.Stat
}

// round is what decisions need.
func (r readyNode) round() round {
	if !r.there {
		return round{}
	}
	_, names := namesIn(r.data)
	return round{opened: r.stat.Czxid, names: names, unread: r.unread}
}

// readReady reads the ready node.
func (b *DistributedDoubleBarrier) readReady(ctx context.Context, s *client.Session) (r readyNode, err error) {
	r.data, r.stat, err = s.Get(ctx, b.ready())
	switch {
	case err == nil:
		r.there = true
	case errors.Is(err, zk.ErrNoNode):
		err = nil
	case errors.Is(err, zk.ErrNoAuth):
		r.unread = true
		r.there, r.stat, err = s.Exists(ctx, b.ready())
	}
	return r, err
}

// withNames is the data of a ready node with more members of the round.
func withNames(data []byte, names []string) []byte {
	before, old := namesIn(data)
	for _, name := range names {
		if !slices.Contains(old, name) {
			old = append(old, name)
		}
	}
	return slices.Concat(before, []byte(namesMark), []byte(strings.Join(old, ",")))
}

// namesIn takes the members of the round from the data of a ready node. Curator writes none.
func namesIn(data []byte) (before []byte, names []string) {
	i := bytes.LastIndex(data, []byte(namesMark))
	if i < 0 {
		return data, nil
	}
	return data[:i], strings.Split(string(data[i+len(namesMark):]), ",")
}

// clear removes the ready node of a round that is over. A delete can only name a
// version, and a new ready node has the same as the old. So clear first writes
// the bytes that are there. The answer says into which node, and the old node has
// a version of its own then. Both are transactions, as Set and Delete repeat themselves
// after a lost answer, and would meet the next round's node.
func (b *DistributedDoubleBarrier) clear(ctx context.Context, s *client.Session, r readyNode) error {
	data := r.data
	if r.unread {
		data = inner.DefaultData(b.c)
	}
	now, err := s.Multi(ctx, client.SetOp(b.ready(), data, r.stat.Version))
	if err == nil && now[0].Stat.Czxid == r.stat.Czxid {
		_, err = s.Multi(ctx, client.DeleteOp(b.ready(), now[0].Stat.Version))
	}
	switch {
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion):
		return nil // another member does the same; the caller looks again
	case client.UnknownOutcome(err) && s.Err() == nil && ctx.Err() == nil:
		return s.Sync(ctx, b.ready())
	}
	return err
}

// live returns another member of a round that stands, and a watch on it. The member at own
// does not count. The watch is nil if there is none: the members of that round are gone.
func (b *DistributedDoubleBarrier) live(ctx context.Context, s *client.Session, r round, own string) (path string, w *client.OneShotWatch, err error) {
	names, _, err := b.list(ctx, s)
	if err != nil {
		return "", nil, err
	}
	for _, name := range names {
		if b.at(name) == own {
			continue
		}
		there, stat, w, err := look(ctx, s, b.at(name))
		if err != nil {
			return "", nil, err
		}
		if there && r.has(standing{name: name, czxid: stat.Czxid}) {
			return b.at(name), w, nil
		}
		w.Stop()
	}
	return "", nil, nil
}

// saysLate reports whether a member stands, and whether its node says that it is late. A
// node that may not be read is taken for one.
func (b *DistributedDoubleBarrier) saysLate(ctx context.Context, s *client.Session, name string) (there, late bool, err error) {
	data, _, err := s.Get(ctx, b.at(name))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return false, false, nil
	case errors.Is(err, zk.ErrNoAuth):
		return true, true, nil
	}
	return err == nil, bytes.HasSuffix(data, []byte(lateMark)), err
}
