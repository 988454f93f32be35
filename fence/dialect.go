package fence

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Dialect is a kind of SQL database. Its tokens are rows of the table
// docent_fence in the database that they guard, so that a check and the write
// it is for are one transaction.
type Dialect int

// The zero Dialect is none.
const (
	// PostgreSQL 9.5 or later.
	PostgreSQL Dialect = iota + 1
	// MySQL 5.7 or later, and MariaDB 10.3 or later, with InnoDB.
	MySQL
	// SQLite 3.24 or later.
	SQLite
)

// statements are what a dialect says.
type statements struct {
	name   string
	schema string
	// raise stores the token unless a newer one is there, and in any case
	// keeps others from doing so until the transaction ends. How often is the
	// token in its arguments, after the resource?
	raise  string
	tokens int
	// told says that the number of rows that raise touched is 0 only if a
	// newer token is there. MySQL also counts 0 where the token is equal.
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
	return statements{}, fmt.Errorf("fence: no such dialect: %d", int(d))
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
// there, for those who keep their schema elsewhere. It is empty for a dialect
// that is none. The user who writes needs to select, insert and update.
func (d Dialect) Schema() string {
	s, _ := d.statements()
	return s.schema
}

// CreateTable creates the table docent_fence unless it is there. When it fails
// there is no table, or the database says in its error what it did.
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
// committed for the resource, and otherwise stores the token. Equal tokens are
// the same holder, who may write again.
//
// It takes the lock of the resource's row and keeps it until the transaction
// ends: transactions that check the same resource run one after the other, in
// an order in which tokens never go back, whatever their isolation. Make it
// the first statement, so that all the others see what the holder before has
// committed. Who checks several resources in one transaction does so in the
// same order everywhere, or the database finds a deadlock.
//
// A [*StaleError] says that the write must not happen; roll back. Any other
// error is the database's, and the check has said nothing: under SERIALIZABLE
// or REPEATABLE READ PostgreSQL refuses with 40001 whoever waited for another
// transaction, InnoDB may end one of several that use a new resource in the
// same moment as a deadlock, and SQLite waits no longer than its busy timeout.
// Roll back, and repeat the whole transaction while the lock is still held.
//
// Nothing is stored until the transaction is committed; one that is rolled
// back leaves the old token.
func (d Dialect) Check(ctx context.Context, tx *sql.Tx, resource string, token int64) error {
	s, err := d.statements()
	if err != nil {
		return err
	}
	if err := valid(resource, token); err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("fence: check %q: %w", resource, err) }
	args := []any{resource}
	for range s.tokens {
		args = append(args, token)
	}
	res, err := tx.ExecContext(ctx, s.raise, args...)
	if err != nil {
		if strings.Contains(err.Error(), "docent_fence") { // drivers agree on no error for a table that is missing, but name it
			err = fmt.Errorf("%w; Dialect.CreateTable makes the table", err)
		}
		return fail(err)
	}
	if s.told {
		if n, err := res.RowsAffected(); err != nil || n != 0 {
			if err != nil {
				return fail(err)
			}
			return nil
		}
	}
	var newest int64
	if err := tx.QueryRowContext(ctx, s.newest, resource).Scan(&newest); err != nil {
		return fail(err)
	}
	if token < newest {
		return &StaleError{Resource: resource, Token: token, Newest: newest}
	}
	if s.told {
		return fail(fmt.Errorf("%v stored nothing, although it has seen %d only", d, newest))
	}
	return nil
}
