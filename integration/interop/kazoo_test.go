package interop_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/recipes"
)

// kazooLoad lets kazoo and Docent contend where both have been told of each other.
func kazooLoad(ctx context.Context, t *testing.T, a *arena) {
	ours, err := natives(a.docents(ctx, t, 2), func(p *party) (acquirer, error) {
		m, err := recipes.NewInterProcessMutex(p.client, a.path, recipes.WithKazoo())
		return docentMutex(m, "m"), err
	})
	check(t, err)
	theirs, err := kazooLock("m", "lock", a.path, "-lock-").contenders(ctx, a.kazoos(ctx, t, 2))
	check(t, err)
	a.run(ctx, t, append(ours, theirs...))
}

// kazooLock makes contenders that use one recipe of kazoo's.
func kazooLock(lock, kind string, args ...string) foreign {
	return foreign{lock: lock, draw: one, build: func(ctx context.Context, p *party, name string) error {
		return p.peer.Make(ctx, name, p.name, kind, args...)
	}}
}

// TestKazooUnknown shows that Docent refuses where it has not been told of kazoo, and
// leaves nothing.
func TestKazooUnknown(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t))
	p := a.docents(ctx, t, 1)[0]
	k := a.kazoos(ctx, t, 1)[0]
	for _, kind := range []string{"lock", "read", "write"} {
		check(t, k.peer.Make(ctx, kind, k.name, kind, a.path+"/"+kind))
		th := k.peer.Thread("t")
		_, err := th.Acquire(ctx, kind, 1, peers.Forever)
		check(t, err)

		m, err := recipes.NewInterProcessMutex(p.client, a.path+"/"+kind)
		check(t, err)
		rw, err := recipes.NewInterProcessReadWriteLock(p.client, a.path+"/"+kind)
		check(t, err)
		for what, acquire := range map[string]func() error{
			"Acquire":    func() error { _, err := m.Acquire(ctx); return err },
			"TryAcquire": func() error { _, err := m.TryAcquire(ctx); return err },
			"to read":    func() error { _, err := rw.ReadLock().Acquire(ctx); return err },
			"to write":   func() error { _, err := rw.WriteLock().Acquire(ctx); return err },
		} {
			if err := acquire(); !errors.Is(err, recipes.ErrForeignLock) {
				t.Errorf("%s beside kazoo's %s: %v", what, kind, err)
			}
		}

		a.clean(t)
		check(t, th.Release(ctx, kind))
		h, err := m.Acquire(ctx)
		check(t, err)
		check(t, h.Release(ctx))
	}
}

// TestKazooSemaphore shows the same of a semaphore, with which kazoo's has nothing in
// common.
func TestKazooSemaphore(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t))
	p := a.docents(ctx, t, 1)[0]
	k := a.kazoos(ctx, t, 1)[0]
	check(t, k.peer.Make(ctx, "s", k.name, "semaphore", a.path, "1"))
	enter(ctx, t, k.peer.Thread("t"), "s")
	s, err := recipes.NewInterProcessSemaphoreV2(p.client, a.path, 1)
	check(t, err)
	if _, err := s.Acquire(ctx, 1); !errors.Is(err, recipes.ErrForeignLock) {
		t.Errorf("Acquire: %v", err)
	}
	if _, err := s.TryAcquire(ctx, 1); !errors.Is(err, recipes.ErrForeignLock) {
		t.Errorf("TryAcquire: %v", err)
	}
	a.clean(t)
}

// TestKazooLine queues kazoo and Docent in turns and lets them through in that order.
func TestKazooLine(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t))
	p := a.docents(ctx, t, 1)[0]
	k := a.kazoos(ctx, t, 1)[0]
	check(t, k.peer.Make(ctx, "l", k.name, "lock", a.path, "-lock-"))
	m, err := recipes.NewInterProcessMutex(p.client, a.path, recipes.WithKazoo())
	check(t, err)
	inTurns(ctx, t, m, k.peer, "l")
	th := k.peer.Thread("t")
	enter(ctx, t, th, "l")
	if line := queued(ctx, t, m, 1); line[0].Family != recipes.FamilyKazoo || !line[0].Holder {
		t.Errorf("kazoo's holder is %v", line[0])
	}
	check(t, th.Release(ctx, "l"))
}
