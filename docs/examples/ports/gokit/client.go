// Package gokit is a client for go-kit's service discovery on Docent. go-kit's instancer and
// registrar take it in place of their own client.
package gokit

import (
	"context"
	"errors"
	"path"
	"sync"
	"time"

	kit "github.com/go-kit/kit/sd/zk"
	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/client/zkconn"
	"github.com/docent-go/docent/recipes/nodes"
)

// patience bounds each call, as go-kit gives no context.
const patience = 10 * time.Second

// Client is a client of go-kit. It is safe for concurrent use.
type Client struct {
	c     *client.Client
	conn  *zkconn.Conn // go-kit wants go-zookeeper's events
	begin func() (context.Context, context.CancelFunc)
	stop  context.CancelFunc

	mu   sync.Mutex
	kept map[*kit.Service]*nodes.PersistentNode
}

var _ kit.Client = (*Client)(nil)

// New returns a client on c, with the rights, credentials and timeouts of c. It ends with
// ctx, or by Stop, which leaves c open.
func New(ctx context.Context, c *client.Client) *Client {
	ctx, stop := context.WithCancel(ctx)
	begin := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, patience) }
	conn, _ := zkconn.New(ctx, c)
	return &Client{c: c, conn: conn, begin: begin, stop: stop, kept: map[*kit.Service]*nodes.PersistentNode{}}
}

// CreateParentNodes makes the node at a path and its parents. A node that this client may
// not make counts as there.
func (k *Client) CreateParentNodes(at string) error {
	ctx, cancel := k.begin()
	defer cancel()
	_, err := k.c.Create(ctx, at, nil, client.WithPersistentParents())
	switch {
	case errors.Is(err, client.ErrNodeExists), errors.Is(err, client.ErrNoAuth):
		return nil
	case errors.Is(err, context.Canceled):
		return kit.ErrClientClosed
	}
	return err
}

// GetEntries returns the data of the children. The channel has one event, at the next change
// or in the next session.
func (k *Client) GetEntries(at string) ([]string, <-chan zk.Event, error) {
	_, _, events, err := k.conn.ChildrenW(at)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := k.begin()
	defer cancel()
	children, _, err := k.c.ChildrenData(ctx, at)
	entries := make([]string, len(children))
	for i, child := range children {
		entries[i] = string(child.Data)
	}
	return entries, events, err
}

// Register keeps the service registered until Deregister or Stop.
func (k *Client) Register(s *kit.Service) error {
	at := path.Join(s.Path, s.Name, "member-")
	node, err := nodes.NewPersistentNode(k.c, nodes.EphemeralSequential, at, s.Data, nodes.WithProtection(), nodes.WithPersistentParents())
	if err != nil {
		return err
	}
	ctx, cancel := k.begin()
	defer cancel()
	if err := node.Start(ctx); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept[s] = node
	return nil
}

// Deregister removes the service.
func (k *Client) Deregister(s *kit.Service) error {
	k.mu.Lock()
	node := k.kept[s]
	delete(k.kept, s)
	k.mu.Unlock()
	if node == nil {
		return kit.ErrNotRegistered
	}
	return node.Close()
}

// Stop removes the services and ends the watches.
func (k *Client) Stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for s, node := range k.kept {
		_ = node.Close() // which goes on in the background if there is no server
		delete(k.kept, s)
	}
	k.stop()
	k.conn.Close()
}
