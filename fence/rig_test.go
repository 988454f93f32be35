package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/fence"
)

// trace is what happened, in order.
type trace struct {
	mu     sync.Mutex
	events []string
}

func (t *trace) add(event string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, event)
}

func (t *trace) want(tb testing.TB, events ...string) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Equal(t.events, events) {
		tb.Errorf("happened: %s\nwant:     %s", strings.Join(t.events, ", "), strings.Join(events, ", "))
	}
}

var (
	errBusy = errors.New("somebody else holds it")
	errLost = errors.New("lost")
	errBody = errors.New("body")
)

// lock is a lock that gives one hold, or refuses.
type lock struct {
	*trace
	hold   *hold
	refuse error
}

// newLock returns a lock whose hold has token 7.
func newLock(ctx context.Context) *lock {
	l := &lock{trace: &trace{}}
	l.hold = &hold{trace: l.trace, token: 7}
	l.hold.ctx, l.hold.end = context.WithCancelCause(ctx)
	return l
}

func (l *lock) Acquire(context.Context) (*hold, error) {
	if l.refuse != nil {
		return nil, l.refuse
	}
	l.add("acquire")
	return l.hold, nil
}

type hold struct {
	*trace
	token   int64
	ctx     context.Context
	end     context.CancelCauseFunc
	expired error // Err says so, although no timer has told the context
	release error
}

func (h *hold) Context() context.Context { return h.ctx }
func (h *hold) FencingToken() int64      { return h.token }
func (h *hold) Close() error             { h.add("release"); return h.release }

func (h *hold) Err() error {
	if h.expired != nil {
		return h.expired
	}
	return context.Cause(h.ctx)
}

// store is a database that knows the statements of fence.SQLite and traces
// what it is told. It has no row locks: integration/fence has real databases.
type store struct {
	*trace
	mu         sync.Mutex
	newest     int64 // committed
	stored     *int64
	commitErr  error
	rolledBack chan struct{} // closed by the first rollback
}

func openStore(t *testing.T, tr *trace, newest int64) (*store, fence.Database) {
	t.Helper()
	s := &store{trace: tr, newest: newest, rolledBack: make(chan struct{})}
	db := sql.OpenDB(s)
	t.Cleanup(func() { _ = db.Close() })
	return s, fence.Database{DB: db, Dialect: fence.SQLite}
}

func (s *store) Connect(context.Context) (driver.Conn, error) { return &conn{s}, nil }
func (s *store) Driver() driver.Driver                        { return nil }

type conn struct{ *store }

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not prepared") }
func (c *conn) Close() error                        { return nil }
func (c *conn) Begin() (driver.Tx, error)           { c.add("begin"); return c, nil }

func (c *conn) Commit() error {
	c.add("commit")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.commitErr == nil && c.stored != nil {
		c.newest = *c.stored
	}
	return c.commitErr
}

func (c *conn) Rollback() error {
	c.add("rollback")
	close(c.rolledBack)
	return nil
}

func (c *conn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !strings.HasPrefix(query, "INSERT INTO docent_fence") {
		c.add(query)
		return driver.RowsAffected(1), nil
	}
	c.add("check")
	c.mu.Lock()
	defer c.mu.Unlock()
	token, ok := args[1].Value.(int64)
	if !ok || token < c.newest {
		return driver.RowsAffected(0), nil
	}
	c.stored = &token
	return driver.RowsAffected(1), nil
}

func (c *conn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &row{value: c.newest}, nil
}

type row struct {
	value int64
	read  bool
}

func (r *row) Columns() []string { return []string{"token"} }
func (r *row) Close() error      { return nil }

func (r *row) Next(to []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read = true
	to[0] = r.value
	return nil
}

func wantErr(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v does not match %v", err, target)
		}
	}
}

func wantStale(t *testing.T, err error, want fence.StaleError) {
	t.Helper()
	var stale *fence.StaleError
	if !errors.As(err, &stale) || *stale != want || !errors.Is(err, fence.ErrStale) {
		t.Errorf("error %v, want %v", err, &want)
	}
}
