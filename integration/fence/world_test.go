package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"

	"github.com/docent-go/docent/fence"
)

// world is a database and what the suite must know of it.
type world struct {
	fence.Database
	// blocked counts the transactions that wait for a lock; empty where the
	// database does not tell.
	blocked string
	// sleep is a statement that takes a minute; empty if there is none.
	sleep string
	// p is the nth parameter of a statement.
	p func(n int) string
	// isolation are the levels to test beside the default.
	isolation []sql.IsolationLevel
	// again reports whether the database refused a transaction because of
	// another one, so that it may be repeated.
	again func(error) bool
}

func question(int) string { return "?" }

func TestPostgreSQL(t *testing.T) {
	w := open(t, "pgx", startPostgreSQL(t), fence.PostgreSQL)
	w.blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
	w.sleep = "SELECT pg_sleep(60)"
	w.p = func(n int) string { return "$" + string(rune('0'+n)) }
	w.isolation = []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable}
	w.again = func(err error) bool {
		var refused *pgconn.PgError
		return errors.As(err, &refused) && (refused.Code == "40001" || refused.Code == "40P01")
	}
	suite(t, w)
}

func TestMariaDB(t *testing.T) {
	w := open(t, "mysql", startMariaDB(t), fence.MySQL)
	// Not innodb_trx, which does not change while it is read more often than
	// every 100 ms.
	w.blocked = "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'"
	w.sleep = "SELECT SLEEP(60)"
	w.p = question
	w.isolation = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelSerializable}
	w.again = func(err error) bool {
		var refused *mysql.MySQLError
		return errors.As(err, &refused) && (refused.Number == 1213 || refused.Number == 1205 || refused.Number == 1020)
	}
	suite(t, w)
}

func TestSQLite(t *testing.T) { testSQLite(t, "") }

func TestSQLiteWAL(t *testing.T) { testSQLite(t, "&_pragma=journal_mode(WAL)") }

func testSQLite(t *testing.T, more string) {
	t.Helper()
	file := "file:" + filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(60000)&_pragma=synchronous(OFF)" + more
	w := open(t, "sqlite", file, fence.SQLite)
	w.p = question
	w.again = func(err error) bool {
		var refused *sqlite.Error
		return errors.As(err, &refused) && refused.Code()&0xff == 5 // SQLITE_BUSY
	}
	suite(t, w)
}

func open(t *testing.T, driver, dsn string, d fence.Dialect) world {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return world{Database: fence.Database{DB: db, Dialect: d}}
}

func suite(t *testing.T, w world) {
	t.Helper()
	if err := w.check(t, "too early", 1); err == nil || !strings.Contains(err.Error(), "Dialect.CreateTable makes the table") {
		t.Errorf("without the table: %v", err)
	}
	for range 2 { // the second time it is there
		if err := w.Dialect.CreateTable(t.Context(), w.DB); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("order", w.testOrder)
	t.Run("names", w.testNames)
	t.Run("rollback", w.testRollback)
	t.Run("wait", w.testWait)
	if w.blocked != "" { // in SQLite, one that has read keeps the others from writing
		t.Run("late", w.testLate)
	}
	t.Run("lone statement", w.testLoneStatement)
	t.Run("lost", w.testLost)
	t.Run("slow", w.testSlow)
	t.Run("slow, under way", w.testSlowUnderWay)
	t.Run("race", w.testRace)
	t.Run("slow race", w.testSlowRace)
	for _, level := range w.isolation {
		strict := w
		strict.Options = &sql.TxOptions{Isolation: level}
		if w.Dialect == fence.PostgreSQL || level < sql.LevelSerializable { // and so it does in MySQL then
			t.Run("late, "+level.String(), strict.testLate)
		}
		t.Run("race, "+level.String(), strict.testRace)
	}
}

func (w world) begin(ctx context.Context, t *testing.T) *sql.Tx {
	t.Helper()
	tx, err := w.DB.BeginTx(ctx, w.Options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// check is a transaction of one check.
func (w world) check(t *testing.T, resource string, token int64) error {
	t.Helper()
	return fence.Tx(t.Context(), newLock(t.Context(), token), w.Database, resource, func(context.Context, *sql.Tx) error { return nil })
}

// newest is the token that is stored.
func (w world) newest(t *testing.T, resource string) (token int64) {
	t.Helper()
	w.one(t, &token, "SELECT token FROM docent_fence WHERE resource = "+w.p(1), resource)
	return token
}

func (w world) one(t *testing.T, to any, query string, args ...any) {
	t.Helper()
	if err := w.DB.QueryRowContext(t.Context(), query, args...).Scan(to); err != nil {
		t.Fatal(err)
	}
}

func (w world) exec(t *testing.T, query string, args ...any) sql.Result {
	t.Helper()
	res, err := w.DB.ExecContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func wantStale(t *testing.T, err error, want fence.StaleError) {
	t.Helper()
	var stale *fence.StaleError
	if !errors.As(err, &stale) || *stale != want || !errors.Is(err, fence.ErrStale) {
		t.Errorf("error %v, want %v", err, &want)
	}
}
