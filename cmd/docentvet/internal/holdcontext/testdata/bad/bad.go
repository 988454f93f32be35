// Package bad works under a lock with a context that outlives it.
package bad

import (
	"context"
	"database/sql"
	"net/http"
	"time"

	"github.com/docent-go/docent/recipes"
)

func sell(ctx context.Context, token int64) error { return ctx.Err() }

func work(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	return sell(ctx, hold.FencingToken()) // want `ctx does not end when hold is lost, so sell goes on while another holds the lock: use hold.Context\(\), or Do`
}

func deadline(ctx context.Context, lock *recipes.InterProcessMutex, db *sql.DB) error {
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	hold, err := lock.Acquire(wait)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "UPDATE stock") // want `so db.ExecContext goes on`
	hold.Release(ctx)
	return err
}

func later(ctx context.Context, latch *recipes.LeaderLatch) error {
	term, err := latch.Campaign(ctx)
	if err != nil {
		return err
	}
	defer term.Close()
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return sell(short, 0) // want `short does not end when term is lost`
}

func handler(r *http.Request, s *recipes.InterProcessSemaphoreV2) error {
	lease, err := s.Acquire(r.Context(), 1)
	if err != nil {
		return err
	}
	defer lease.Close()
	return sell(r.Context(), 0) // want `r.Context\(\) does not end when lease is lost`
}
