package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// PersistentTtlNode is a [PersistentNode] with a time to live, which its client
// renews. The servers delete it some time after the process has died, or after Close.
// It is Curator's PersistentTtlNode, with the layout of Curator 5.9.
//
// The node and its child "touch" are TTL nodes. Every half of the time to live the
// child is set, or made, which keeps the servers from deleting either. So readers that
// watch the node see no change. Close, and a Start that has failed, leave both
// nodes to the servers.
//
// The servers need extendedTypesEnabled=true. Without it the state is [Refused], with
// an error that matches client.ErrUnsupported. ClickHouse Keeper has no TTL nodes with
// children.
type PersistentTtlNode struct{ *PersistentNode }

// NewPersistentTtlNode returns a node that is not yet kept. It does no I/O. ttl is at
// least 2 ms. Of the options, [WithProtection] is refused.
func NewPersistentTtlNode(c *client.Client, path string, ttl time.Duration, data []byte, opts ...Option) (*PersistentTtlNode, error) {
	if ttl < touchFactor*time.Millisecond {
		return nil, fmt.Errorf("nodes: a time to live of %v is too short: give %v or more, such as 30*time.Second", ttl, touchFactor*time.Millisecond)
	}
	n, err := newNode(c, persistentTTL, ttl, path, data, opts)
	if err != nil {
		return nil, err
	}
	if n.protected {
		return nil, errors.New("nodes: a PersistentTtlNode takes no WithProtection")
	}
	n.touch = touch{path: path + "/touch", every: ttl / touchFactor}
	return &PersistentTtlNode{n}, nil
}

// touchFactor is how often the child is set in one time to live
// (PersistentTtlNode.DEFAULT_TOUCH_SCHEDULE_FACTOR).
const touchFactor = 2

// touch says when the child of a PersistentTtlNode is set. Other nodes have none.
type touch struct {
	path  string
	every time.Duration
	next  time.Time
	since time.Time // when the request was sent that last began the time to live
}

// begins notes that a request is sent which begins the time to live.
func (t *touch) begins() { t.since = time.Now() }

// expired reports whether the servers may have deleted the nodes.
func (t *touch) expired() bool { return t.every != 0 && time.Since(t.since) >= touchFactor*t.every }

// isDue reports whether it is time to set the child.
func (t *touch) isDue() bool {
	if t.every != 0 && t.next.IsZero() {
		t.next = time.Now().Add(t.every)
	}
	return t.every != 0 && !time.Now().Before(t.next)
}

// timer returns a channel that says when the child is due, nil if there is no child.
func (t *touch) timer() (due <-chan time.Time, stop func()) {
	if t.every == 0 {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Until(t.next))
	return timer.C, func() { timer.Stop() }
}

// touchChild sets the child, or makes it. If that fails it is tried at the next time;
// the node is looked at in between.
func (n *PersistentNode) touchChild(ctx context.Context, s *client.Session) {
	sent := time.Now()
	n.touch.next = sent.Add(n.touch.every)
	if n.k.czxid == 0 {
		return // another client's node stands at the path, or none
	}
	data := inner.DefaultData(n.c)
	opts := []client.CreateOption{client.TTL(n.ttl)}
	if n.acl != nil {
		opts = append(opts, client.ACL(n.acl...))
	}
	_, err := s.CreateOrSet(ctx, n.touch.path, data, opts...)
	if err == nil {
		n.touch.since = sent
	} else if !errors.Is(err, zk.ErrNoNode) && ctx.Err() == nil {
		inner.Logger(n.c).Warn("zookeeper: the child that keeps a TTL node cannot be set", "path", n.touch.path, "reason", err)
	}
}
