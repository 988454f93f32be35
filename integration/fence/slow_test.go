package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/docent-go/docent/fence"
)

// stock is a number of items that holders read, take their time, and write
// back. sold counts the writes that were committed.
type stock struct {
	world
	name string
	sold int
}

const inStock = 10

func (w world) newStock(t *testing.T, name string) *stock {
	t.Helper()
	w.exec(t, "CREATE TABLE "+name+" (items INTEGER NOT NULL)")
	t.Cleanup(func() { _, _ = w.DB.ExecContext(context.WithoutCancel(t.Context()), "DROP TABLE "+name) })
	w.exec(t, "INSERT INTO "+name+" (items) VALUES ("+w.p(1)+")", inStock)
	return &stock{world: w, name: name}
}

func (s *stock) read(t *testing.T) (items int) {
	t.Helper()
	s.one(t, &items, "SELECT items FROM "+s.name)
	return items
}

// take writes that there is one item less than what was read.
func (s *stock) take(ctx context.Context, tx *sql.Tx, read int) error {
	_, err := tx.ExecContext(ctx, "UPDATE "+s.name+" SET items = "+s.p(1), read-1)
	return err
}

func (s *stock) booked(err error) error {
	if err == nil {
		s.sold++
	}
	return err
}

// want compares what was sold with what is left.
func (s *stock) want(t *testing.T, sold int) {
	t.Helper()
	if left := s.read(t); s.sold != sold || left != inStock-s.sold {
		t.Errorf("%d sold, want %d; %d of %d left: %d updates are lost", s.sold, sold, left, inStock, left-(inStock-s.sold))
	}
}

// The old holder's write lands after the new holder has read, and before it has
// written. Had the new holder not raised its token before it read, both writes
// would be accepted, and one of them lost.
func (w world) testSlow(t *testing.T) {
	s := w.newStock(t, "slow")
	err := fence.Do(t.Context(), newLock(t.Context(), 6), w.Database, "slow", func(old context.Context) error {
		seen := s.read(t)
		return fence.Do(t.Context(), newLock(t.Context(), 9), w.Database, "slow", func(ctx context.Context) error {
			left := s.read(t)
			late := s.booked(w.Tx(old, "slow", func(ctx context.Context, tx *sql.Tx) error { return s.take(ctx, tx, seen) }))
			wantStale(t, late, fence.StaleError{Resource: "slow", Token: 6, Newest: 9})
			return s.booked(w.Tx(ctx, "slow", func(ctx context.Context, tx *sql.Tx) error { return s.take(ctx, tx, left) }))
		})
	})
	if err != nil {
		t.Error(err)
	}
	s.want(t, 1)
}

// The old holder's transaction is open and has passed its check when the new
// holder comes. The new holder waits for its end, and then reads what it wrote.
func (w world) testSlowUnderWay(t *testing.T) {
	s := w.newStock(t, "under_way")
	late := w.begin(t.Context(), t)
	if err := w.Dialect.Check(t.Context(), late, "under way", 6); err != nil {
		t.Fatal(err)
	}
	if err := s.take(t.Context(), late, s.read(t)); err != nil {
		t.Fatal(err)
	}
	begun, ended := make(chan int, 1), make(chan error, 1)
	go func() {
		ended <- fence.Do(t.Context(), newLock(t.Context(), 9), w.Database, "under way", func(ctx context.Context) error {
			var left int
			if err := w.DB.QueryRowContext(ctx, "SELECT items FROM under_way").Scan(&left); err != nil {
				return err
			}
			begun <- left
			return w.Tx(ctx, "under way", func(ctx context.Context, tx *sql.Tx) error { return s.take(ctx, tx, left) })
		})
	}()
	w.awaitBlocked(t)
	select {
	case left := <-begun:
		t.Errorf("it did not wait, and read %d", left)
	default:
	}
	if err := s.booked(late.Commit()); err != nil {
		t.Fatal(err)
	}
	if err := s.booked(<-ended); err != nil {
		t.Error(errors.Join(errors.New("the new holder"), err))
	}
	s.want(t, 2)
}

// Many holders of a lock that every second of them loses after it has read.
// Each reads the last entry of a list, and adds one to it later, in a
// transaction of its own: no entry may be overwritten.
func (w world) testSlowRace(t *testing.T) {
	const holders, writes = 6, 24
	w.exec(t, createEntries)
	defer w.exec(t, "DROP TABLE entry")
	resource := t.Name()
	var (
		sum   tally
		all   sync.WaitGroup
		turn  sync.Mutex // the lock
		holds int64      // that it has given; guarded by turn
	)
	for n := range uint64(holders) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(2, n))
			for done := 0; done < writes; {
				turn.Lock()
				holds++
				l, release := newLock(t.Context(), holds), sync.OnceFunc(turn.Unlock)
				err := w.appendSlowly(l, resource, func() {
					if r.IntN(2) == 0 {
						release() // the holder does not know
					}
				})
				release()
				switch {
				case err == nil:
					sum.add(&sum.committed)
				case errors.Is(err, fence.ErrStale):
					sum.add(&sum.stale)
				case w.again(err):
					sum.add(&sum.repeated)
					continue
				default:
					t.Error(err)
				}
				done++
			}
		})
	}
	all.Wait()
	if got, want := w.newest(t, resource), w.lastToken(t, resource); got < want {
		t.Errorf("stored %d, the last entry is of %d", got, want)
	}
	var entries int
	w.one(t, &entries, "SELECT count(*) FROM entry")
	if entries != sum.committed {
		t.Errorf("%d entries of %d transactions", entries, sum.committed)
	}
	t.Logf("%d committed, %d stale, %d repeated because the database refused", sum.committed, sum.stale, sum.repeated)
	if sum.committed < writes || sum.stale < 1 && w.blocked != "" { // in SQLite, few get in between
		t.Error("not much was tested")
	}
}

// appendSlowly adds an entry to a list that was read before the transaction.
func (w world) appendSlowly(l *lock, resource string, pause func()) error {
	return fence.Do(l.ctx, l, w.Database, resource, func(ctx context.Context) error {
		var last int
		if err := w.DB.QueryRowContext(ctx, w.lastEntry(), resource).Scan(&last); err != nil {
			return err
		}
		pause()
		return w.Tx(ctx, resource, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, w.newEntry(), resource, last+1, l.token)
			return err
		})
	})
}
