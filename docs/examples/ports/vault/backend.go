// Package vault is Vault's ZooKeeper storage on Docent. It has the nodes and the settings of
// Vault's own backend, so that old and new run side by side.
package vault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/armon/go-metrics"
	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/sdk/physical"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// file begins the name of a node that is an entry; all other nodes are directories.
const file = "_"

// Backend is a [physical.Backend] for several Vault servers of which one is active.
type Backend struct {
	c      *client.Client
	path   string
	active atomic.Pointer[recipes.Hold] // of the active server, once it is registered
}

var (
	_ physical.Factory          = New
	_ physical.FencingHABackend = (*Backend)(nil)
)

// New returns a backend by Vault's settings. Servers need not be up: calls wait for them.
func New(conf map[string]string, logger hclog.Logger) (physical.Backend, error) {
	opts, err := options(conf, logger)
	if err != nil {
		return nil, err
	}
	c, err := client.Connect(background(), cmp.Or(conf["address"], "localhost:2181"), opts...)
	if err != nil {
		return nil, fmt.Errorf("client setup failed: %w", err)
	}
	return &Backend{c: c, path: path.Join("/", cmp.Or(conf["path"], "vault"))}, nil
}

// Close ends the session, and with it the locks.
func (b *Backend) Close() error { return b.c.Close() }

func (b *Backend) node(key string) string {
	return path.Join(b.path, path.Dir(key), file+path.Base(key))
}

// fence returns the hold that a write needs, or nil if it needs none.
func (b *Backend) fence(ctx context.Context) *recipes.Hold {
	if physical.IsUnfencedWrite(ctx) {
		return nil
	}
	return b.active.Load()
}

// Put writes an entry, in one request if there is one of that key.
func (b *Backend) Put(ctx context.Context, entry *physical.Entry) error {
	defer metrics.MeasureSince([]string{"zookeeper", "put"}, time.Now())
	node, hold := b.node(entry.Key), b.fence(ctx)
	if hold == nil {
		_, err := b.c.CreateOrSet(ctx, node, entry.Value, client.WithPersistentParents())
		return err
	}
	for {
		_, err := hold.Guard(ctx, client.SetOp(node, entry.Value, client.AnyVersion))
		if !errors.Is(err, client.ErrNoNode) {
			return err
		}
		_, err = hold.Guard(ctx, client.CreateOp(node, entry.Value))
		if errors.Is(err, client.ErrNoNode) {
			_, err = b.c.Create(ctx, path.Dir(node), nil, client.WithPersistentParents())
		} else if err == nil {
			return nil
		}
		if err != nil && !errors.Is(err, client.ErrNodeExists) {
			return err
		}
	}
}

// Get returns an entry, or nil if there is none.
func (b *Backend) Get(ctx context.Context, key string) (*physical.Entry, error) {
	defer metrics.MeasureSince([]string{"zookeeper", "get"}, time.Now())
	value, _, err := b.c.Get(ctx, b.node(key))
	switch {
	case errors.Is(err, client.ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &physical.Entry{Key: key, Value: value}, nil
}

// Delete removes an entry, and then the directories that it leaves empty.
func (b *Backend) Delete(ctx context.Context, key string) (err error) {
	defer metrics.MeasureSince([]string{"zookeeper", "delete"}, time.Now())
	if key == "" {
		return nil
	}
	if hold := b.fence(ctx); hold != nil {
		_, err = hold.Guard(ctx, client.DeleteOp(b.node(key), client.AnyVersion))
	} else {
		err = b.c.Delete(ctx, b.node(key), client.AnyVersion)
	}
	if err != nil && !errors.Is(err, client.ErrNoNode) {
		return err
	}
	for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
		there, stat, err := b.c.Exists(ctx, path.Join(b.path, dir))
		if err != nil || stat.NumChildren > 0 || stat.DataLength > 0 {
			return err
		}
		if !there {
			continue
		}
		switch err := b.c.Delete(ctx, path.Join(b.path, dir), client.AnyVersion); {
		case errors.Is(err, client.ErrNotEmpty):
			return nil // another server wrote there meanwhile
		case err != nil && !errors.Is(err, client.ErrNoNode):
			return err
		}
	}
	return nil
}

// List returns the entries and the directories right below a prefix, in order.
func (b *Backend) List(ctx context.Context, prefix string) ([]string, error) {
	defer metrics.MeasureSince([]string{"zookeeper", "list"}, time.Now())
	children, _, err := b.c.ChildrenData(ctx, path.Join(b.path, prefix))
	if err != nil && !errors.Is(err, client.ErrNoNode) {
		return nil, err
	}
	keys := make([]string, len(children))
	for i, child := range children {
		if len(child.Data) > 0 {
			keys[i] = strings.TrimPrefix(child.Name, file)
		} else {
			keys[i] = child.Name + "/"
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// HAEnabled is true: locks are available.
func (b *Backend) HAEnabled() bool { return true }

// LockWith returns the lock of a key, whose holder writes the value.
func (b *Backend) LockWith(key, value string) (physical.Lock, error) {
	mutex, err := recipes.NewInterProcessMutex(b.c, b.node(key), recipes.WithPersistentParents())
	if err != nil {
		return nil, err
	}
	return &Lock{b: b, mutex: mutex, value: []byte(value)}, nil
}

// RegisterActiveNodeLock makes all later writes of this backend writes of the holder: once
// the lock is lost or released they fail with [recipes.ErrLost] or [recipes.ErrReleased].
func (b *Backend) RegisterActiveNodeLock(l physical.Lock) error {
	lock, ok := l.(*Lock)
	if !ok {
		return fmt.Errorf("a %T is not a lock of this backend", l)
	}
	lock.mu.Lock()
	defer lock.mu.Unlock()
	if lock.hold == nil {
		return errors.New("the lock was never held")
	}
	b.active.Store(lock.hold)
	return nil
}

// acl is that of every node: by default the world may do anything.
func acl(conf map[string]string) ([]zk.ACL, error) {
	owner, set := conf["znode_owner"]
	if !set {
		return zk.WorldACL(zk.PermAll), nil
	}
	scheme, id, err := pair("znode_owner", owner)
	return []zk.ACL{{Perms: zk.PermAll, Scheme: scheme, ID: id}}, err
}

// pair splits a setting "scheme:rest", of which neither may be empty.
func pair(name, value string) (scheme, rest string, err error) {
	scheme, rest, _ = strings.Cut(value, ":")
	if scheme == "" || rest == "" {
		return "", "", fmt.Errorf("%s expected format is 'scheme:value'", name)
	}
	return scheme, rest, nil
}
