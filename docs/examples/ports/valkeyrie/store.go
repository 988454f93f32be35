// Package valkeyrie is a store of Valkeyrie on Docent. It has the nodes of Valkeyrie's own
// store for ZooKeeper.
package valkeyrie

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/kvtools/valkeyrie"
	"github.com/kvtools/valkeyrie/store"

	"github.com/docent-go/docent/client"
)

// StoreName is the name by which valkeyrie.NewStore knows this store, after Register.
const StoreName = "zookeeper"

// Config is the configuration of a store. The zero value has the defaults.
type Config struct {
	SessionTimeout time.Duration // by default 10 s
	Username       string        // none without
	Password       string
	MaxReply       int // bytes; see client.WithMaxReply
}

// Register makes the store known to Valkeyrie.
func Register() {
	valkeyrie.Register(StoreName, func(ctx context.Context, endpoints []string, options valkeyrie.Config) (store.Store, error) {
		cfg, ok := options.(*Config)
		if !ok && options != nil {
			return nil, &store.InvalidConfigurationError{Store: StoreName, Config: options}
		}
		return New(ctx, endpoints, cfg)
	})
}

// Store is safe for concurrent use.
type Store struct{ c *client.Client }

var _ store.Store = (*Store)(nil)

// New returns a store. It waits for a server, until ctx ends or a session timeout is over.
func New(ctx context.Context, endpoints []string, cfg *Config) (*Store, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	opts := []client.Option{client.WithSessionTimeout(10 * time.Second)}
	if cfg.SessionTimeout > 0 {
		opts = append(opts, client.WithSessionTimeout(cfg.SessionTimeout))
	}
	if cfg.MaxReply > 0 {
		opts = append(opts, client.WithMaxReply(cfg.MaxReply))
	}
	if cfg.Username != "" {
		opts = append(opts, client.WithAuth("digest", cfg.Username+":"+cfg.Password))
	}
	c, err := client.Connect(ctx, strings.Join(endpoints, ","), opts...)
	if err != nil {
		return nil, err
	}
	return &Store{c}, nil
}

// Close ends the session, its locks and the keys with a TTL.
func (s *Store) Close() error { return s.c.Close() }

func node(key string) string { return path.Join("/", key) }

// known turns errors of the client into Valkeyrie's.
func known(err error) error {
	switch {
	case errors.Is(err, client.ErrNoNode):
		return store.ErrKeyNotFound
	case errors.Is(err, client.ErrBadVersion):
		return store.ErrKeyModified
	}
	return err
}

func pair(key string, value []byte, version int32) *store.KVPair {
	return &store.KVPair{Key: key, Value: value, LastIndex: uint64(version)} //nolint:gosec // versions are not negative
}

// Get returns the value of a key. LastIndex is for AtomicPut and AtomicDelete.
func (s *Store) Get(ctx context.Context, key string, opts *store.ReadOptions) (*store.KVPair, error) {
	if opts != nil && opts.Consistent {
		if err := s.c.Sync(ctx, node(key)); err != nil {
			return nil, err
		}
	}
	value, stat, err := s.c.Get(ctx, node(key))
	if err != nil {
		return nil, known(err)
	}
	return pair(key, value, stat.Version), nil
}

// Put sets a key. With a TTL the key is of this session and goes with it.
func (s *Store) Put(ctx context.Context, key string, value []byte, opts *store.WriteOptions) error {
	create := []client.CreateOption{client.WithPersistentParents()}
	if opts != nil && opts.TTL > 0 {
		create = append(create, client.Ephemeral())
	}
	_, err := s.c.CreateOrSet(ctx, node(key), value, create...)
	return err
}

// Exists tells whether there is the key.
func (s *Store) Exists(ctx context.Context, key string, _ *store.ReadOptions) (bool, error) {
	there, _, err := s.c.Exists(ctx, node(key))
	return there, err
}

// Delete deletes a key that has no keys below it.
func (s *Store) Delete(ctx context.Context, key string) error {
	return known(s.c.Delete(ctx, node(key), client.AnyVersion))
}

// DeleteTree deletes all keys below a directory.
func (s *Store) DeleteTree(ctx context.Context, directory string) error {
	names, _, err := s.c.Children(ctx, node(directory))
	for _, name := range names {
		if err = s.c.DeleteAll(ctx, path.Join(node(directory), name)); err != nil {
			break
		}
	}
	return known(err)
}

// List returns all keys below a directory. It is no picture of one moment. Nodes of
// contenders for a lock are left out.
func (s *Store) List(ctx context.Context, directory string, opts *store.ReadOptions) ([]*store.KVPair, error) {
	if opts != nil && opts.Consistent {
		if err := s.c.Sync(ctx, node(directory)); err != nil {
			return nil, err
		}
	}
	children, _, err := s.c.ChildrenData(ctx, node(directory))
	if err != nil {
		return nil, known(err)
	}
	var all []*store.KVPair
	for _, child := range children {
		if contender(child.Name) {
			continue
		}
		key := strings.TrimSuffix(directory, "/") + "/" + child.Name
		all = append(all, pair(key, child.Data, child.Stat.Version))
		if child.Stat.NumChildren == 0 {
			continue
		}
		below, err := s.List(ctx, key, nil)
		if err != nil && !errors.Is(err, store.ErrKeyNotFound) { // else deleted meanwhile
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

// contender tells the nodes of a lock by their names.
func contender(name string) bool {
	return strings.HasPrefix(name, "_c_") && strings.Contains(name, "-lock-")
}

// AtomicPut sets a key that is as it was in previous. If previous is nil it makes the key.
func (s *Store) AtomicPut(ctx context.Context, key string, value []byte, previous *store.KVPair, _ *store.WriteOptions) (bool, *store.KVPair, error) {
	if previous == nil {
		_, err := s.c.Create(ctx, node(key), value, client.WithPersistentParents())
		if errors.Is(err, client.ErrNodeExists) {
			return false, nil, store.ErrKeyExists
		}
		return err == nil, pair(key, value, 0), err
	}
	stat, err := s.c.Set(ctx, node(key), value, int32(previous.LastIndex)) //nolint:gosec // it was one
	if err != nil {
		return false, nil, known(err)
	}
	return true, pair(key, value, stat.Version), nil
}

// AtomicDelete deletes a key that is as it was in previous.
func (s *Store) AtomicDelete(ctx context.Context, key string, previous *store.KVPair) (bool, error) {
	if previous == nil {
		return false, store.ErrPreviousNotSpecified
	}
	err := s.c.Delete(ctx, node(key), int32(previous.LastIndex)) //nolint:gosec // it was one
	return err == nil, known(err)
}
