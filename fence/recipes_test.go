package fence_test

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// The exclusive locks of package recipes are Locks as they are.
var (
	_ fence.Lock[*recipes.Hold]      = (*recipes.InterProcessMutex)(nil)
	_ fence.Lock[*recipes.Hold]      = (*recipes.InterProcessSemaphoreMutex)(nil)
	_ fence.Lock[*recipes.WriteHold] = (*recipes.WriteLock)(nil)
)

// mutexes returns two clients' mutex on one path, and what cuts the first
// client off.
func mutexes(t *testing.T) (first, second *recipes.InterProcessMutex, cut func()) {
	t.Helper()
	srv := zktest.NewServer(t, zktest.WithLatency(50*time.Microsecond, time.Millisecond))
	connect := func(name string) *recipes.InterProcessMutex {
		c, err := client.Connect(t.Context(), "zk",
			client.WithSessionTimeout(10*time.Second),
			client.WithDialer(srv.Client(name).DialContext),
			client.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			bye, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
			defer cancel()
			_ = c.CloseContext(bye)
		})
		m, err := recipes.NewInterProcessMutex(c, "/locks/stock")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	return connect("first"), connect("second"), srv.Client("first").Partition
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
// next holder has written.
func TestMutexLateWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second, cut := mutexes(t)
		var gate fence.Gate
		err := fence.Do(t.Context(), first, func(ctx context.Context) error {
			cut()
			if err := fence.Do(t.Context(), second, func(ctx context.Context) error {
				token, _ := fence.Token(ctx)
				return gate.Check("stock", token)
			}); err != nil {
				t.Error(err)
			}
			token, _ := fence.Token(ctx)
			return gate.Check("stock", token)
		})
		wantErr(t, err, fence.ErrStale, recipes.ErrLost)
	})
}
