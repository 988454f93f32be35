package recipes

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// claim makes the leases of m, which is the first in the queue and has found room. The
// same transaction deletes m's node in the queue. If another client has deleted that
// node, another acquire may be the first, and the transaction fails.
//
// The transaction also fails if another client has written to the node. A request to
// release that was written there is written into the leases, where the hold reads it.
func (p permits) claim(ctx context.Context, m *seqqueue.Member) (place, error) {
	data, version := p.nodeData(p.c), int32(0)
	for {
		made, err := p.grantLeases(ctx, m, data, version)
		var refused *client.MultiError
		switch part := errors.As(err, &refused) && refused.Index >= 0; {
		case err == nil:
			return made, nil
		case part && errors.Is(err, zk.ErrNoNode):
			return place{}, ErrNodeDeleted
		case !part || !errors.Is(err, zk.ErrBadVersion):
			return place{}, takenAway(err)
		}
		if data, version, err = p.askedWaiting(ctx, m); err != nil {
			return place{}, err
		}
	}
}

// grantLeases makes the leases, with data, and deletes the node of m if that has the
// version.
func (p permits) grantLeases(ctx context.Context, m *seqqueue.Member, data []byte, version int32) (place, error) {
	lease := newNode{Dir: p.leases.dir, Prefix: leaseTag, Data: data, ACL: p.acl}
	made, err := inner.CreateGroup(ctx, m.Session, slices.Repeat([]newNode{lease}, p.n), client.DeleteOp(m.Path, version))
	if err != nil {
		return place{}, err
	}
	paths := make([]string, len(made))
	for i, e := range made {
		paths[i] = e.Path
	}
	return place{
		Own:  seqqueue.Own{Session: m.Session, Paths: paths},
		lock: p.path, key: p.key, c: p.c, set: &p.settings, token: made[0].Czxid, shared: !p.alone,
	}, nil
}

// askedWaiting returns the data of the leases, and the version of the node of m. If
// that node says a request to release, the data has the request behind it. A node that
// this client may not read tells nothing, and any version of it will do.
func (p permits) askedWaiting(ctx context.Context, m *seqqueue.Member) (data []byte, version int32, err error) {
	data = p.nodeData(p.c)
	said, stat, err := m.Session.Get(ctx, m.Path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, 0, ErrNodeDeleted
	case errors.Is(err, zk.ErrNoAuth):
		return data, client.AnyVersion, nil
	case err != nil:
		return nil, 0, err
	}
	_, asked := cutRevocation(said)
	switch {
	case asked && len(data) == 0:
		data = []byte(revocation)
	case asked:
		data = append(bytes.Clone(data), answered...)
	}
	return data, stat.Version, nil
}
