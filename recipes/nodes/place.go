package nodes

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// owner says whose node stands at a path.
type owner int

const (
	nobody  owner = iota
	ours          // made, or adopted, by this object in this session
	ghost         // to be replaced: of a lost session of this object
	foreign       // to be left alone
)

// judge says whose node it is that has that stat. After a create whose outcome is not
// known it takes a node of this session for the one that was made.
func (n *PersistentNode) judge(ctx context.Context, s *client.Session, path string, stat *zk.Stat) (owner, error) {
	session := ofSession(stat.EphemeralOwner)
	switch {
	case stat.Czxid == n.czxid && (!session || stat.EphemeralOwner == s.ID()):
		return ours, nil
	case session != n.mode.ephemeral():
		return foreign, nil
	case !session:
		return ours, n.adopt(ctx, s, path, stat)
	case stat.EphemeralOwner == s.ID() && n.doubt:
		n.claim(stat.Czxid)
		return ours, nil
	case slices.Contains(n.past, stat.EphemeralOwner), n.takeOver:
		return ghost, nil
	default:
		return foreign, nil
	}
}

// claim notes that this object has made the node, with the data of the newest create.
func (n *PersistentNode) claim(czxid int64) {
	n.czxid, n.made, n.doubt, n.wrote = czxid, true, false, n.sent
}

// adopt takes a node without an owner for ours. It was made by this object if the
// answer to a create was lost, and if it has the bytes and the version of that create
// (Curator: IdempotentUtils).
func (n *PersistentNode) adopt(ctx context.Context, s *client.Session, path string, stat *zk.Stat) error {
	if n.doubt && stat.Version == 0 {
		data, now, err := s.Get(ctx, path)
		if err != nil {
			return err
		}
		if now.Czxid == stat.Czxid && bytes.Equal(data, n.bytes) {
			n.claim(stat.Czxid)
			return nil
		}
	}
	n.czxid, n.made, n.doubt, n.wrote = stat.Czxid, n.takeOver, false, 0
	return nil
}

// create makes the node.
func (n *PersistentNode) create(ctx context.Context, s *client.Session) error {
	path, numbered := n.base, n.number != ""
	switch {
	case n.protected:
		path += n.number
	case n.path != "":
		path = n.path
	}
	opts := n.mode.options(numbered, n.ttl)
	if n.protected {
		opts = append(opts, client.Protected())
	}
	if !n.noParents {
		opts = append(opts, client.WithParents())
	}
	if n.acl != nil {
		opts = append(opts, client.ACL(n.acl...), client.ParentACL(n.acl...))
	}
	n.bytes, n.sent = n.wanted()
	made, stat, err := s.CreateStat(ctx, path, n.bytes, opts...)
	switch {
	case err == nil:
		n.stands(made, stat.Czxid)
	case errors.Is(err, zk.ErrNodeExists):
		n.look, n.stale = true, true
		return nil
	case client.UnknownOutcome(err) && !n.protected: // else the client removes what it may have made
		n.look, n.stale, n.doubt = true, true, true
	}
	return err
}

// stands notes the node that was made.
func (n *PersistentNode) stands(path string, czxid int64) {
	n.path, n.look = path, true
	if n.mode.sequential() {
		n.number = path[len(path)-numberLength:]
	}
	n.claim(czxid)
}

// numberLength is that of a sequential node's number.
const numberLength = 10

// replace makes the node and deletes a ghost, in one transaction: no reader sees a
// moment without a node. The version makes sure that it is the node that was read.
func (n *PersistentNode) replace(ctx context.Context, s *client.Session, version int32) error {
	n.bytes, n.sent = n.wanted()
	var err error
	if n.protected {
		var made []inside.Entry
		made, err = inner.CreateGroup(ctx, s, []inside.Node[client.Client]{{
			Dir: n.dir, Prefix: n.name + n.number, Plain: true, Data: n.bytes, ACL: n.acl,
		}}, client.DeleteOp(n.path, version))
		if err == nil {
			n.stands(made[0].Path, made[0].Czxid)
			return nil
		}
	} else {
		opts := []client.CreateOption{client.Ephemeral()}
		if n.acl != nil {
			opts = append(opts, client.ACL(n.acl...))
		}
		_, err = s.Multi(ctx, client.DeleteOp(n.path, version), client.CreateOp(n.path, n.bytes, opts...))
	}
	switch {
	case err == nil:
		n.doubt = true // its czxid is not known, its session is
	case client.UnknownOutcome(err):
		n.doubt, n.stale = !n.protected, true
	case errors.Is(err, zk.ErrNoNode): // the servers have deleted it meanwhile
		n.look = false
		return nil
	case errors.Is(err, zk.ErrBadVersion): // another client has written into it
		n.stale = true
		return nil
	}
	return err
}

// resolve finds out what has become of a create whose answer was lost, as far as the
// path tells it not.
func (n *PersistentNode) resolve(ctx context.Context, s *client.Session) error {
	if !n.stale {
		return nil
	}
	if err := s.Sync(ctx, n.dir); err != nil {
		return err
	}
	if n.doubt && n.path == "" {
		path, err := n.find(ctx, s)
		if err != nil {
			return err
		}
		n.path, n.look, n.doubt = path, path != "", path != ""
		n.number = path[max(0, len(path)-numberLength):]
	}
	n.stale = false
	return nil
}

// find returns the newest node of this session at the base path with a number, or "".
// Two objects of one client at one base path, without protection, are not told apart.
func (n *PersistentNode) find(ctx context.Context, s *client.Session) (path string, err error) {
	names, _, err := s.Children(ctx, n.dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", err
	}
	numbered := regexp.MustCompile("^" + regexp.QuoteMeta(n.name) + `[0-9]{10}$`)
	var newest int64
	for _, name := range names {
		if !numbered.MatchString(name) {
			continue
		}
		at := strings.TrimSuffix(n.dir, "/") + "/" + name
		there, stat, err := s.Exists(ctx, at)
		if err != nil {
			return "", err
		}
		if there && stat.EphemeralOwner == s.ID() && stat.Czxid > newest {
			path, newest = at, stat.Czxid
		}
	}
	return path, nil
}
