package cache_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/retry"
)

// newTree is a cache that has not been started.
func (r *rig) newTree(path string, opts ...cache.Option) *cache.Tree[string] {
	r.Helper()
	t, err := cache.NewTree(r.c, path, cache.Text, opts...)
	r.Check(err)
	r.Cleanup(t.Close)
	return t
}

// wantNotStarted checks that nothing is left of a Start that failed, and that another
// one succeeds.
func (r *rig) wantNotStarted(tree *cache.Tree[string]) {
	r.Helper()
	if state := tree.State(); state.Phase != cache.Syncing || !strings.Contains(state.Err.Error(), "call Start") {
		r.Errorf("after a start that failed: %v", state)
	}
	if tree.Snapshot().Zxid() != 0 {
		r.Errorf("after a start that failed there is a snapshot: %#x", tree.Snapshot().Zxid())
	}
	r.wantNothingLeft()
}

// Start returns with the first snapshot, and the end of its context does not end the
// cache.
func TestStartIsBounded(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/a", "1")
		tree := r.newTree("/app", opts...)
		ctx, cancel := context.WithCancel(r.Ctx)
		r.Check(tree.Start(ctx))
		if got := text(tree.Snapshot()); got != "/app= /app/a=1" || !tree.Synced() {
			r.Errorf("after Start: %s, %v", got, tree.State())
		}
		cancel()
		time.Sleep(time.Minute)
		r.create("/app/b", "2")
		r.want(tree, "/app= /app/a=1 /app/b=2")
		if err := tree.Start(r.Ctx); err == nil || err.Error() != "cache: start /app: it is started already" {
			r.Errorf("a second start: %v", err)
		}
		tree.Close()
		r.wantNothingLeft()
	})
}

// A start whose context ends leaves nothing, whether there is no server, or one that
// does not answer, or one that answers slowly.
func TestStartIsCutShort(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		for n := range 20 {
			r.create("/app/"+string(rune('a'+n)), "1")
		}
		link := r.Srv.Client("cache")
		for _, trouble := range []struct {
			name, says       string
			begin, end, late func()
		}{
			{"refused", "not connected", func() { link.Refuse(); link.Cut() }, link.Accept, nil},
			{"frozen", "not all nodes have been read", func() { link.Freeze() }, func() { link.Thaw(); link.Cut() }, nil},
			{"lost while it reads", "deadline exceeded: ", nil, func() { link.Accept(); link.SetLatency(0, 0) }, func() { link.Refuse(); link.Cut() }},
		} {
			tree := r.newTree("/app", opts...)
			began := make(chan error, 1)
			go func() { // ends with its Began, or with the cache
				for _, err := range tree.Changes(r.Ctx) {
					began <- err
					return
				}
			}()
			if trouble.begin != nil {
				trouble.begin()
				time.Sleep(time.Second)
			} else {
				link.SetLatency(300*time.Millisecond, 300*time.Millisecond)
				time.AfterFunc(time.Second, trouble.late)
			}
			begun := time.Now()
			err := tree.Start(r.Within(2 * time.Second))
			if took := time.Since(begun); took != 2*time.Second {
				r.Errorf("%s: Start took %v", trouble.name, took)
			}
			if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "cache: start /app: ") || !strings.Contains(err.Error(), trouble.says) {
				r.Errorf("%s: %v", trouble.name, err)
			}
			trouble.end()
			r.wantNotStarted(tree)
			r.Check(tree.Start(r.Within(time.Minute)))
			r.Check(<-began)
			tree.Close()
		}
	})
}

// A start that is in vain ends at once, and another one may succeed.
func TestStartInVain(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		r.create("/app/a", "")
		tree := r.newTree("/app", append(opts, cache.WithLimits(cache.Limits{Nodes: 1}))...)
		begun := time.Now()
		err := tree.Start(r.Ctx)
		if took := time.Since(begun); !errors.Is(err, cache.ErrLimit) || took > time.Second {
			r.Errorf("a tree that is too large: %v after %v", err, took)
		}
		r.wantNotStarted(tree)
		r.remove("/app/a")
		r.Check(tree.Start(r.Ctx))
		r.want(tree, "/app=")

		link := r.Srv.Client("cache")
		link.Refuse()
		link.Cut()
		time.Sleep(time.Second)
		tree, err = cache.NewTree(r.c.Retrying(retry.NTimes(3, time.Second)), "/app", cache.Text, opts...)
		r.Check(err)
		if err := tree.Start(r.Ctx); !errors.Is(err, client.ErrNotConnected) || r.Ctx.Err() != nil {
			r.Errorf("a policy that gives up: %v", err)
		}
		link.Accept()
	})
}

// Close and the end of the client end a start.
func TestStartIsClosed(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		link := r.Srv.Client("cache")
		link.Freeze()
		for _, end := range []func(*cache.Tree[string]){
			(*cache.Tree[string]).Close,
			func(*cache.Tree[string]) { _ = r.c.CloseContext(r.Within(time.Second)) },
		} {
			tree := r.newTree("/app", opts...)
			ended, waited := make(chan error), make(chan error)
			go func() { ended <- tree.Start(r.Ctx) }()                                 // ends by end
			go func() { _, err := tree.Wait(r.Within(time.Hour), 1); waited <- err }() // the same
			synctest.Wait()
			begun := time.Now()
			end(tree)
			for _, err := range []error{<-ended, <-waited, tree.Start(r.Ctx)} {
				if took := time.Since(begun); !errors.Is(err, cache.ErrClosed) || took > 2*time.Second {
					r.Errorf("%v after %v", err, took)
				}
			}
		}
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// A lazy start does not wait, and goes on when its context has ended.
func TestLazyStart(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/app", "")
		link := r.Srv.Client("cache")
		link.Refuse()
		link.Cut()
		time.Sleep(time.Minute) // no session
		tree := r.newTree("/app", append(opts, cache.WithLazyStart())...)
		ctx, cancel := context.WithCancel(r.Ctx)
		begun := time.Now()
		r.Check(tree.Start(ctx))
		if took := time.Since(begun); took != 0 {
			r.Errorf("Start took %v", took)
		}
		cancel()
		time.Sleep(time.Minute)
		if state := tree.State(); state.Phase != cache.Syncing || state.Err == nil {
			r.Errorf("without a server: %v", state)
		}
		link.Accept()
		r.want(tree, "/app=")
	})
}
