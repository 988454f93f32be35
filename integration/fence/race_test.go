package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/docent-go/docent/fence"
)

var errLost = errors.New("lost")

// lock is a lock, and its own hold, that any number of holders have at once, as
// after a pause or in a partition. The resource must withstand that.
type lock struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	token int64
}

func newLock(ctx context.Context, token int64) *lock {
	l := &lock{token: token}
	l.ctx, l.end = context.WithCancelCause(ctx)
	return l
}

func (l *lock) Do(_ context.Context, fn func(context.Context, *lock) error) error {
	return fn(l.ctx, l)
}
func (l *lock) Context() context.Context { return l.ctx }
func (l *lock) FencingToken() int64      { return l.token }
func (l *lock) Err() error               { return context.Cause(l.ctx) }
func (l *lock) Exclusive() bool          { return true }

// tally is what became of the transactions of a race.
type tally struct {
	mu                                     sync.Mutex
	committed, stale, repeated, rolledBack int
}

func (a *tally) add(n *int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*n++
}

// Many holders at once, on resources that are new. Each reads the last entry of a
// list and adds one to it, protected by nothing but the check. No entry may be
// overwritten or stand in the wrong order. The token stored at the end must be
// the last one in the list.
func (w world) testRace(t *testing.T) {
	const resources, holders, writes = 4, 8, 12
	w.exec(t, createEntries)
	defer w.exec(t, "DROP TABLE entry")
	var sum tally
	for i := range resources {
		resource := fmt.Sprintf("%s %d", t.Name(), i)
		start := make(chan struct{})
		var all sync.WaitGroup
		var holds atomic.Int64 // that the lock has given
		for n := range uint64(holders) {
			all.Go(func() {
				<-start
				r := rand.New(rand.NewPCG(uint64(i), n))
				token := holds.Add(1)
				for range writes {
					w.append(t, token, resource, r.IntN(4) == 0, &sum)
					if r.IntN(3) == 0 { // else it writes again, perhaps late
						token = holds.Add(1)
					}
				}
			})
		}
		close(start)
		all.Wait()
		w.audit(t, resource)
	}
	t.Logf("%d committed, %d stale, %d rolled back, %d repeated because the database refused", sum.committed, sum.stale, sum.rolledBack, sum.repeated)
	if got := sum.committed + sum.stale + sum.rolledBack; got != resources*holders*writes {
		t.Errorf("%d transactions came to an end, want %d", got, resources*holders*writes)
	}
	if sum.committed < resources*writes || sum.stale < resources {
		t.Error("not much was tested")
	}
}

const createEntries = "CREATE TABLE entry (resource VARCHAR(100) NOT NULL, seq INTEGER NOT NULL, token BIGINT NOT NULL)"

func (w world) lastEntry() string {
	return "SELECT COALESCE(MAX(seq), 0) FROM entry WHERE resource = " + w.p(1)
}

func (w world) newEntry() string {
	return "INSERT INTO entry (resource, seq, token) VALUES (" + w.p(1) + ", " + w.p(2) + ", " + w.p(3) + ")"
}

// append adds an entry under a hold, or rolls back.
func (w world) append(t *testing.T, token int64, resource string, rollback bool, sum *tally) {
	no := errors.New("no")
	for {
		err := fence.Tx(t.Context(), newLock(t.Context(), token), w.Database, resource, func(ctx context.Context, tx *sql.Tx) error {
			var last int
			if err := tx.QueryRowContext(ctx, w.lastEntry(), resource).Scan(&last); err != nil {
				return err
			}
			if rollback {
				return no
			}
			_, err := tx.ExecContext(ctx, w.newEntry(), resource, last+1, token)
			return err
		})
		switch {
		case err == nil:
			sum.add(&sum.committed)
		case errors.Is(err, fence.ErrStale):
			sum.add(&sum.stale)
		case errors.Is(err, no):
			sum.add(&sum.rolledBack)
		case w.again(err):
			sum.add(&sum.repeated)
			continue
		default:
			t.Error(err)
		}
		return
	}
}

// audit reads the list of a resource. The newest token that was stored is that
// of the last entry.
func (w world) audit(t *testing.T, resource string) {
	t.Helper()
	if got, want := w.newest(t, resource), w.lastToken(t, resource); got != want {
		t.Errorf("%s: stored %d, the last entry is of %d", resource, got, want)
	}
}

// lastToken reads the list of a resource, and returns the token of the last
// entry.
func (w world) lastToken(t *testing.T, resource string) int64 {
	t.Helper()
	rows, err := w.DB.QueryContext(t.Context(), "SELECT seq, token FROM entry WHERE resource = "+w.p(1)+" ORDER BY seq, token", resource)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var tokens []int64
	for rows.Next() {
		var seq int
		var token int64
		if err := rows.Scan(&seq, &token); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
		if seq != len(tokens) {
			t.Errorf("%s: entry %d has number %d: two holders wrote at once", resource, len(tokens), seq)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(tokens) {
		t.Errorf("%s: tokens went back: %v", resource, tokens)
	}
	if len(tokens) == 0 {
		t.Fatalf("%s: there is no entry", resource)
	}
	return tokens[len(tokens)-1]
}
