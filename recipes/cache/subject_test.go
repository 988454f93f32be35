package cache_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// picture is what the caches of all kinds can do.
type picture interface {
	WaitSynced(ctx context.Context) (*cache.Snapshot[string], error)
	Start(ctx context.Context) error
	Close()
	Changes(ctx context.Context) iter.Seq2[cache.Change[string], error]
	Snapshot() *cache.Snapshot[string]
	State() cache.State
	Wait(ctx context.Context, zxid int64) (*cache.Snapshot[string], error)
}

// subject is one cache and what a reader has seen of it.
type subject struct {
	name  string
	tree  picture
	model *model
	slow  time.Duration // that the reader takes for each change
	limit int           // of nodes; 0 if no schedule comes near it

	mu   sync.Mutex
	seen []*cache.Snapshot[string]
	sum  totals
}

func below(path string) bool { return path == top || strings.HasPrefix(path, top+"/") }

func depth(path string) int { return strings.Count(path, "/") - 1 }

// shape is one way to make a cache of the tree.
type shape struct {
	name   string
	opts   []cache.Option
	covers func(string) bool
	slow   time.Duration
	limit  int
	open   func(*client.Client, ...cache.Option) (picture, error)
}

func openTree(c *client.Client, opts ...cache.Option) (picture, error) {
	return cache.NewTree(c, top, cache.Text, opts...)
}

func openChildren(c *client.Client, opts ...cache.Option) (picture, error) {
	return cache.NewChildren(c, inner, cache.Text, opts...)
}

func openValue(c *client.Client, opts ...cache.Option) (picture, error) {
	return cache.NewValue(c, inner, cache.Text, opts...)
}

// allShapes are the caches of a schedule. The caches of the inner node have a root
// whose own parent comes and goes.
func allShapes() []shape {
	noX := func(path string) bool { return !strings.HasSuffix(path, "/n1") }
	ofInner := func(p string) bool { return p == inner }
	inInner := func(p string) bool { return p == inner || strings.HasPrefix(p, inner+"/") && depth(p) <= 2 }
	oneShot, tight := cache.WithOneShotWatches(), cache.WithLimits(cache.Limits{Nodes: tightLimit})
	return []shape{
		{"tree", nil, below, 0, 0, openTree},
		{"slow", nil, below, 700 * time.Millisecond, 0, openTree},
		{"one-shot", []cache.Option{oneShot}, below, 0, 0, openTree},
		{"depth 1", []cache.Option{cache.WithDepth(1)}, func(p string) bool { return below(p) && depth(p) <= 1 }, 0, 0, openTree},
		{"depth 0", []cache.Option{cache.WithDepth(0)}, func(p string) bool { return p == top }, 0, 0, openTree},
		{"filter", []cache.Option{cache.WithFilter(noX), oneShot}, func(p string) bool {
			return below(p) && !strings.Contains(p+"/", "/n1/")
		}, 0, 0, openTree},
		{"children", nil, inInner, 0, 0, openChildren},
		{"one-shot children", []cache.Option{oneShot}, inInner, 0, 0, openChildren},
		{"value", nil, ofInner, 0, 0, openValue},
		{"one-shot value", []cache.Option{oneShot}, ofInner, 0, 0, openValue},
		{"limit", []cache.Option{tight}, below, 0, tightLimit, openTree},
		{"one-shot limit", []cache.Option{tight, oneShot}, below, 0, tightLimit, openTree},
	}
}

// shapes makes half of the caches: each change costs each of them a read.
func (w *world) shapes() {
	for i, tt := range allShapes() {
		only := os.Getenv(onlyEnv)
		if only != "" && !strings.Contains(only, tt.name) || only == "" && w.seed/10%2 != uint64(i/6) {
			continue
		}
		opts := tt.opts
		if tt.limit > 0 || (w.seed+uint64(i))%2 == 0 {
			opts = append(opts, cache.WithLazyStart())
		}
		tree, err := tt.open(w.c, opts...)
		if err != nil {
			w.Fatal(err)
		}
		w.all = append(w.all, &subject{name: tt.name, tree: tree, model: &model{covers: tt.covers}, slow: tt.slow, limit: tt.limit})
	}
	w.e.OnCommit(func(c zktest.Commit) {
		for _, s := range w.all {
			s.model.commit(c)
		}
	})
}

// start starts a cache, and gives it too little time at first.
func (s *subject) start(w *world) {
	r := w.random("start " + s.name)
	for try := 0; ; try++ {
		limit := time.Hour
		if try < 3 {
			limit = time.Duration(r.Int64N(int64(time.Second)))
		}
		ctx, cancel := context.WithTimeout(w.ctx, limit)
		err := s.tree.Start(ctx)
		cancel()
		switch {
		case err == nil:
			return
		case !errors.Is(err, context.DeadlineExceeded) || limit == time.Hour:
			w.fail("%s: %v", s.name, err)
			return
		}
		w.mu.Lock()
		w.sum.cut++
		w.mu.Unlock()
	}
}

// follow reads the changes of a cache, applies them, and compares the result with
// the snapshots.
func (s *subject) follow(w *world) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	mine := map[string]modelNode{}
	var last *cache.Snapshot[string]
	compare := func() {
		if last == nil {
			return
		}
		if diff := differ(last, mine, entire); diff != "" {
			w.fail("%s: the changes do not lead to snapshot %#x: %s", s.name, last.Zxid(), diff)
		}
		s.mu.Lock()
		s.seen = append(s.seen, last)
		s.sum.snapshots++
		s.mu.Unlock()
	}
	for change, err := range s.tree.Changes(ctx) {
		if err != nil {
			compare()
			return
		}
		if change.Snapshot != last {
			compare()
			last = change.Snapshot
		}
		s.sum.changes++
		switch change.Kind {
		case cache.Began:
			mine = nodesOf(last)
		case cache.Deleted:
			if mine[change.Path] != modelOf(*change.Old) {
				w.fail("%s: %s of %s does not begin with what was there: %+v", s.name, change.Kind, change.Path, mine[change.Path])
			}
			delete(mine, change.Path)
		case cache.Gap:
			s.sum.gaps++
		case cache.BecameStale:
			s.sum.stale++
		case cache.BecameSynced:
			s.sum.synced++
		case cache.Created, cache.Updated, cache.Recreated, cache.Undecodable:
			mine[change.Path] = modelOf(*change.New)
		}
		if change.Cause == cache.Resync && change.Path != "" {
			s.sum.resynced++
		}
		if s.slow > 0 {
			time.Sleep(s.slow)
		}
	}
}
