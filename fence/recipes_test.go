package fence_test

import (
	"context"
	"database/sql"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// The exclusive locks of package recipes are Locks as they are. A semaphore and
// a multi-lock are none: the former has no exclusive holds, the latter has a
// token for each of its locks.
var (
	_ fence.Lock[*recipes.Hold]      = (*recipes.InterProcessMutex)(nil)
	_ fence.Lock[*recipes.Hold]      = (*recipes.InterProcessSemaphoreMutex)(nil)
	_ fence.Lock[*recipes.WriteHold] = (*recipes.WriteLock)(nil)
)

const session = 10 * time.Second

// world is a server with two clients.
type world struct {
	first, second *client.Client
	cut           func() // cuts the first client off
}

func newWorld(t *testing.T) world {
	t.Helper()
	srv := zktest.NewServer(t, zktest.WithLatency(50*time.Microsecond, time.Millisecond))
	connect := func(name string) *client.Client {
		c := testrig.Connect(t.Context(), t, "zk", srv.Client(name).DialContext, client.WithSessionTimeout(session))
		return c
	}
	return world{connect("first"), connect("second"), srv.Client("first").Partition}
}

// mutexes returns two clients' mutex on one path, and what cuts the first
// client off.
func mutexes(t *testing.T) (first, second *recipes.InterProcessMutex, cut func()) {
	t.Helper()
	w := newWorld(t)
	lock := func(c *client.Client) *recipes.InterProcessMutex {
		m, err := recipes.NewInterProcessMutex(c, "/locks/stock")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	return lock(w.first), lock(w.second), w.cut
}

// A mutex of package recipes is a Lock, as it is. The holder is cut off in the
// middle of its transaction, which is not committed; the next one's is.
func TestMutexLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second, cut := mutexes(t)
		tr := &trace{}
		s, db := openStore(t, tr, 0)
		err := fence.Tx(t.Context(), first, db, "stock", func(ctx context.Context, _ *sql.Tx) error {
			cut()
			<-ctx.Done()
			<-s.rolledBack
			return nil
		})
		wantErr(t, err, recipes.ErrLost, client.ErrLeaseExpired)
		tr.want(t, "begin", "check", "rollback")
		if err := fence.Tx(t.Context(), second, db, "stock", write(nil)); err != nil {
			t.Error(err)
		}
		tr.want(t, "begin", "check", "rollback", "begin", "check", "write", "commit")
		_ = db.DB.Close()
	})
}

// A holder whose write does not heed the loss is refused by the gate once the
// next holder has begun, which need not have written.
func TestMutexLateWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second, cut := mutexes(t)
		var stock int // read and written by holders, one after the other
		read := -1
		tr := &trace{}
		_, db := openStore(t, tr, 0)
		err := fence.Do(t.Context(), first, db, "stock", func(ctx context.Context) error {
			cut()
			return fence.Do(t.Context(), second, db, "stock", func(later context.Context) error {
				read = stock
				// The hold is lost, which the Tx would see before the database does.
				old, _ := fence.Token(ctx, "stock")
				late := db.Do(t.Context(), "stock", old, func(context.Context) error { stock = 99; return nil })
				wantErr(t, late, fence.ErrStale)
				return db.Tx(later, "stock", func(context.Context, *sql.Tx) error { stock = read + 1; return nil })
			})
		})
		wantErr(t, err, recipes.ErrLost)
		if stock != 1 {
			t.Errorf("stock is %d, want 1", stock)
		}
		_ = db.DB.Close()
	})
}

// Readers and permits cannot be fenced, whichever way their hold is passed.
func TestSharedHoldsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rw, err := recipes.NewInterProcessReadWriteLock(w.first, "/locks/rw")
		if err != nil {
			t.Fatal(err)
		}
		semaphore, err := recipes.NewInterProcessSemaphoreV2(w.first, "/locks/pool", 1)
		if err != nil {
			t.Fatal(err)
		}
		tr := &trace{}
		_, db := openStore(t, tr, 0)
		never := func(context.Context) error { t.Error("it ran"); return nil }
		neither := func(context.Context, *sql.Tx) error { t.Error("it ran"); return nil }
		wantErr(t, fence.Do(t.Context(), rw.ReadLock(), db, "stock", never), fence.ErrShared)
		wantErr(t, fence.Tx(t.Context(), rw.ReadLock(), db, "stock", neither), fence.ErrShared)
		lease, err := semaphore.Acquire(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		wantErr(t, fence.Under(lease.Context(), lease, db, "stock", never), fence.ErrShared)
		if err := lease.Close(); err != nil {
			t.Error(err)
		}
		write, err := rw.WriteLock().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := fence.Under(write.Context(), write, db, "stock", func(context.Context) error { return nil }); err != nil {
			t.Errorf("the writer: %v", err)
		}
		read, err := write.Downgrade(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantErr(t, fence.Under(read.Context(), read, db, "stock", never), fence.ErrShared)
		if err := read.Close(); err != nil {
			t.Error(err)
		}
		tr.want(t, "raise")
		_ = db.DB.Close()
	})
}

// Do and Tx release as the lock's own Do does. If servers do not answer once ctx
// has ended, the caller does not wait a session timeout for them.
func TestReleaseAfterEnd(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(context.Context, *recipes.InterProcessMutex, fence.Database, func(context.Context) error) error{
		"Do": func(ctx context.Context, m *recipes.InterProcessMutex, db fence.Database, fn func(context.Context) error) error {
			return fence.Do(ctx, m, db, "stock", fn)
		},
		"Tx": func(ctx context.Context, m *recipes.InterProcessMutex, db fence.Database, fn func(context.Context) error) error {
			return fence.Tx(ctx, m, db, "stock", func(ctx context.Context, _ *sql.Tx) error { return fn(ctx) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				lock, _, cut := mutexes(t)
				_, db := openStore(t, &trace{}, 0)
				ctx, cancel := context.WithCancel(t.Context())
				var ended time.Time
				err := run(ctx, lock, db, func(ctx context.Context) error {
					cut()
					cancel()
					<-ctx.Done()
					ended = time.Now()
					return ctx.Err()
				})
				wantErr(t, err, context.Canceled)
				if took := time.Since(ended); took > time.Second {
					t.Errorf("it returned %v after its context had ended", took)
				}
				_ = db.DB.Close()
			})
		})
	}
}
