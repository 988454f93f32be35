package shared

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

const trySetOp = "try to set"

// trySet is SharedCount.TrySet.
func (s *seeded[T]) trySet(ctx context.Context, prev Versioned[T], v T) (bool, error) {
	if prev.Version == client.AnyVersion {
		return false, fmt.Errorf("shared: %s %s: its node's version has come to %d, which would stand for any: use Set", s.kind.name, s.path, prev.Version)
	}
	for {
		session, err := s.c.Session(ctx)
		if err != nil {
			return false, err
		}
		set, err := s.trySetIn(ctx, session, prev, v)
		if !again(err) || ctx.Err() != nil {
			return set, err
		}
	}
}

// again says that nothing was written, for a reason that a new mark removes.
func again(err error) bool {
	return (errors.Is(err, client.ErrSessionLost) || errors.Is(err, errMarkDeleted)) && !client.UnknownOutcome(err)
}

// trySetIn is trySet in one session.
func (s *seeded[T]) trySetIn(ctx context.Context, session *client.Session, prev Versioned[T], v T) (bool, error) {
	mark, err := newMark(ctx, session, s.path, s.createOptions())
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, s.failed(trySetOp, client.OutcomeNeverSent, err)
	}
	defer mark.abandon()
	_, stat, err := session.Get(ctx, s.path)
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, s.failed(trySetOp, client.OutcomeNeverSent, err)
	}
	if err := s.kind.wanted(s.path, int(stat.DataLength)); err != nil {
		return false, err
	}
	if stat.Czxid != prev.czxid || stat.Mzxid != prev.mzxid {
		return false, nil
	}
	_, set, err := mark.write(ctx, s.origin(prev), s.kind.encode(v))
	if missing(err) {
		return false, nil
	}
	return set, err
}

// missing says that there is no node, and that nothing was written: an operator has
// deleted it with the mark.
func missing(err error) bool { return errors.Is(err, zk.ErrNoNode) && !client.UnknownOutcome(err) }

// origin is where prev was read.
func (n *node[T]) origin(prev Versioned[T]) origin {
	return origin{path: n.path, version: prev.Version, czxid: prev.czxid, mzxid: prev.mzxid}
}
