package fence

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Dialect is a kind of SQL database. Tokens are rows of the table docent_fence,
// in the database that they guard, so that one transaction holds the check and
// the write.
type Dialect int

// The zero Dialect is that of no database.
const (
	// PostgreSQL 9.5 or later.
	PostgreSQL Dialect = iota + 1
	// MySQL 5.7 or later, and MariaDB 10.3 or later, with InnoDB.
	MySQL
	// SQLite 3.24 or later.
	SQLite
)

// statements are the statements of a dialect.
type statements struct {
	name   string
	schema string
	// raise stores the token unless a newer one is there. In both cases it
	// locks the row until the transaction ends. Its arguments are the resource
	// and then the token, as many times as tokens says.
	raise  string
	tokens int
	// told says that raise touches no row only if a newer token is there.
	// MySQL also counts no row where the token is equal.
	told bool
	// newest reads the stored token under the lock that raise took.
	newest string
}

const (
	upsertTail = `
ON CONFLICT (resource) DO UPDATE SET token = excluded.token
WHERE docent_fence.token <= excluded.token`
	selectNewest = `SELECT token FROM docent_fence WHERE resource = `
)

func (d Dialect) statements() (statements, error) {
	switch d {
	case PostgreSQL:
		return statements{
			name: "PostgreSQL",
			schema: `CREATE TABLE IF NOT EXISTS docent_fence (
	resource text PRIMARY KEY,
	token bigint NOT NULL
)`,
			raise:  `INSERT INTO docent_fence (resource, token) VALUES ($1, $2)` + upsertTail,
			tokens: 1, told: true,
			newest: selectNewest + `$1`,
		}, nil
	case MySQL:
		return statements{
			name: "MySQL",
			// Bytes, because text columns may take two names for one.
			schema: `CREATE TABLE IF NOT EXISTS docent_fence (
	resource VARBINARY(255) PRIMARY KEY,
	token BIGINT NOT NULL
) ENGINE=InnoDB`,
			raise: `INSERT INTO docent_fence (resource, token) VALUES (?, ?)
ON DUPLICATE KEY UPDATE token = GREATEST(token, ?)`,
			tokens: 2,
			// Without FOR UPDATE it would read the transaction's snapshot.
			newest: selectNewest + `? FOR UPDATE`,
		}, nil
	case SQLite:
		return statements{
			name: "SQLite",
			schema: `CREATE TABLE IF NOT EXISTS docent_fence (
	resource TEXT PRIMARY KEY NOT NULL,
	token INTEGER NOT NULL
)`,
			raise:  `INSERT INTO docent_fence (resource, token) VALUES (?, ?)` + upsertTail,
			tokens: 1, told: true,
			newest: selectNewest + `?`,
		}, nil
	}
	return statements{}, fmt.Errorf("fence: no such dialect: %d; set fence.Database.Dialect to PostgreSQL, MySQL or SQLite", int(d))
}

// String is the name of the database.
func (d Dialect) String() string {
	s, err := d.statements()
	if err != nil {
		return fmt.Sprintf("Dialect(%d)", int(d))
	}
	return s.name
}

// Schema is the statement that creates the table docent_fence unless it is
// there, for a schema that is kept elsewhere. It is empty for an unknown
// dialect. The database user that writes needs the rights to select, insert and
// update.
func (d Dialect) Schema() string {
	s, _ := d.statements()
	return s.schema
}

// CreateTable creates the table docent_fence unless it is there. After an error
// there is no new table, unless the database's own error says otherwise.
func (d Dialect) CreateTable(ctx context.Context, db *sql.DB) error {
	s, err := d.statements()
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, s.schema); err != nil {
		return fmt.Errorf("fence: create table docent_fence: %w", err)
	}
	return nil
}

// Check refuses a transaction whose token is older than the newest that was
// committed for the resource, and otherwise stores the token. A token that is
// equal to the newest comes from the same holder, which may write again.
//
// Check locks the row of the resource until the transaction ends. Transactions
// that check the same resource therefore run one after the other, whatever
// their isolation, and tokens never go back. Make Check the first statement:
// all the others then see what the holder before has committed. Transactions
// that check several resources must do so in the same order everywhere, or the
// database finds a deadlock.
//
// Check alone does not protect what was read before the transaction began. If
// the work reads first, raise the token first, with [Database.Do].
//
// A [*StaleError] says that the write must not happen: roll back. Any other
// error is the database's, and decides nothing. Under SERIALIZABLE or
// REPEATABLE READ, PostgreSQL refuses with 40001 a transaction that waited for
// another one. InnoDB may end as a deadlock one of several transactions that
// use a new resource at the same moment. SQLite waits no longer than its busy
// timeout. Roll back, and repeat the whole transaction while the lock is held.
//
// The token is stored when the transaction commits. A rollback leaves the old
// token.
func (d Dialect) Check(ctx context.Context, tx *sql.Tx, resource string, token int64) error {
	return d.check(ctx, tx, resource, token)
}

// session runs statements: in a transaction, or each one by itself.
type session interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// check is [Dialect.Check]. Outside of a transaction it stores the token, or
// refuses it, for good. Tokens only grow, so a newer one is reason enough to
// refuse, even if it is read after the statement that stores.
func (d Dialect) check(ctx context.Context, s session, resource string, token int64) error {
	say, err := d.statements()
	if err != nil {
		return err
	}
	if err := valid(resource, token); err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("fence: check %q: %w", resource, err) }
	args := []any{resource}
	for range say.tokens {
		args = append(args, token)
	}
	res, err := s.ExecContext(ctx, say.raise, args...)
	if err != nil {
		if strings.Contains(err.Error(), "docent_fence") { // drivers agree on no error for a table that is missing, but name it
			err = fmt.Errorf("%w; Dialect.CreateTable makes the table", err)
		}
		return fail(err)
	}
	if say.told {
		n, err := res.RowsAffected()
		if err != nil {
			return fail(err)
		}
		if n != 0 {
			return nil
		}
	}
	var newest int64
	if err := s.QueryRowContext(ctx, say.newest, resource).Scan(&newest); err != nil {
		return fail(err)
	}
	if token < newest {
		return &StaleError{Resource: resource, Token: token, Newest: newest}
	}
	if say.told {
		return fail(fmt.Errorf("%v stored nothing, although it has seen %d only", d, newest))
	}
	return nil
}
