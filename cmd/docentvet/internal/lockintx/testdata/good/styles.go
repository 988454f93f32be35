package good

import (
	"context"
	"database/sql"
	"errors"

	"github.com/docent-go/docent/recipes"
)

// orm is a handle that is a transaction after its Begin, as some libraries have it.
type orm struct{}

func (o *orm) Begin() *orm    { return o }
func (o *orm) Commit() *orm   { return o }
func (o *orm) Rollback() *orm { return o }

func handle(ctx context.Context, db *orm, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	return hold.Close()
}

// session is another such handle.
type session interface {
	Begin() error
	Commit() error
	Rollback() error
}

func sessions(ctx context.Context, s session, lock *recipes.InterProcessMutex) error {
	return lock.Do(ctx, func(context.Context, *recipes.Hold) error {
		return errors.Join(s.Begin(), s.Commit())
	})
}

func finish(tx *sql.Tx, err error) error {
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func helper(ctx context.Context, db *sql.DB, lock *recipes.InterProcessMutex) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.Exec("DELETE FROM stock")
	if err := finish(tx, err); err != nil {
		return err
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	return hold.Close()
}

func closure(ctx context.Context, db *sql.DB, lock *recipes.InterProcessMutex) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	end := func() error { return tx.Commit() }
	roll := tx.Rollback
	if _, err := tx.Exec("DELETE FROM stock"); err != nil {
		if err := roll(); err != nil {
			return err
		}
	} else if err := end(); err != nil {
		return err
	}
	return lock.Do(ctx, func(context.Context, *recipes.Hold) error { return nil })
}

func rounds(ctx context.Context, db *sql.DB, lock *recipes.InterProcessMutex, jobs []int) error {
	for range jobs {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		tx, err := db.BeginTx(hold.Context(), nil)
		if err != nil {
			hold.Close()
			continue
		}
		if _, err := tx.Exec("DELETE FROM stock"); err != nil {
			_ = tx.Rollback()
			hold.Close()
			continue
		}
		err = tx.Commit()
		hold.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func starts(ctx context.Context, tx *sql.Tx, lock *recipes.InterProcessMutex) func() error {
	return func() error { return lock.Do(ctx, func(context.Context, *recipes.Hold) error { return nil }) }
}

// A downgrade takes no lock: it is held.
func down(ctx context.Context, tx *sql.Tx, w *recipes.WriteHold) error {
	hold, err := w.Downgrade(ctx)
	if err != nil {
		return err
	}
	return hold.Close()
}

type pool struct{}

func (pool) Acquire(context.Context) (*sql.Conn, error) { return nil, nil }

func pooled(ctx context.Context, tx *sql.Tx, p pool) error {
	conn, err := p.Acquire(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

func retried(ctx context.Context, db *sql.DB, lock *recipes.InterProcessMutex, retry func(func() error) error) error {
	first, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := retry(first.Commit); err != nil {
		return err
	}
	second, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := retry(func() error { return second.Commit() }); err != nil {
		return err
	}
	return lock.Do(ctx, func(context.Context, *recipes.Hold) error { return nil })
}

// unit is a unit of work.
type unit struct{ tx *sql.Tx }

func (u *unit) Complete() error { return u.tx.Commit() }

func united(ctx context.Context, db *sql.DB, lock *recipes.InterProcessMutex) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	work := &unit{tx: tx}
	if err := work.Complete(); err != nil {
		return err
	}
	return lock.Do(ctx, func(context.Context, *recipes.Hold) error { return nil })
}

func without(ctx context.Context, tx *sql.Tx, lock *recipes.InterProcessMutex) error {
	if tx == nil {
		return lock.Do(ctx, func(context.Context, *recipes.Hold) error { return nil })
	}
	_, err := tx.Exec("DELETE FROM stock")
	return err
}

func own(ctx context.Context, db *sql.DB, lock *recipes.InterProcessMutex, begin bool) (err error) {
	var tx *sql.Tx
	if begin {
		if tx, err = db.BeginTx(ctx, nil); err != nil {
			return err
		}
	}
	if begin {
		err = tx.Commit()
	}
	return errors.Join(err, lock.Do(ctx, func(context.Context, *recipes.Hold) error { return nil }))
}
