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
	errBusy = errors.New("another holder has it")
	errLost = errors.New("lost")
	errBody = errors.New("body")
)

// lock is a lock that gives one hold, or refuses.
type lock struct {
	*trace
	hold    *hold
	refuse  error
	release error // what the release returns
}

// newLock returns a lock whose hold has token 7.
func newLock(ctx context.Context) *lock {
	l := &lock{trace: &trace{}}
	l.hold = &hold{token: 7, exclusive: true}
	l.hold.ctx, l.hold.end = context.WithCancelCause(ctx)
	return l
}

// again returns a lock that gives its next hold, with a trace of its own.
func (l *lock) again(ctx context.Context, token int64) *lock {
	next := newLock(ctx)
	next.hold.token = token
	return next
}

func (l *lock) Do(ctx context.Context, fn func(context.Context, *hold) error) (err error) {
	if l.refuse != nil {
		return l.refuse
	}
	l.add("acquire")
	work, cancel := context.WithCancelCause(l.hold.ctx)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer func() {
		stop()
		l.add("release")
		err = errors.Join(err, l.release)
	}()
	return fn(work, l.hold)
}

type hold struct {
	token     int64
	exclusive bool
	ctx       context.Context
	end       context.CancelCauseFunc
	expired   error // Err says so, although no timer has told the context
}

func (h *hold) Context() context.Context { return h.ctx }
func (h *hold) FencingToken() int64      { return h.token }
func (h *hold) Exclusive() bool          { return h.exclusive }

func (h *hold) Err() error {
	if h.expired != nil {
		return h.expired
	}
	return context.Cause(h.ctx)
}

// store is a database that knows the statements of fence.SQLite and traces
// what it is told. It holds one token, whatever the resource, and has no row
// locks: integration/fence has real databases.
type store struct {
	*trace
	mu         sync.Mutex
	newest     int64 // committed
	raiseErr   error // of the next statement that raises outside of a transaction
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

func (s *store) Connect(context.Context) (driver.Conn, error) { return &conn{store: s}, nil }
func (s *store) Driver() driver.Driver                        { return nil }

type conn struct {
	*store
	within bool   // a transaction
	stored *int64 // by it
}

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not prepared") }
func (c *conn) Close() error                        { return nil }

func (c *conn) Begin() (driver.Tx, error) {
	c.add("begin")
	c.within, c.stored = true, nil
	return c, nil
}

func (c *conn) Commit() error {
	c.add("commit")
	c.within = false
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.commitErr == nil && c.stored != nil {
		c.newest = *c.stored
	}
	return c.commitErr
}

func (c *conn) Rollback() error {
	c.add("rollback")
	c.within = false
	close(c.rolledBack)
	return nil
}

func (c *conn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !strings.HasPrefix(query, "INSERT INTO docent_fence") {
		c.add(query)
		return driver.RowsAffected(1), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	token, ok := args[1].Value.(int64)
	if !ok {
		return nil, errors.New("no token")
	}
	if !c.within {
		c.add("raise")
		if c.raiseErr != nil {
			return nil, c.raiseErr
		}
	} else {
		c.add("check")
	}
	switch {
	case token < c.newest:
		return driver.RowsAffected(0), nil
	case c.within:
		c.stored = &token
	default:
		c.newest = token
	}
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
