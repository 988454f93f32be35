package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/fence"
)

func (w world) testOrder(t *testing.T) {
	const last = 1<<63 - 1
	for _, c := range []struct {
		token  int64
		newest int64 // seen, if the token is refused
	}{{5, 0}, {5, 0}, {4, 5}, {6, 0}, {5, 6}, {last, 0}, {6, last}, {last, 0}} {
		err := w.check(t, "order", c.token)
		if c.newest == 0 {
			if err != nil {
				t.Errorf("token %d: %v", c.token, err)
			}
			continue
		}
		wantStale(t, err, fence.StaleError{Resource: "order", Token: c.token, Newest: c.newest})
	}
	if got := w.newest(t, "order"); got != last {
		t.Errorf("stored %d", got)
	}
}

// Names that collations take for one another are different resources.
func (w world) testNames(t *testing.T) {
	names := []string{"n", "N", "n ", "ń", "n\u0301", "n/1", strings.Repeat("n", 255), strings.Repeat("ü", 127)}
	for i, name := range names {
		if err := w.check(t, name, int64(100-i)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for i, name := range names {
		if got := w.newest(t, name); got != int64(100-i) {
			t.Errorf("%q: stored %d, want %d", name, got, 100-i)
		}
	}
}

// A transaction that is rolled back has said nothing; one that was refused
// changes nothing even if it commits.
func (w world) testRollback(t *testing.T) {
	if err := w.check(t, "rollback", 5); err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	err := fence.Tx(t.Context(), newLock(t.Context(), 9), w.Database, "rollback", func(context.Context, *sql.Tx) error { return no })
	if !errors.Is(err, no) {
		t.Errorf("Tx = %v", err)
	}
	if got := w.newest(t, "rollback"); got != 5 {
		t.Errorf("stored %d after a rollback, want 5", got)
	}
	tx := w.begin(t.Context(), t)
	wantStale(t, w.Dialect.Check(t.Context(), tx, "rollback", 4), fence.StaleError{Resource: "rollback", Token: 4, Newest: 5})
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if got := w.newest(t, "rollback"); got != 5 {
		t.Errorf("stored %d by a refused transaction, want 5", got)
	}
}

// A check waits for the transaction that checked before it, and sees what became
// of that. So it is on a known resource and on a new one, for an older token and
// a newer one.
func (w world) testWait(t *testing.T) {
	for _, c := range []struct {
		name          string
		known         bool
		first, second int64
		commit        bool
		stale         bool
	}{
		{"wait known older commit", true, 6, 5, true, true},
		{"wait known older rollback", true, 6, 5, false, false},
		{"wait known newer commit", true, 5, 6, true, false},
		{"wait new older commit", false, 6, 5, true, true},
		{"wait new older rollback", false, 6, 5, false, false},
		{"wait new newer commit", false, 5, 6, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.known {
				if err := w.check(t, c.name, 1); err != nil {
					t.Fatal(err)
				}
			}
			first := w.begin(t.Context(), t)
			if err := w.Dialect.Check(t.Context(), first, c.name, c.first); err != nil {
				t.Fatal(err)
			}
			second := make(chan error, 1)
			go func() { second <- w.check(t, c.name, c.second) }()
			w.awaitBlocked(t)
			select {
			case err := <-second:
				t.Fatalf("it did not wait: %v", err)
			default:
			}
			end := first.Rollback
			if c.commit {
				end = first.Commit
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			err := <-second
			if c.stale {
				wantStale(t, err, fence.StaleError{Resource: c.name, Token: c.second, Newest: c.first})
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// A check that is not the first statement still sees what was committed since,
// and not the snapshot in which the transaction reads.
func (w world) testLate(t *testing.T) {
	resource := t.Name()
	if err := w.check(t, resource, 5); err != nil {
		t.Fatal(err)
	}
	old := w.begin(t.Context(), t)
	var token int64
	read := "SELECT token FROM docent_fence WHERE resource = " + w.p(1)
	if err := old.QueryRowContext(t.Context(), read, resource).Scan(&token); err != nil || token != 5 {
		t.Fatalf("read %d, %v", token, err)
	}
	if err := w.check(t, resource, 6); err != nil {
		t.Fatal(err)
	}
	err := w.Dialect.Check(t.Context(), old, resource, 5)
	if err == nil || !errors.Is(err, fence.ErrStale) && !w.again(err) {
		t.Errorf("Check = %v", err)
	}
}

// awaitBlocked waits until a transaction waits, where the database tells.
func (w world) awaitBlocked(t *testing.T) {
	t.Helper()
	if w.blocked == "" {
		return
	}
	eventually(t, "a transaction waits for another", func(ctx context.Context) error {
		var n int
		if err := w.DB.QueryRowContext(ctx, w.blocked).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			return errors.New("none waits")
		}
		return nil
	})
}

// The statement of docs/fencing-by-hand.md for a token that is kept in the row that it
// guards.
func (w world) testLoneStatement(t *testing.T) {
	w.exec(t, "CREATE TABLE stock (id INTEGER PRIMARY KEY, items INTEGER NOT NULL, fence BIGINT NOT NULL DEFAULT 0)")
	w.exec(t, "INSERT INTO stock (id, items) VALUES (7, 10)")
	// MySQL's parameters have no numbers.
	update := "UPDATE stock SET items = " + w.p(1) + ", fence = " + w.p(2) + " WHERE id = " + w.p(3) + " AND fence <= " + w.p(4)
	for _, c := range []struct {
		items, token, rows int64
	}{{9, 5, 1}, {8, 5, 1}, {99, 4, 0}, {7, 6, 1}, {99, 5, 0}} {
		n, err := w.exec(t, update, c.items, c.token, 7, c.token).RowsAffected()
		if err != nil || n != c.rows {
			t.Errorf("token %d: %d rows, %v; want %d", c.token, n, err, c.rows)
		}
	}
	var items int
	w.one(t, &items, "SELECT items FROM stock WHERE id = 7")
	if items != 7 {
		t.Errorf("%d items, want 7", items)
	}
	if w.blocked == "" { // one writer at a time: nothing to overtake
		return
	}
	// An older write that waits for a newer one looks again.
	newer := w.begin(t.Context(), t)
	if _, err := newer.ExecContext(t.Context(), update, 6, 8, 7, 8); err != nil {
		t.Fatal(err)
	}
	older := make(chan int64, 1)
	go func() {
		res, err := w.DB.ExecContext(t.Context(), update, 99, 7, 7, 7)
		if err != nil {
			t.Error(err)
			older <- -1
			return
		}
		n, _ := res.RowsAffected()
		older <- n
	}()
	w.awaitBlocked(t)
	if err := newer.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := <-older; n != 0 {
		t.Errorf("the older write changed %d rows", n)
	}
}

// A statement under way ends when the hold does, and what the transaction
// wrote is gone.
func (w world) testLost(t *testing.T) {
	w.exec(t, "CREATE TABLE lost (id INTEGER PRIMARY KEY)")
	l := newLock(t.Context(), 5)
	began := time.Now()
	err := fence.Tx(t.Context(), l, w.Database, "lost", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO lost VALUES (1)"); err != nil {
			return err
		}
		if w.sleep == "" {
			l.end(errLost)
			return nil
		}
		time.AfterFunc(100*time.Millisecond, func() { l.end(errLost) })
		_, err := tx.ExecContext(ctx, w.sleep)
		return err
	})
	if !errors.Is(err, errLost) || errors.Is(err, fence.ErrCommit) {
		t.Errorf("Tx = %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v to hear of the loss", took)
	}
	var n int
	w.one(t, &n, "SELECT count(*) FROM lost")
	if n != 0 {
		t.Errorf("%d rows of a lost hold were written", n)
	}
	// The next holder finds the resource free.
	if err := w.check(t, "lost", 6); err != nil {
		t.Error(err)
	}
}
