package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/docent-go/docent/fence"
)

// write is a body that does one statement and returns err.
func write(err error) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "write"); err != nil {
			return err
		}
		return err
	}
}

func TestTx(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		newest int64 // that the database has seen; the hold's token is 7
		set    func(*lock, *store)
		body   func(*lock, *store) func(context.Context, *sql.Tx) error
		want   string // what happens, in order
		errs   []error
	}{
		{name: "free", want: "acquire begin check write commit release"},
		{name: "equal token", newest: 7, want: "acquire begin check write commit release"},
		{
			name: "not obtained",
			set:  func(l *lock, _ *store) { l.refuse = errBusy },
			want: "", errs: []error{errBusy},
		},
		{name: "newer token seen", newest: 8, want: "acquire begin check rollback release", errs: []error{fence.ErrStale}},
		{
			name: "body fails",
			body: func(*lock, *store) func(context.Context, *sql.Tx) error { return write(errBody) },
			want: "acquire begin check write rollback release", errs: []error{errBody},
		},
		{
			name: "lost before the transaction",
			set:  func(l *lock, _ *store) { l.hold.end(errLost); l.release = errLost },
			want: "acquire release", errs: []error{errLost, context.Canceled},
		},
		{
			name: "lost in the body, which does not look",
			body: func(l *lock, s *store) func(context.Context, *sql.Tx) error {
				return func(ctx context.Context, tx *sql.Tx) error {
					err := write(nil)(ctx, tx)
					l.hold.end(errLost)
					<-s.rolledBack // database/sql does so by itself
					return err
				}
			},
			want: "acquire begin check write rollback release", errs: []error{errLost},
		},
		{
			name: "lost in the body, and no timer has told",
			body: func(l *lock, _ *store) func(context.Context, *sql.Tx) error {
				return func(ctx context.Context, tx *sql.Tx) error {
					l.hold.expired = errLost
					return write(nil)(ctx, tx)
				}
			},
			want: "acquire begin check write rollback release", errs: []error{errLost},
		},
		{
			name: "commit fails",
			set:  func(_ *lock, s *store) { s.commitErr = errBody },
			want: "acquire begin check write commit release", errs: []error{fence.ErrCommit, errBody},
		},
		{
			name: "lost after the commit",
			set:  func(l *lock, _ *store) { l.release = errLost },
			want: "acquire begin check write commit release",
		},
		{
			name: "token that no lock gives",
			set:  func(l *lock, _ *store) { l.hold.token = 0 },
			want: "acquire begin rollback release", errs: []error{fence.ErrNoToken},
		},
		{
			name: "shared hold",
			set:  func(l *lock, _ *store) { l.hold.exclusive = false },
			want: "acquire release", errs: []error{fence.ErrShared},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLock(t.Context())
			s, db := openStore(t, l.trace, c.newest)
			if c.set != nil {
				c.set(l, s)
			}
			body := write(nil)
			if c.body != nil {
				body = c.body(l, s)
			}
			err := fence.Tx(t.Context(), l, db, "stock", body)
			if (err == nil) != (c.errs == nil) {
				t.Errorf("Tx = %v", err)
			}
			wantErr(t, err, c.errs...)
			if got := errors.Is(err, fence.ErrCommit); got != strings.Contains(c.name, "commit fails") {
				t.Errorf("error %v matches ErrCommit: %v", err, got)
			}
			l.want(t, strings.Fields(c.want)...)
		})
	}
}

// A panic of the body rolls back and releases.
func TestTxPanic(t *testing.T) {
	t.Parallel()
	l := newLock(t.Context())
	_, db := openStore(t, l.trace, 0)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
		l.want(t, "acquire", "begin", "check", "rollback", "release")
	}()
	_ = fence.Tx(t.Context(), l, db, "stock", func(context.Context, *sql.Tx) error { panic("at the till") })
}

// The end of the caller's context rolls back as the end of the hold does, and
// is told apart from it.
func TestTxCallerGone(t *testing.T) {
	t.Parallel()
	l := newLock(t.Context())
	_, db := openStore(t, l.trace, 0)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("caller gone")
	err := fence.Tx(ctx, l, db, "stock", func(ctx context.Context, _ *sql.Tx) error {
		cancel(gone)
		<-ctx.Done()
		return nil
	})
	wantErr(t, err, gone)
	if l.hold.Err() != nil {
		t.Errorf("the hold says %v", l.hold.Err())
	}
}

