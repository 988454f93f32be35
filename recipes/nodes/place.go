package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
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

// foreign says whose node is left alone, and what can be done.
func (n *PersistentNode) foreign(session int64) error {
	owner := fmt.Sprintf("%#x", uint64(session)) //nolint:gosec // bits, not a quantity
	switch {
	case !ofSession(session):
		return errors.New("nodes: a node that no session owns stands at the path: delete it, or take another path")
	case !n.mode.ephemeral():
		return fmt.Errorf("nodes: an ephemeral node of session %s stands at the path: take another path, or wait until it is deleted", owner)
	default:
		return fmt.Errorf("nodes: the node of session %s stands at the path: when it is deleted this one is made; TakeOver replaces it", owner)
	}
}

// claim notes that this object has made the node, with the data of the newest create.
func (n *PersistentNode) claim(czxid int64) {
	n.czxid, n.made, n.doubt, n.wrote, n.prefix = czxid, true, false, n.sent, ""
}

// adopt takes a node without an owner for ours. This object made the node if the
// answer to a create was lost, and the node has the UUID of that create. Without a
// UUID its bytes and version 0 tell the same (Curator: IdempotentUtils).
func (n *PersistentNode) adopt(ctx context.Context, s *client.Session, path string, stat *zk.Stat) error {
	if n.doubt && n.protected {
		n.claim(stat.Czxid)
		return nil
	}
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

// target is the path of the node that is to be made, as far as it is known before. A
// protected node that is made again has another UUID.
func (n *PersistentNode) target() (path string, whole bool) {
	if n.protected {
		if n.prefix == "" {
			n.prefix = inner.ProtectedPrefix()
		}
		return n.sibling(n.prefix + n.name + n.number), !n.mode.sequential() || n.number != ""
	}
	if n.path != "" {
		return n.path, true
	}
	return n.base, !n.mode.sequential()
}

// sibling is the path of another node of the same parent.
func (n *PersistentNode) sibling(name string) string {
	return strings.TrimSuffix(n.dir, "/") + "/" + name
}

// create makes the node.
func (n *PersistentNode) create(ctx context.Context, s *client.Session) error {
	path, whole := n.target()
	opts := n.mode.options(whole, n.ttl)
	switch {
	case n.noParents:
	case n.parentsStay:
		opts = append(opts, client.WithPersistentParents())
	default:
		opts = append(opts, client.WithParents())
	}
	if n.acl != nil {
		opts = append(opts, client.ACL(n.acl...), client.ParentACL(n.acl...))
	}
	n.bytes, n.sent = n.wanted()
	n.touch.begins()
	made, stat, err := s.CreateStat(ctx, path, n.bytes, opts...)
	switch {
	case err == nil:
		n.stands(made, stat.Czxid)
	case errors.Is(err, zk.ErrNodeExists):
		n.path, n.look, n.stale = path, true, true
		n.doubt = n.doubt || n.protected // no other object has this UUID
		return nil
	case client.UnknownOutcome(err):
		n.inDoubt(path, whole)
	}
	return err
}

// inDoubt notes that a create may have made the node at path.
func (n *PersistentNode) inDoubt(path string, whole bool) {
	n.stale, n.doubt = true, true
	if whole {
		n.next = path
	} else {
		n.search = true
	}
}

// stands notes the node that was made.
func (n *PersistentNode) stands(path string, czxid int64) {
	n.at(path)
	n.claim(czxid)
}

// at notes where the node stands, or may stand.
func (n *PersistentNode) at(path string) {
	n.path, n.look = path, true
	if n.mode.sequential() {
		n.number = path[len(path)-numberLength:]
	}
}

// numberLength is that of a sequential node's number.
const numberLength = 10

// replace makes the node and deletes a ghost, in one transaction: no reader sees a
// moment without a node. The version makes sure that it is the node that was read.
func (n *PersistentNode) replace(ctx context.Context, s *client.Session, version int32) error {
	opts := []client.CreateOption{client.Ephemeral()}
	if n.acl != nil {
		opts = append(opts, client.ACL(n.acl...))
	}
	path, _ := n.target()
	n.bytes, n.sent = n.wanted()
	_, err := s.Multi(ctx, client.DeleteOp(n.path, version), client.CreateOp(path, n.bytes, opts...))
	switch {
	case err == nil:
		n.at(path)
		n.doubt = true // its czxid is not known, its session is
	case client.UnknownOutcome(err):
		n.inDoubt(path, true)
	case errors.Is(err, zk.ErrNoNode): // the servers have deleted it meanwhile
		n.look = false
		return nil
	case errors.Is(err, zk.ErrBadVersion): // another client has written into it
		n.stale = true
		return nil
	}
	return err
}

// resolve finds out where a create whose answer was lost has made the node, also one
// of a lost session. Whose that is, judge says.
func (n *PersistentNode) resolve(ctx context.Context, s *client.Session) error {
	if !n.stale {
		return nil
	}
	if err := s.Sync(ctx, n.dir); err != nil {
		return err
	}
	if n.search {
		path, err := n.find(ctx, s)
		if err != nil {
			return err
		}
		if path != "" {
			n.at(path)
		}
		n.search = false
	}
	if n.next != "" {
		there, _, err := s.Exists(ctx, n.next)
		if err != nil {
			return err
		}
		if there {
			n.at(n.next)
		}
		n.next = ""
	}
	n.stale = false
	return nil
}

// find returns the newest node at the base path with a number that the create in doubt
// may have made, or "". A protected one is known by its UUID, another by its session.
// Two objects of one client at one base path, without protection, are not told apart.
func (n *PersistentNode) find(ctx context.Context, s *client.Session) (path string, err error) {
	names, _, err := s.Children(ctx, n.dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", err
	}
	numbered := regexp.MustCompile("^" + regexp.QuoteMeta(n.prefix+n.name) + `[0-9]{10}$`)
	var newest int64
	for _, name := range names {
		if !numbered.MatchString(name) {
			continue
		}
		there, stat, err := s.Exists(ctx, n.sibling(name))
		if err != nil {
			return "", err
		}
		own := n.protected || stat.EphemeralOwner == s.ID() || slices.Contains(n.past, stat.EphemeralOwner)
		if there && own && stat.Czxid > newest {
			path, newest = n.sibling(name), stat.Czxid
		}
	}
	return path, nil
}
