package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// GroupMember is a member of a group: an ephemeral node below the path of the group,
// whose name is the member's id. It also tells which members there are. It is
// Curator's GroupMember on the wire; every child of the path counts as a member.
//
// Members and MemberChanges may be used without Start, by a program that is no member.
type GroupMember struct {
	*PersistentNode

	path, id string
}

// NewGroupMember returns a member that is not yet kept. It does no I/O. id is the name
// of a node and differs from that of every other member. A program that only follows the
// group gives any id and never calls Start. If data is nil, the
// member's data is the client's default data. Of the options, [WithProtection] is
// refused: it would change the id.
func NewGroupMember(c *client.Client, path, id string, data []byte, opts ...Option) (*GroupMember, error) {
	if path == "" {
		return nil, errors.New(`nodes: the path of the group is ""; give it a path like "/workers"`)
	}
	if id == "" {
		return nil, errors.New("nodes: the id of a GroupMember is empty; give it a name, like \"w1\", also if it only follows the group")
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
	return &GroupMember{PersistentNode: n, path: path, id: id}, nil
}

// ID is the id of this member.
func (g *GroupMember) ID() string { return g.id }

// Members are the members of a group by their ids, with their data.
type Members map[string][]byte

// readers is how many members are read at once.
const readers = 16

// Members asks the server for the members. This member is among them only while
// its own node stands; after Start, wait for that with PersistentNode.Wait.
// A member that leaves during the call may be missing or not. If
// one member cannot be read the call fails: a part of the group is never taken for
// the whole. A group without a node is empty.
func (g *GroupMember) Members(ctx context.Context) (Members, error) {
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
	now, status := Members{}, g.Status()
	for i, id := range names {
		if g.counts(id, seen[i], status) {
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

// counts reports whether a member stands. The node of this member in a lost session
// does not count.
func (g *GroupMember) counts(id string, m member, status Status) bool {
	return m.czxid != 0 && (id != g.id || m.czxid == status.Czxid)
}

func (g *GroupMember) child(id string) string {
	if g.path == "/" {
		return g.path + id
	}
	return g.path + "/" + id
}
