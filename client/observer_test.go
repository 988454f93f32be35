package client_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// ended is a hook for the ends of operations alone.
func ended(f func(client.OperationResult)) func(context.Context, client.OperationInfo) (context.Context, func(client.OperationResult)) {
	return func(ctx context.Context, _ client.OperationInfo) (context.Context, func(client.OperationResult)) {
		return ctx, f
	}
}

type spanKey struct{}

// spanOf is the span that ctx belongs to.
func spanOf(ctx context.Context) string {
	span, _ := ctx.Value(spanKey{}).(string)
	return span
}

// diary is what hooks of operations were told, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
	ends  []client.OperationResult
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// observer writes the diary. Each operation is a span below that of its caller.
func (d *diary) observer() client.Observer {
	return client.Observer{
		Operation: func(ctx context.Context, op client.OperationInfo) (context.Context, func(client.OperationResult)) {
			span := spanOf(ctx) + "/" + op.Op
			d.add("%s begins %s", span, op.Path)
			return context.WithValue(ctx, spanKey{}, span), func(r client.OperationResult) {
				d.add("%s ends %s: %d tries, %v", span, r.Path, r.Attempts, r.Outcome)
				d.mu.Lock()
				defer d.mu.Unlock()
				d.ends = append(d.ends, r)
			}
		},
		Retry: func(ctx context.Context, again client.RetryInfo) {
			d.add("%s try %d of %s %s failed", spanOf(ctx), again.Attempt.N, again.Op, again.Path)
		},
	}
}

func (d *diary) want(t *testing.T, lines ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.lines, lines) {
		t.Errorf("the hooks were told\n\t%s\nwant\n\t%s", strings.Join(d.lines, "\n\t"), strings.Join(lines, "\n\t"))
	}
}

// last is the newest end.
func (d *diary) last(t *testing.T) client.OperationResult {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.ends) == 0 {
		t.Fatal("no operation has ended")
	}
	return d.ends[len(d.ends)-1]
}

// Every operation that begins ends, with the number of tries and its fate, within
// the span of its caller.
func TestOperationHooks(t *testing.T) {
	t.Parallel()
	const get, gave = "caller/get begins /a", "caller/get ends /a: "
	failed := func(n int) string { return fmt.Sprintf("caller/get try %d of get /a failed", n) }
	for name, tt := range map[string]struct {
		do      func(context.Context, *rig, *client.Client) error
		want    []string
		wantErr error
	}{
		"success": {
			do:   func(ctx context.Context, _ *rig, c *client.Client) error { _, _, err := c.Get(ctx, "/a"); return err },
			want: []string{get, gave + "1 tries, done"},
		},
		"two retries": {
			do: func(ctx context.Context, r *rig, c *client.Client) error {
				r.Srv.Fail(zktest.Match{Path: "/a", Op: zktest.OpGetData, Times: 2}, zktest.CodeThrottledOp)
				_, _, err := c.Get(ctx, "/a")
				return err
			},
			want: []string{get, failed(1), failed(2), gave + "3 tries, done"},
		},
		"retries give up": {
			do: func(ctx context.Context, r *rig, c *client.Client) error {
				r.Srv.Fail(zktest.Match{Path: "/a", Op: zktest.OpGetData, Times: zktest.Always}, zktest.CodeThrottledOp)
				_, _, err := c.Get(ctx, "/a")
				return err
			},
			want:    []string{get, failed(1), failed(2), failed(3), gave + "4 tries, refused"},
			wantErr: client.ErrThrottled,
		},
		"refused": {
			do: func(ctx context.Context, _ *rig, c *client.Client) error {
				_, _, err := c.Get(ctx, "/missing")
				return err
			},
			want:    []string{"caller/get begins /missing", "caller/get ends /missing: 1 tries, refused"},
			wantErr: zk.ErrNoNode,
		},
		"a bad path": {
			do: func(ctx context.Context, _ *rig, c *client.Client) error {
				_, err := c.Create(ctx, "a", nil)
				return err
			},
			want:    []string{"caller/create begins a", "caller/create ends a: 0 tries, never sent"},
			wantErr: client.ErrInvalidPath,
		},
		"bad options": {
			do: func(ctx context.Context, _ *rig, c *client.Client) error {
				_, err := c.Create(ctx, "/b", nil, client.Container(), client.Ephemeral())
				return err
			},
			want:    []string{"caller/create begins /b", "caller/create ends /b: 0 tries, never sent"},
			wantErr: zk.ErrInvalidFlags,
		},
		"no connection in time": {
			do: func(ctx context.Context, r *rig, c *client.Client) error {
				r.Srv.Refuse()
				r.Srv.CutAll()
				time.Sleep(time.Second)
				_, err := c.Set(ctx, "/a", nil, client.AnyVersion)
				return err
			},
			want:    []string{"caller/set begins /a", "caller/set ends /a: 0 tries, never sent"},
			wantErr: client.ErrNotConnected,
		},
		"no answer in time": {
			do: func(ctx context.Context, r *rig, c *client.Client) error {
				r.Srv.Ignore(zktest.Match{Path: "/a", Op: zktest.OpSetData})
				_, err := c.Set(ctx, "/a", nil, client.AnyVersion)
				return err
			},
			want:    []string{"caller/set begins /a", "caller/set ends /a: 1 tries, outcome unknown"},
			wantErr: context.DeadlineExceeded,
		},
		"the session is lost": {
			do: func(ctx context.Context, r *rig, c *client.Client) error {
				s := r.Session(c)
				r.Srv.BeforeApply(zktest.Match{Path: "/a", Op: zktest.OpSetData}, func(context.Context, zktest.Request) { r.Srv.ExpireSession(s.ID()) })
				_, err := s.Set(ctx, "/a", nil, client.AnyVersion)
				return err
			},
			want: []string{
				"caller/set begins /a", "caller/set try 1 of set /a failed", // the connection went first
				"caller/set ends /a: 1 tries, outcome unknown",
			},
			wantErr: client.ErrSessionLost,
		},
		"what is in doubt stays in doubt": { // the search for the node fails, and the caller gives up
			do: func(ctx context.Context, r *rig, c *client.Client) error {
				r.Srv.LoseReply(zktest.Match{Op: zktest.OpCreate})
				r.Srv.Fail(zktest.Match{Op: zktest.OpSync}, zktest.CodeNoAuth)
				_, err := c.Create(ctx, "/p", nil, client.Protected())
				return err
			},
			want: []string{
				"caller/create begins /p", "caller/create try 1 of create /p failed",
				"caller/create ends /p: 2 tries, outcome unknown",
			},
			wantErr: zk.ErrNoAuth,
		},
		"a transaction": {
			do: func(ctx context.Context, _ *rig, c *client.Client) error {
				_, err := c.Multi(ctx, client.CheckOp("/a", 7))
				return err
			},
			want:    []string{"caller/multi begins /a", "caller/multi ends /a: 1 tries, refused"},
			wantErr: zk.ErrBadVersion,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var d diary
				r.create("/a", "data")
				c := r.Connect("a", client.WithRetry(retry.NTimes(3, 100*time.Millisecond)), client.WithObserver(d.observer()))
				ctx := context.WithValue(r.Within(5*time.Second), spanKey{}, "caller")
				err := tt.do(ctx, r, c)
				if tt.wantErr == nil {
					r.Check(err)
				}
				testrig.WantErr(t, err, tt.wantErr)
				d.want(t, tt.want...)
				end := d.last(t)
				if (end.Err == nil) != (err == nil) || err != nil && end.Err.Error() != err.Error() {
					t.Errorf("the hook was told of the error %v, the caller of %v", end.Err, err)
				}
				if end.Attempts > 0 && end.Session == 0 || end.Attempts == 0 && (end.Session != 0 || end.Sent != 0) {
					t.Errorf("an operation of %d tries was in session %d and sent %d bytes", end.Attempts, end.Session, end.Sent)
				}
			})
		})
	}
}

