package valkeyrie

import (
	"context"

	"github.com/kvtools/valkeyrie/store"

	"github.com/docent-go/docent/recipes/cache"
)

// Watch sends the value of a key, and then every new one, until ctx ends. The key need not
// exist. A slow reader misses values, never the last.
func (s *Store) Watch(ctx context.Context, key string, _ *store.ReadOptions) (<-chan *store.KVPair, error) {
	return follow(ctx, s, key, 0, func(change cache.Change[[]byte]) (*store.KVPair, bool) {
		now, there := change.Snapshot.Root()
		if !there || now.Err != nil || change.Path == "" && change.Kind != cache.Began {
			return nil, false
		}
		return pair(key, now.Value, now.Version), true
	})
}

// WatchTree sends the keys right below a directory, and again when one of them was made,
// set or deleted, until ctx ends. The directory need not exist.
func (s *Store) WatchTree(ctx context.Context, directory string, _ *store.ReadOptions) (<-chan []*store.KVPair, error) {
	var sent *cache.Snapshot[[]byte]
	return follow(ctx, s, directory, 1, func(change cache.Change[[]byte]) ([]*store.KVPair, bool) {
		if change.Snapshot == sent || change.Path == "" && change.Kind != cache.Began {
			return nil, false
		}
		sent = change.Snapshot
		var all []*store.KVPair
		for _, child := range sent.Children(node(directory)) {
			if child.Err == nil && !contender(child.Name()) {
				all = append(all, pair(child.Name(), child.Value, child.Version))
			}
		}
		return all, true
	})
}

// follow sends what pick takes from the changes of a tree.
func follow[T any](ctx context.Context, s *Store, key string, depth int, pick func(cache.Change[[]byte]) (T, bool)) (<-chan T, error) {
	tree, err := cache.NewTree(s.c, node(key), cache.Bytes, cache.WithDepth(depth))
	if err != nil {
		return nil, err
	}
	if err := tree.Start(ctx); err != nil {
		return nil, err
	}
	out := make(chan T)
	go func() {
		defer close(out)
		defer tree.Close()
		for change, err := range tree.Changes(ctx) {
			if err != nil {
				return // the store is closed
			}
			now, ok := pick(change)
			if !ok {
				continue
			}
			select {
			case out <- now:
			case <-ctx.Done():
			}
		}
	}()
	return out, nil
}
