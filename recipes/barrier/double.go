package barrier

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// readyName is the node that stands while a round is open (DistributedDoubleBarrier.READY_NODE).
const readyName = "ready"

// DistributedDoubleBarrier lets a number of members begin together and end
// together. It is Curator's DistributedDoubleBarrier on the wire, with a
// container at the path. Each member has an ephemeral node with a UUID as its
// name. While a round is open there is a persistent node "ready".
//
// Every Enter is one member. Children with other names than UUIDs are not counted and
// not waited for; Curator does both.
//
// It is safe for concurrent use and needs no Close.
type DistributedDoubleBarrier struct {
	settings

	c       *client.Client
	path    string
	members int
	newName func() string // of a member's node

	mu   sync.Mutex // guards what follows; never held across I/O
	left []string   // paths of nodes whose removal was begun and may not be done
}

// NewDistributedDoubleBarrier returns the barrier at path, for so many members. It does
// no I/O.
func NewDistributedDoubleBarrier(c *client.Client, path string, members int, opts ...Option) (*DistributedDoubleBarrier, error) {
	set, err := validate(c, path, opts)
	if err != nil {
		return nil, err
	}
	if members < 1 {
		return nil, fmt.Errorf("barrier: %d members at %s; a barrier needs at least one", members, path)
	}
	return &DistributedDoubleBarrier{settings: set, c: c, path: path, members: members, newName: newName}, nil
}

// Path is the path of the directory of the nodes.
func (b *DistributedDoubleBarrier) Path() string { return b.path }

func (b *DistributedDoubleBarrier) at(name string) string { return b.path + "/" + name }

func (b *DistributedDoubleBarrier) ready() string { return b.at(readyName) }

// data is what a member writes: the client's default data, as Curator does, and behind
// it what members of this library can compare.
func (b *DistributedDoubleBarrier) data() []byte {
	text := countMark + strconv.Itoa(b.members)
	if b.name != "" {
		text += nameMark + b.name
	}
	return append(slices.Clone(inner.DefaultData(b.c)), text...)
}

const (
	countMark = " members="
	nameMark  = " name="
	namesMark = " counted=" // in the ready node: the members of the round
	lateMark  = " late"     // in a member's node: it has come into a round that was open
)

var (
	marks = regexp.MustCompile(`^(?s:(.*)) members=([1-9][0-9]*)(?: name=(\S+))?(?: late)?$`)
	// ofMember are the names of members' nodes (UUID.randomUUID).
	ofMember = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// Standing is a member whose node stands.
type Standing struct {
	Path    string // of its node
	Name    string // that of [WithMemberName], if it has one
	Data    []byte // of its node, as it was written
	Count   int    // the number of members that it waits for; 0 for a member of Curator's
	Session int64
	Since   time.Time // when its node was made, by the server's clock
}

// View is a double barrier at one moment.
type View struct {
	Members []Standing // by their nodes' names
	Open    bool       // whether the ready node stands: a round is open, or a crash has left the node
	Needed  int        // the number of members that this barrier is for
}

// Missing returns the names, of the given ones, that no member has by
// [WithMemberName]. Members without a name cannot be told.
func (v *View) Missing(names ...string) []string {
	var missing []string
	for _, name := range names {
		if !slices.ContainsFunc(v.Members, func(m Standing) bool { return m.Name == name }) {
			missing = append(missing, name)
		}
	}
	return missing
}

// View asks the server for the members that have entered and have not left.
// Members that come or go during the call may be missing or not. A barrier that
// was never used is empty. Of a node that may not be read the data is missing,
// and since 3.8.4 and 3.9.2 all but the path (ZOOKEEPER-2590).
func (b *DistributedDoubleBarrier) View(ctx context.Context) (View, error) {
	v := View{Needed: b.members}
	names, _, err := b.c.Children(ctx, b.path)
	if errors.Is(err, zk.ErrNoNode) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	v.Open = slices.Contains(names, readyName)
	for _, name := range members(names) {
		there := true
		data, stat, err := b.c.Get(ctx, b.at(name))
		if errors.Is(err, zk.ErrNoAuth) {
			there, stat, err = b.c.Exists(ctx, b.at(name))
		}
		if errors.Is(err, zk.ErrNoAuth) {
			v.Members = append(v.Members, Standing{Path: b.at(name)})
			continue
		}
		if errors.Is(err, zk.ErrNoNode) || err == nil && !there {
			continue
		}
		if err != nil {
			return v, err
		}
		m := Standing{Path: b.at(name), Data: data, Session: stat.EphemeralOwner, Since: time.UnixMilli(stat.Ctime)}
		_, m.Count, m.Name = parse(data)
		v.Members = append(v.Members, m)
	}
	return v, nil
}

// parse takes apart what a member wrote. A member of Curator's has no count.
func parse(data []byte) (who string, count int, name string) {
	data, _ = namesIn(data)
	parts := marks.FindSubmatch(data)
	if parts == nil {
		return string(data), 0, ""
	}
	count, err := strconv.Atoi(string(parts[2]))
	if err != nil {
		return string(data), 0, ""
	}
	return string(parts[1]), count, string(parts[3])
}

// members are the names among children that are members' nodes, in order.
func members(children []string) []string {
	names := slices.DeleteFunc(slices.Clone(children), func(name string) bool { return !ofMember.MatchString(name) })
	slices.Sort(names)
	return names
}

// list returns the members, and the newest change of the directory.
func (b *DistributedDoubleBarrier) list(ctx context.Context, s *client.Session) ([]string, int64, error) {
	names, stat, err := s.Children(ctx, b.path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	}
	return members(names), stat.Pzxid, nil
}

// abandon removes the node of a member in the background. Until that is done the next
// Enter does it, so that one process is never counted twice.
func (b *DistributedDoubleBarrier) abandon(s *client.Session, path string) {
	b.mu.Lock()
	b.left = append(b.left, path)
	b.mu.Unlock()
	if s != nil {
		_ = inner.DeleteInBackground(s, path, nil) // the path is valid
	}
}

// leftovers are the nodes whose removal may not be done.
func (b *DistributedDoubleBarrier) leftovers() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.left)
}

// noteGone notes that nodes are gone.
func (b *DistributedDoubleBarrier) noteGone(paths []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = slices.DeleteFunc(b.left, func(path string) bool { return slices.Contains(paths, path) })
}

// ofLibrary reports whether a member's name is one of [newName].
func ofLibrary(name string) bool { return name[14] == '8' }

// newName returns a UUID. Its version is 8, free form (RFC 9562), where Curator's is 4.
func newName() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (Go 1.24)
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
