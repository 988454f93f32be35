package nodes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// whose says which session owns a node.
func (n *PersistentNode) whose(s *client.Session, stat *zk.Stat) owner {
	switch {
	case !ofSession(stat.EphemeralOwner):
		return noSession
	case stat.EphemeralOwner == s.ID():
		return present
	case slices.ContainsFunc(n.past, func(g ghost) bool {
		return g.session == stat.EphemeralOwner && (g.czxid == 0 || g.czxid == stat.Czxid)
	}):
		return lost
	default:
		return others
	}
}

// foreign says whose node is left alone, and what can be done. own is the session of this client.
func (n *PersistentNode) foreign(session, own int64) error {
	owner := fmt.Sprintf("%#x", uint64(session)) //nolint:gosec // bits, not a quantity
	switch {
	case !ofSession(session):
		return errors.New("nodes: a node that no session owns stands at the path: delete it, or take another path")
	case !n.mode.ephemeral():
		return fmt.Errorf("nodes: an ephemeral node of session %s stands at the path: take another path, or wait until it is deleted", owner)
	case session == own:
		return errors.New("nodes: another node or registration of this client stands at the path: close that one, or take another path or ID")
	default:
		return fmt.Errorf("nodes: the node of session %s stands at the path: when it is deleted this one is made; TakeOver replaces it", owner)
	}
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
func (n *PersistentNode) create(ctx context.Context, s *client.Session) (a answer, err error) {
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
	n.bytes, a.gen = n.wanted()
	n.touch.begins()
	if whole {
		n.next = path
	}
	path, stat, err := s.CreateStat(ctx, path, n.bytes, opts...)
	switch {
	case err == nil:
		n.stands(path)
		a.czxid = stat.Czxid
	case errors.Is(err, zk.ErrNodeExists):
		n.path = n.next
	}
	return a, err
}

// stands notes where the node stands, or may stand.
func (n *PersistentNode) stands(path string) {
	n.path = path
	if n.mode.sequential() {
		n.number = path[len(path)-numberLength:]
	}
}

// numberLength is that of a sequential node's number.
const numberLength = 10

// replace makes the node and deletes a ghost, in one transaction: no reader sees a
// moment without a node. The version makes sure that it is the node that was read.
func (n *PersistentNode) replace(ctx context.Context, s *client.Session) (a answer, err error) {
	opts := []client.CreateOption{client.Ephemeral()}
	if n.acl != nil {
		opts = append(opts, client.ACL(n.acl...))
	}
	path, _ := n.target()
	n.bytes, a.gen = n.wanted()
	n.next = path
	_, err = s.Multi(ctx, client.DeleteOp(n.path, n.stat.Version), client.CreateOp(path, n.bytes, opts...))
	if err == nil {
		n.stands(path)
	}
	return a, err
}

// confirm asks whether a create in doubt has made the node at the path that it had.
func (n *PersistentNode) confirm(ctx context.Context, s *client.Session) (a answer, err error) {
	a.there, _, err = s.Exists(ctx, n.next)
	if a.there {
		n.stands(n.next)
	}
	return a, err
}

// search looks for the node that a create in doubt has made with a number.
func (n *PersistentNode) search(ctx context.Context, s *client.Session) (a answer, err error) {
	path, err := n.find(ctx, s)
	if a.there = path != ""; a.there {
		n.stands(path)
	}
	return a, err
}

// find returns the newest node at the base path with a number that the create in doubt
// may have made, or "". A protected one is known by its UUID, another by its session.
// Two objects of one client at one base path, without protection, are not told apart.
func (n *PersistentNode) find(ctx context.Context, s *client.Session) (path string, err error) {
	names, err := n.numbered(ctx, s)
	var newest int64
	for _, name := range names {
		there, stat, err := s.Exists(ctx, n.sibling(name))
		if err != nil {
			return "", err
		}
		whose := n.whose(s, stat)
		own := n.protected || whose == present || whose == lost
		if there && own && stat.Czxid > newest {
			path, newest = n.sibling(name), stat.Czxid
		}
	}
	return path, err
}

// numbered are the names of the nodes at the base path with a number.
func (n *PersistentNode) numbered(ctx context.Context, s *client.Session) (names []string, err error) {
	all, _, err := s.Children(ctx, n.dir)
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	own := regexp.MustCompile("^" + regexp.QuoteMeta(n.prefix+n.name) + `[0-9]{10}$`)
	for _, name := range all {
		if own.MatchString(name) {
			names = append(names, name)
		}
	}
	return names, err
}

// count takes the number after the highest. A server refuses a create with a number if a
// node has the number that it would give, for ever if nobody makes another child. That is
// so after the parent was deleted and a client has made its node again with its number.
func (n *PersistentNode) count(ctx context.Context, s *client.Session) error {
	names, err := n.numbered(ctx, s)
	if err != nil {
		return err
	}
	next := int64(0)
	for _, name := range names {
		at, _ := strconv.ParseInt(name[len(name)-numberLength:], 10, 64) // ten digits
		if at < math.MaxInt32 {                                          // a server gives no higher one
			next = max(next, at+1)
		}
	}
	n.stands(n.sibling(fmt.Sprintf("%s%s%010d", n.prefix, n.name, next)))
	return nil
}
