package interop_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/recipes"
)

// TestDowngrade shows what a downgrade of each side does to the other, one after the
// other; the load of the matrix has it at random.
func TestDowngrade(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t))
	ours, java := a.docents(ctx, t, 1)[0], a.curators(ctx, t, 1)[0]
	lock := func(t *testing.T, path string) *recipes.InterProcessReadWriteLock {
		t.Helper()
		check(t, java.peer.Make(ctx, "l", java.name, "rw", path))
		l, err := recipes.NewInterProcessReadWriteLock(ours.client, path)
		check(t, err)
		return l
	}

	t.Run("Docent's keeps a queued writer out", func(t *testing.T) {
		l, one, two := lock(t, a.path+"/docent"), java.peer.Thread("writer"), java.peer.Thread("reader")
		w, err := l.WriteLock().Acquire(ctx)
		check(t, err)
		writing, reading := make(chan error, 1), make(chan error, 1)
		go func() { writing <- wait(ctx, one, "l.write") }()
		queuedAt(ctx, t, l, 2)
		r, err := w.Downgrade(ctx)
		check(t, err)
		go func() { reading <- wait(ctx, two, "l.read") }() // behind the writer
		queuedAt(ctx, t, l, 3)
		select {
		case err := <-writing:
			t.Fatalf("a writer beside a reader: %v", err)
		case err := <-reading:
			t.Fatalf("a reader before a writer: %v", err)
		case <-time.After(soon):
		}
		check(t, r.Release(ctx))
		check(t, <-writing)
		check(t, one.Release(ctx, "l.write"))
		check(t, <-reading)
		check(t, two.Release(ctx, "l.read"))
	})

	t.Run("Curator's lets readers in and later writers wait", func(t *testing.T) {
		l, one := lock(t, a.path+"/curator"), java.peer.Thread("both")
		enter(ctx, t, one, "l.write")
		enter(ctx, t, one, "l.read")
		if _, err := l.ReadLock().TryAcquire(ctx); err == nil {
			t.Fatal("a reader beside a writer")
		}
		check(t, one.Release(ctx, "l.write"))
		r, err := l.ReadLock().Acquire(ctx)
		check(t, err)
		check(t, r.Release(ctx))
		if _, err := l.WriteLock().TryAcquire(ctx); err == nil {
			t.Fatal("a writer beside a reader")
		}
		short, stop := context.WithTimeout(ctx, soon)
		defer stop()
		if _, err := l.WriteLock().Acquire(short); err == nil {
			t.Fatal("a writer beside a reader")
		}
		check(t, one.Release(ctx, "l.read"))
		w, err := l.WriteLock().Acquire(ctx)
		check(t, err)
		check(t, w.Release(ctx))
	})
}

// queuedAt waits until n contenders stand in line.
func queuedAt(ctx context.Context, t *testing.T, l *recipes.InterProcessReadWriteLock, n int) {
	t.Helper()
	for {
		line, err := l.Queue(ctx)
		check(t, err)
		if len(line) == n {
			return
		}
	}
}
