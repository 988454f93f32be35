package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/docent-go/docent/docs/examples/flashsale/internal/crowd"
	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
)

// shop is a stock and a ledger in a database. Buying reads the stock, takes
// its time, and writes what is left: without a lock that works, buyers
// overwrite each other. The time is spent outside of the transaction that
// writes, as it is where a payment service has to be asked.
type shop struct {
	fence.Database
	cfg     config
	bought  atomic.Int32 // by this process
	stopped atomic.Bool  // this process, once, as the holder that writes late
}

// openShop finds the dialect by the look of the data source.
func openShop(cfg config) (*shop, error) {
	driver, dsn, dialect := "mysql", cfg.db, fence.MySQL
	switch {
	case strings.HasPrefix(dsn, "postgres://"), strings.HasPrefix(dsn, "postgresql://"), strings.Contains(dsn, "host="):
		driver, dialect = "pgx", fence.PostgreSQL
	case strings.HasPrefix(dsn, "file:"):
		driver, dialect = "sqlite", fence.SQLite
		// Every transaction here writes: let it wait at its beginning.
		dsn += "?_txlock=immediate&_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	return &shop{Database: fence.Database{DB: db, Dialect: dialect}, cfg: cfg}, nil
}

func (s *shop) close() { _ = s.DB.Close() }

// query puts the parameters of the dialect in the place of ?.
func (s *shop) query(q string) string {
	if s.Dialect != fence.PostgreSQL {
		return q
	}
	for n := 1; strings.Contains(q, "?"); n++ {
		q = strings.Replace(q, "?", fmt.Sprintf("$%d", n), 1)
	}
	return q
}

func (s *shop) open(ctx context.Context, items int) error {
	if err := s.Dialect.CreateTable(ctx, s.DB); err != nil {
		return err
	}
	for _, q := range []string{
		"DROP TABLE IF EXISTS flashsale_stock",
		"DROP TABLE IF EXISTS flashsale_ledger",
		"DROP TABLE IF EXISTS flashsale_stage",
		"CREATE TABLE flashsale_stock (items INTEGER NOT NULL)",
		"CREATE TABLE flashsale_stage (stage INTEGER NOT NULL)",
		"INSERT INTO flashsale_stage (stage) VALUES (0)",
		"CREATE TABLE flashsale_ledger (number INTEGER NOT NULL, item INTEGER NOT NULL, worker INTEGER NOT NULL, buyer VARCHAR(100) NOT NULL, token BIGINT NOT NULL, waited BIGINT NOT NULL, held BIGINT NOT NULL)",
	} {
		if _, err := s.DB.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	_, err := s.DB.ExecContext(ctx, s.query("INSERT INTO flashsale_stock (items) VALUES (?)"), items)
	return err
}

func (s *shop) remove(ctx context.Context) error {
	_, err := s.DB.ExecContext(ctx, s.query("DELETE FROM docent_fence WHERE resource = ?"), s.cfg.resource)
	for _, table := range []string{"flashsale_stock", "flashsale_ledger", "flashsale_stage"} {
		_, dropped := s.DB.ExecContext(ctx, "DROP TABLE "+table)
		err = errors.Join(err, dropped)
	}
	return err
}

// payment is the time that the till takes. Without a lock, all other buyers
// would read the same stock meanwhile.
const payment = 2 * time.Millisecond

// buy is a crowd.Purchase. With tokenFirst, no write of an older holder is
// accepted from the moment in which the purchase begins.
func (s *shop) buy(hold *recipes.Hold, entry crowd.Sale) (soldOut bool, err error) {
	ctx := hold.Context()
	if s.cfg.token != tokenFirst {
		return s.purchase(ctx, hold, entry)
	}
	err = fence.Under(ctx, hold, s.Database, s.cfg.resource, func(ctx context.Context) (err error) {
		soldOut, err = s.purchase(ctx, hold, entry)
		return err
	})
	return soldOut, err
}

func (s *shop) purchase(ctx context.Context, hold *recipes.Hold, entry crowd.Sale) (soldOut bool, err error) {
	began := time.Now()
	if err := s.DB.QueryRowContext(ctx, "SELECT items FROM flashsale_stock").Scan(&entry.Item); err != nil || entry.Item <= 0 {
		return err == nil, err
	}
	if err := s.stopAfterRead(ctx, entry); err != nil {
		return false, err
	}
	select {
	case <-time.After(payment):
	case <-ctx.Done():
		return false, fmt.Errorf("purchase given up: %w", context.Cause(ctx))
	}
	entry.Held = time.Since(began)
	if s.cfg.pause && s.bought.Load() >= 3 && s.stopped.CompareAndSwap(false, true) {
		return false, s.writeLate(ctx, hold, entry)
	}
	if err := s.write(ctx, entry); err != nil {
		return false, err
	}
	s.bought.Add(1)
	return false, nil
}

// write takes one item from the stock that was read, and books the sale.
func (s *shop) write(ctx context.Context, entry crowd.Sale) error {
	if s.cfg.token == tokenFirst {
		return s.Tx(ctx, s.cfg.resource, func(ctx context.Context, tx *sql.Tx) error { return s.book(ctx, tx, entry) })
	}
	return s.writeAlone(ctx, entry)
}

// writeAlone is a write in a transaction of its own, with the token checked in
// it unless there is none. It does not ask the hold.
func (s *shop) writeAlone(ctx context.Context, entry crowd.Sale) error {
	tx, err := s.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if s.cfg.token != noToken {
		if err := s.Dialect.Check(ctx, tx, s.cfg.resource, entry.Token); err != nil {
			return err
		}
	}
	if err := s.book(ctx, tx, entry); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *shop) book(ctx context.Context, tx *sql.Tx, entry crowd.Sale) error {
	if _, err := tx.ExecContext(ctx, s.query("UPDATE flashsale_stock SET items = ?"), entry.Item-1); err != nil {
		return err
	}
	var last int
	if err := tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(number), 0) FROM flashsale_ledger").Scan(&last); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, s.query("INSERT INTO flashsale_ledger (number, item, worker, buyer, token, waited, held) VALUES (?, ?, ?, ?, ?, ?, ?)"),
		last+1, entry.Item, entry.Worker, entry.Buyer, entry.Token, int64(entry.Waited), int64(entry.Held))
	return err
}

func (s *shop) audit(ctx context.Context, b *crowd.Books) error {
	if err := s.DB.QueryRowContext(ctx, "SELECT items FROM flashsale_stock").Scan(&b.Left); err != nil {
		return err
	}
	rows, err := s.DB.QueryContext(ctx, "SELECT item, worker, buyer, token, waited, held FROM flashsale_ledger ORDER BY number")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var e crowd.Sale
		if err := rows.Scan(&e.Item, &e.Worker, &e.Buyer, &e.Token, &e.Waited, &e.Held); err != nil {
			return err
		}
		b.Sales = append(b.Sales, e)
	}
	return rows.Err()
}