// Bytes counts the bytes of every request and answer, on the wire.
func TestOperationBytes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const (
			request = 4 + 8 + 4 + len("/a") + 1
			answer  = 4 + 16 + 4 + len("data") + 68
			refusal = 4 + 16
		)
		var d diary
		r.create("/a", "data")
		c := r.Connect("a", client.WithObserver(d.observer()))
		want := func(what string, sent, received int) {
			r.Helper()
			if end := d.last(t); end.Sent != int64(sent) || end.Received != int64(received) {
				t.Errorf("%s sent %d and received %d bytes, want %d and %d", what, end.Sent, end.Received, sent, received)
			}
		}
		_, _, err := c.Get(r.Ctx, "/a")
		r.Check(err)
		want("a read", request, answer)
		if end := d.last(t); end.Session != r.Session(c).ID() || end.Duration <= 0 || end.Duration > 10*time.Millisecond {
			t.Errorf("a read: %+v", end)
		}
		r.Srv.Fail(zktest.Match{Path: "/a", Op: zktest.OpGetData}, zktest.CodeThrottledOp)
		_, _, err = c.Get(r.Ctx, "/a")
		r.Check(err)
		want("two tries", 2*request, refusal+answer)
		r.Srv.Ignore(zktest.Match{Path: "/a", Op: zktest.OpGetData})
		_, _, err = c.Get(r.Within(time.Second), "/a")
		testrig.WantErr(t, err, context.DeadlineExceeded)
		want("an unanswered one", request, 0)
	})
}

// Without a context of its own, and without a hook for the end, nothing changes.
func TestOperationHookThatReturnsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		begun := 0
		c := r.Connect("a", client.WithObserver(client.Observer{
			Operation: func(context.Context, client.OperationInfo) (context.Context, func(client.OperationResult)) {
				begun++
				return nil, nil
			},
		}))
		found, _, err := c.Exists(r.Ctx, "/")
		if err != nil || !found || begun != 1 {
			t.Errorf("Exists = %v, %v, and the hook was called %d times", found, err, begun)
		}
		ctx, cancel := context.WithCancel(r.Ctx)
		cancel()
		if _, _, err := c.Exists(ctx, "/"); begun != 2 {
			t.Errorf("Exists = %v, and the hook was called %d times", err, begun)
		} else {
			testrig.WantErr(t, err, context.Canceled)
		}
	})
}
