package interop_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/recipes"
)

// TestMatrix lets Docent contend with Curator, and with kazoo, for a lock of each kind
// while sessions are killed on all sides.
func TestMatrix(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t, harness.WithTickTime(500*time.Millisecond), harness.WithContainerInterval(time.Second))
	var group sync.WaitGroup
	for _, c := range []struct {
		name string
		run  func(context.Context, *testing.T, *arena)
	}{
		{"mutex", mutexLoad},
		{"rw", readWriteLoad},
		{"semaphore", semaphoreLoad},
		{"counted semaphore", countedSemaphoreLoad},
		{"semaphore mutex", semaphoreMutexLoad},
		{"multi lock", multiLoad},
		{"multi lock at once", atOnceLoad},
		{"shared count", countLoad},
		{"revocation", revocationLoad},
		{"latch", latchLoad},
		{"selector", selectorLoad},
		{"kazoo", kazooLoad},
	} {
		// Not by t.Parallel, of which there are no more at once than processors: most of
		// a load is waiting.
		group.Go(func() {
			t.Run(c.name, func(t *testing.T) { c.run(ctx, t, newArena(ctx, t, node)) })
		})
	}
	group.Wait()
}

func mutexLoad(ctx context.Context, t *testing.T, a *arena) {
	ours, err := natives(a.docents(ctx, t, 2), func(p *party) (acquirer, error) {
		m, err := recipes.NewInterProcessMutex(p.client, a.path)
		return docentMutex(m, "m"), err
	})
	check(t, err)
	theirs, err := curatorLock("m", "mutex", a.path).contenders(ctx, a.curators(ctx, t, 2))
	check(t, err)
	a.run(ctx, t, append(ours, theirs...))
}

func readWriteLoad(ctx context.Context, t *testing.T, a *arena) {
	ours, err := natives(a.docents(ctx, t, 2), func(p *party) (acquirer, error) {
		l, err := recipes.NewInterProcessReadWriteLock(p.client, a.path)
		return docentReadWrite(l, "rw", 30), err
	})
	check(t, err)
	theirs, err := curatorReadWrite(ctx, "rw", a.path, 30, a.curators(ctx, t, 2))
	check(t, err)
	a.run(ctx, t, append(ours, theirs...))
}

func semaphoreMutexLoad(ctx context.Context, t *testing.T, a *arena) {
	ours, err := natives(a.docents(ctx, t, 2), func(p *party) (acquirer, error) {
		m, err := recipes.NewInterProcessSemaphoreMutex(p.client, a.path)
		return docentMutex(m, "m"), err
	})
	check(t, err)
	theirs, err := curatorSemaphoreMutex("m", a.path).contenders(ctx, a.curators(ctx, t, 2))
	check(t, err)
	a.run(ctx, t, append(ours, theirs...))
}

// multiLoad lets both sides take several locks as one, in one order.
func multiLoad(ctx context.Context, t *testing.T, a *arena) { a.multi(ctx, t, true) }

// atOnceLoad lets Docent's multi-locks, which first enter all queues in one
// transaction, meet single locks of Curator's.
func atOnceLoad(ctx context.Context, t *testing.T, a *arena) { a.multi(ctx, t, false) }

func (a *arena) multi(ctx context.Context, t *testing.T, asMulti bool) {
	t.Helper()
	locks := []member{{"a", "mutex", a.path + "/a"}, {"b", "rw", a.path + "/b"}, {"c", "semaphore-mutex", a.path + "/c"}}
	ours, err := docentMulti(locks, a.docents(ctx, t, 2))
	check(t, err)
	theirs, err := curatorMulti(ctx, locks, asMulti, a.curators(ctx, t, 2))
	check(t, err)
	a.run(ctx, t, append(ours, theirs...))
}
