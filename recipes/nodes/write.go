package nodes

import (
	"bytes"
	"context"
	"time"

	"github.com/docent-go/docent/client"
)

// look asks for the node, with a watch if it is kept.
func (n *PersistentNode) look(ctx context.Context, s *client.Session, watch bool) (a answer, err error) {
	if watch {
		a.there, n.stat, n.watch, err = s.ExistsW(ctx, n.path)
	} else {
		a.there, n.stat, err = s.Exists(ctx, n.path)
	}
	if err == nil {
		a.czxid, a.owner, a.first = n.stat.Czxid, n.whose(s, n.stat), n.stat.Version == 0
		a.expired = n.touch.expired()
	}
	return a, err
}

// read tells by the data of a node without a UUID whether a create whose answer was lost
// has made it (Curator: IdempotentUtils).
func (n *PersistentNode) read(ctx context.Context, s *client.Session) (answer, error) {
	data, now, err := s.Get(ctx, n.path)
	return answer{czxid: n.stat.Czxid, equal: err == nil && now.Czxid == n.stat.Czxid && bytes.Equal(data, n.bytes)}, err
}

// setData gives the node the newest data. The version keeps it from a node that has taken
// the place of ours, unless that has the same version. Set would repeat itself, and meet such
// a node after the connection was lost.
func (n *PersistentNode) setData(ctx context.Context, s *client.Session) (a answer, err error) {
	var data []byte
	data, a.gen = n.wanted()
	since := time.Now()
	now, err := s.Multi(ctx, client.SetOp(n.path, data, n.stat.Version))
	if err != nil {
		return a, err
	}
	if a.czxid = now[0].Stat.Czxid; a.czxid == n.k.czxid {
		n.touch.since = since
	} else {
		inner.Logger(n.c).Warn("zookeeper: the data of a persistent node was set in another client's node, which was made at that moment", "path", n.path)
	}
	return a, nil
}
