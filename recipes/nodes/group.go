package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
)

// GroupMember is a member of a group: an ephemeral node below the path of the group,
// whose name is the member's id. It also tells which members there are. It is
// Curator's GroupMember on the wire; every child of the path counts as a member.
// A program that is no member takes a [Group].
//
// Its methods are those of [PersistentNode], Start and Close for two, and those of [Group].
type GroupMember struct {
	*PersistentNode
	*Group

	id string
}

// Group tells which members a group has. It is for a program that need not be a member:
// it makes no node, has no id and needs no Start or Close. It is safe for concurrent use.
type Group struct {
	c    *client.Client
	path string
}

// NewGroup returns the group at path. It does no I/O. The path need not exist.
func NewGroup(c *client.Client, path string) (*Group, error) {
	if c == nil {
		return nil, errors.New("nodes: the client is nil; make one with client.Connect")
	}
	if _, err := inner.ServerPath(c, path); err != nil {
		return nil, fmt.Errorf("nodes: path of the group: %w", err)
	}
	return &Group{c: c, path: path}, nil
}

// NewGroupMember returns a member that is not yet kept. It does no I/O. id is the name
// of a node and differs from that of every other member. If data is nil, the
// member's data is the client's default data. Of the options, [WithProtection] is
// refused: it would change the id.
func NewGroupMember(c *client.Client, path, id string, data []byte, opts ...Option) (*GroupMember, error) {
	if path == "" {
		return nil, errors.New(`nodes: the path of the group is ""; give it a path like "/workers"`)
	}
	if id == "" {
		return nil, errors.New("nodes: the id of a GroupMember is empty; give it a name, like \"w1\"; a program that only follows the group takes NewGroup")
	}
	at := path + "/" + id
	if path == "/" {
		at = path + id
	}
	n, err := newNode(c, Ephemeral, 0, at, data, opts)
	switch {
	case err != nil:
		return nil, err
	case n.protected:
		return nil, errors.New("nodes: a GroupMember takes no WithProtection, which would change its id")
	case n.dir != path || n.name != id:
		return nil, fmt.Errorf("nodes: the id %q is not the name of one node; it has no \"/\" in it", id)
	}
	n.recipe = "GroupMember"
	return &GroupMember{PersistentNode: n, Group: &Group{c: c, path: path}, id: id}, nil
}

// ID is the id of this member.
func (g *GroupMember) ID() string { return g.id }

var errNoGroup = errors.New("nodes: the group is a zero value; make it with NewGroup or NewGroupMember")

// Members are the members of a group by their ids, with their data.
type Members map[string][]byte

// readers is how many members are read at once.
const readers = 16

// Members asks the server for the members: every child of the path, as every other process
// sees them. Whether this process is one of them PersistentNode.Status says. A member that leaves during the call may be missing or not. If
// one member cannot be read the call fails: a part of the group is never taken for
// the whole. A group without a node is empty.
func (g *Group) Members(ctx context.Context) (Members, error) {
	ctxerr.Require(ctx)
	if g == nil || g.c == nil {
		return nil, errNoGroup
	}
	names, _, err := g.c.Children(ctx, g.path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	seen := make([]member, len(names))
	errs := make([]error, len(names))
	each(len(names), func(i int) {
		data, stat, err := g.c.Get(ctx, g.child(names[i]))
		if err == nil {
			seen[i] = member{data: data, czxid: stat.Czxid}
		} else if !errors.Is(err, zk.ErrNoNode) {
			errs[i] = err
		}
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	now := Members{}
	for i, id := range names {
		if seen[i].stands() {
			now[id] = seen[i].data
		}
	}
	return now, nil
}

// each calls read for 0 to n-1, several at once, and waits for all.
func each(n int, read func(i int)) {
	turns := make(chan struct{}, readers)
	var all sync.WaitGroup
	for i := range n {
		turns <- struct{}{}
		all.Go(func() { // ends with read
			defer func() { <-turns }()
			read(i)
		})
	}
	all.Wait()
}

// member is what was read of one node.
type member struct {
	data  []byte
	czxid int64 // 0 if there is no node
	w     *client.OneShotWatch
}

// stands reports whether the node was there.
func (m member) stands() bool { return m.czxid != 0 }

func (g *Group) child(id string) string {
	if g.path == "/" {
		return g.path + id
	}
	return g.path + "/" + id
}
