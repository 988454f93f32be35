package cache_test

import (
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
)

// A level at the limit is kept, and the next one is one too many. Of two depths the
// last one counts.
func TestDepths(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		for _, path := range []string{"/app", "/app/a", "/app/a/b"} {
			r.create(path, "")
		}
		limited := r.tree("/app", append(opts, cache.WithLimits(cache.Limits{Depth: 2}))...)
		shallow := r.tree("/app", append(opts, cache.WithDepth(5), cache.WithDepth(2))...)
		children, err := cache.NewChildren(r.c, "/app", cache.Text, append(opts, cache.WithDepth(2))...)
		r.Check(err)
		r.Check(children.Start(r.Ctx))
		r.create("/app/a/b/c", "")
		time.Sleep(time.Second)
		r.want(shallow, "/app= /app/a= /app/a/b=")
		if got := text(children.Snapshot()); got != "/app= /app/a=" {
			r.Errorf("children %s", got)
		}
		if got := text(limited.Snapshot()); got != "/app= /app/a= /app/a/b=" {
			r.Errorf("limited %s", got)
		}
		state := limited.State()
		const words = "cache: the tree exceeds a limit of the cache: more than 2 levels, at /app/a/b/c; raise it by WithLimits, or leave nodes out by WithDepth or WithFilter"
		if limit := (*cache.LimitError)(nil); state.Phase != cache.Stale || !errors.As(state.Err, &limit) || limit.What != "depth" || state.Err.Error() != words {
			r.Errorf("%v", state)
		}
		children.Close()
	})
}

// A limit is told once, although many nodes exceed it.
func TestLimitIsToldOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/app", "")
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			r.create("/app/"+name, "0123456789")
		}
		tree, err := cache.NewTree(r.c, "/app", cache.Text, cache.WithLimits(cache.Limits{Bytes: 10}), cache.WithLazyStart())
		r.Check(err)
		r.Check(tree.Start(r.Ctx))
		time.Sleep(time.Second)
		limit := (*cache.LimitError)(nil)
		if state := tree.State(); !errors.As(state.Err, &limit) || state.Err.Error() != limit.Error() {
			r.Errorf("%v", state)
		}
		tree.Close()
	})
}

// The error of a cache that has ended says what may have ended it.
func TestClosedError(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		tree := r.tree("/app")
		tree.Close()
		const words = "cache: it has ended: by Close, or with its client"
		_, err := tree.WaitSynced(r.Ctx)
		if !errors.Is(err, cache.ErrClosed) || !errors.Is(err, client.ErrClosed) || err.Error() != words {
			r.Error(err)
		}
		if err := tree.Start(r.Ctx); !errors.Is(err, cache.ErrClosed) || err.Error() != "cache: start /app: "+words {
			r.Error(err)
		}
	})
}