// What a refusal says, and that the body's context carries the token.
func TestTxToken(t *testing.T) {
	t.Parallel()
	l := newLock(t.Context())
	_, db := openStore(t, l.trace, 9)
	wantStale(t, fence.Tx(t.Context(), l, db, "stock", write(nil)), fence.StaleError{Resource: "stock", Token: 7, Newest: 9})

	l = newLock(t.Context())
	_, db = openStore(t, l.trace, 0)
	err := fence.Tx(t.Context(), l, db, "stock", func(ctx context.Context, _ *sql.Tx) error {
		if token, ok := fence.Token(ctx, "stock"); !ok || token != 7 {
			t.Errorf("Token = %d, %v", token, ok)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Database.Tx takes a token only if it was raised for the resource in the same
// database, and says what is wrong otherwise.
func TestDatabaseTxNeedsToken(t *testing.T) {
	t.Parallel()
	tr := &trace{}
	_, db := openStore(t, tr, 0)
	_, other := openStore(t, tr, 0)
	refused := func(ctx context.Context, says string) {
		t.Helper()
		err := db.Tx(ctx, "stock", write(nil))
		if wantErr(t, err, fence.ErrNoToken); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one that says %q", err, says)
		}
	}
	within := func(c fence.Checker, resource string, fn func(context.Context)) {
		t.Helper()
		if err := c.Do(t.Context(), resource, 3, func(ctx context.Context) error { fn(ctx); return nil }); err != nil {
			t.Error(err)
		}
	}
	refused(t.Context(), "take the lock with Do or Tx")
	within(db, "orders", func(ctx context.Context) { refused(ctx, `only for "orders"`) })
	within(other, "stock", func(ctx context.Context) { refused(ctx, "begin with its Do") })
	within(&fence.Gate{}, "stock", func(ctx context.Context) { refused(ctx, "begin with its Do") })
	tr.want(t, "raise", "raise")
	within(db, "stock", func(ctx context.Context) {
		if err := db.Tx(ctx, "stock", write(nil)); err != nil {
			t.Error(err)
		}
		// The same token elsewhere as well.
		err := new(fence.Gate).Do(ctx, "stock", 3, func(ctx context.Context) error { return db.Tx(ctx, "stock", write(nil)) })
		if err != nil {
			t.Error(err)
		}
		// A newer token than the one that was raised here.
		_ = new(fence.Gate).Do(ctx, "stock", 4, func(ctx context.Context) error { refused(ctx, "begin with its Do"); return nil })
	})
	tr.want(t, "raise", "raise", "raise", "begin", "check", "write", "commit", "begin", "check", "write", "commit")
}

// A Database that was never filled in is refused, with the lock or without,
// and the lock is released.
func TestDatabaseNeedsDB(t *testing.T) {
	t.Parallel()
	l := newLock(t.Context())
	never := func(context.Context, *sql.Tx) error { t.Error("it ran"); return nil }
	idle := func(context.Context) error { t.Error("it ran"); return nil }
	for _, err := range []error{
		fence.Tx(t.Context(), l, fence.Database{Dialect: fence.SQLite}, "stock", never),
		fence.Database{}.Tx(t.Context(), "stock", never),
		fence.Database{}.Do(t.Context(), "stock", 3, idle),
	} {
		if err == nil || !strings.Contains(err.Error(), "DB is nil") {
			t.Errorf("error %v, want one that says that DB is nil", err)
		}
	}
	l.want(t, "acquire", "release")
}

// Names that a database could take for one another, and dialects that are
// none, are refused before anything is sent.
func TestCheckRefusesArguments(t *testing.T) {
	t.Parallel()
	tr := &trace{}
	_, db := openStore(t, tr, 0)
	tx, err := db.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, c := range []struct {
		dialect  fence.Dialect
		resource string
		token    int64
	}{
		{fence.SQLite, "", 1},
		{fence.MySQL, strings.Repeat("x", 256), 1},
		{fence.PostgreSQL, "stock", 0},
		{fence.PostgreSQL, "stock", -1},
		{0, "stock", 1},
		{fence.SQLite + 1, "stock", 1},
	} {
		if err := c.dialect.Check(t.Context(), tx, c.resource, c.token); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("%v: Check(%.10q, %d) = %v", c.dialect, c.resource, c.token, err)
		}
	}
	if err := fence.Dialect(0).CreateTable(t.Context(), db.DB); err == nil || !strings.HasSuffix(err.Error(), "no such dialect: 0; set fence.Database.Dialect to PostgreSQL, MySQL or SQLite") {
		t.Error("a table of no dialect was created")
	}
	if s := fence.Dialect(0).Schema(); s != "" {
		t.Errorf("schema of no dialect: %q", s)
	}
	tr.want(t, "begin")
}

func TestDialectString(t *testing.T) {
	t.Parallel()
	for d, want := range map[fence.Dialect]string{
		fence.PostgreSQL: "PostgreSQL", fence.MySQL: "MySQL", fence.SQLite: "SQLite", 0: "Dialect(0)",
	} {
		if got := d.String(); got != want {
			t.Errorf("String = %q, want %q", got, want)
		}
	}
}

// A lock that is re-entered lets a transaction into another one, whose row it would wait
// for. It is refused at once, and a context that outlives its transaction is not.
func TestTxInsideTx(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		dialect  fence.Dialect
		resource string
		refused  bool
	}{
		{"the same resource", fence.PostgreSQL, "stock", true},
		{"another resource", fence.PostgreSQL, "shop", false},
		{"another resource of a file", fence.SQLite, "shop", true},
	} {
		tr := &trace{}
		l := newLock(t.Context())
		_, db := openStore(t, tr, 0)
		db.Dialect = c.dialect
		ran := 0
		inner := func(context.Context, *sql.Tx) error { ran++; return nil }
		var kept context.Context
		err := fence.Tx(t.Context(), l, db, "stock", func(ctx context.Context, _ *sql.Tx) error {
			kept = ctx //nolint:fatcontext // it outlives the transaction
			for name, err := range map[string]error{
				"Tx":    fence.Tx(ctx, l, db, c.resource, inner),
				"Under": fence.Under(ctx, l.hold, db, c.resource, func(context.Context) error { ran++; return nil }),
			} {
				if got := errors.Is(err, fence.ErrTxOpen); got != c.refused || !c.refused && err != nil {
					t.Errorf("%s: %s: %v", c.name, name, err)
				}
			}
			return nil
		})
		if err != nil || ran != map[bool]int{true: 0, false: 2}[c.refused] {
			t.Errorf("%s: %v, %d ran", c.name, err, ran)
		}
		if err := db.Tx(context.WithoutCancel(kept), "stock", inner); err != nil {
			t.Errorf("%s: after the transaction: %v", c.name, err)
		}
	}
}
