package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

type spanKey struct{}

func spanOf(ctx context.Context) string {
	span, _ := ctx.Value(spanKey{}).(string)
	return span
}

// diary is what hooks were told of locks, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
	got   []client.AcquireResult
	ended []client.HoldResult
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// hooks write the diary; operations only if ops is set. An acquire and a hold are
// spans below that of the caller.
func (d *diary) hooks(ops bool) client.Observer {
	o := client.Observer{Lock: d.lock}
	if ops {
		o.Operation = func(ctx context.Context, op client.OperationInfo) (context.Context, func(client.OperationResult)) {
			d.add("%s: %s", spanOf(ctx), op.Op)
			return ctx, nil
		}
	}
	return o
}

func (d *diary) lock(ctx context.Context, lock client.LockInfo) (context.Context, client.LockHooks) {
	name := lock.Recipe + " " + lock.Mode + " " + lock.Path
	caller := spanOf(ctx)
	d.add("%s asks for %s", caller, name)
	return context.WithValue(ctx, spanKey{}, caller+"/acquire"), client.LockHooks{
		Queued: func(p client.QueuePlace) {
			if (p.Behind == "") != (p.Ahead == 0) || p.Node == "" {
				d.add("nonsense: %+v", p)
			}
			d.add("%s in %s: %d ahead", caller, p.Path, p.Ahead)
		},
		Acquired: func(r client.AcquireResult) {
			d.add("%s: %v", caller, r.Outcome)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.got = append(d.got, r)
		},
		Held: func(ctx context.Context, _ client.HoldInfo) context.Context {
			d.add("%s holds as %s", caller, spanOf(ctx))
			return context.WithValue(ctx, spanKey{}, caller+"/hold")
		},
		Ended: func(r client.HoldResult) {
			d.add("%s held %s: %v", caller, r.Path, r.End)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.ended = append(d.ended, r)
		},
	}
}

// take returns what was told so far, and forgets it.
func (d *diary) take() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

func (d *diary) want(t *testing.T, lines ...string) {
	t.Helper()
	if got := d.take(); !slices.Equal(got, lines) {
		t.Errorf("the hooks were told\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(lines, "\n\t"))
	}
}

// as is the rig's context in a span.
func (r *rig) as(span string) context.Context { return context.WithValue(r.Ctx, spanKey{}, span) }

const mutexName = "InterProcessMutex exclusive " + dir

// One waiter's story: its places in the queue, its acquire, its hold, each once
// and in order. The operations are in the spans where they belong.
func TestLockHooks(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var d diary
		first := r.held(r.mutex(r.Connect("first")))
		second := acquire(r.Ctx, r.mutex(r.Connect("second")))
		time.Sleep(time.Second)
		c := r.Connect("a", client.WithObserver(d.hooks(true)))
		m := r.mutex(c)
		waiting := acquire(r.as("w"), m)
		time.Sleep(time.Second / 2)
		d.want(t, "w asks for "+mutexName, "w/acquire: create", "w in "+dir+": 2 ahead", "w/acquire: get")
		r.Check(first.Release(r.Ctx))
		time.Sleep(2 * time.Second)
		d.want(t, "w/acquire: children", "w in "+dir+": 1 ahead", "w/acquire: get")
		r.Check((<-second).hold.Release(r.Ctx))
		h := (<-waiting).hold
		d.want(t, "w in "+dir+": 0 ahead", "w: acquired", "w holds as w")
		if got := d.got[0]; got.Node != h.Path() || got.FencingToken != h.FencingToken() || got.Session != r.SessionID(c) ||
			got.Duration < 2*time.Second || got.Duration > 3*time.Second || got.Err != nil {
			t.Errorf("acquired: %+v", got)
		}
		if span := spanOf(h.Context()); span != "w/hold" {
			t.Errorf("the hold's context is in the span %q", span)
		}
		r.Check(h.Context().Err())
		inner, err := m.Acquire(h.Context()) // part of the hold
		r.Check(err)
		r.Check(h.Release(r.Ctx))
		d.want(t)
		time.Sleep(time.Minute)
		d.want(t, "w: get") // its own node is watched
		testrig.WantErr(t, context.Cause(h.Context()), recipes.ErrReleased)
		r.Check(inner.Release(r.as("r")))
		d.want(t, "r: delete", "w held "+dir+": released")
		if got := d.ended[0]; got.Duration < time.Minute || got.Duration > 62*time.Second || got.Err != nil || got.Node != h.Path() {
			t.Errorf("released: %+v", got)
		}
		_ = inner.Close()
		d.want(t)
	})
}

// What becomes of an acquire that is not granted.
func TestLockHooksOfFailures(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   func(r *rig, m *recipes.InterProcessMutex, c *client.Client, ctx context.Context) error
		want []string
	}{
		"busy": {
			do: func(_ *rig, m *recipes.InterProcessMutex, _ *client.Client, ctx context.Context) error {
				_, err := m.TryAcquire(ctx)
				return err
			},
			want: []string{"w: busy"},
		},
		"timeout": {
			do: func(_ *rig, m *recipes.InterProcessMutex, _ *client.Client, ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, err := m.Acquire(ctx)
				return err
			},
			want: []string{"w in " + dir + ": 1 ahead", "w: timeout"},
		},
		"canceled": {
			do: func(_ *rig, m *recipes.InterProcessMutex, _ *client.Client, ctx context.Context) error {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(time.Second, func() { cancel(errors.New("enough")) })
				_, err := m.Acquire(ctx)
				return err
			},
			want: []string{"w in " + dir + ": 1 ahead", "w: canceled"},
		},
		"session lost": {
			do: func(r *rig, m *recipes.InterProcessMutex, c *client.Client, ctx context.Context) error {
				id := r.SessionID(c)
				time.AfterFunc(time.Second, func() { r.Srv.ExpireSession(id) })
				_, err := m.Acquire(ctx)
				return err
			},
			want: []string{"w in " + dir + ": 1 ahead", "w: error"},
		},
		"refused": {
			do: func(r *rig, m *recipes.InterProcessMutex, _ *client.Client, ctx context.Context) error {
				r.Srv.Fail(zktest.Match{Op: zktest.OpCreate}, zktest.CodeNoAuth)
				_, err := m.Acquire(ctx)
				return err
			},
			want: []string{"w: error"},
		},
		"in a hold that was lost": {
			do: func(r *rig, m *recipes.InterProcessMutex, c *client.Client, ctx context.Context) error {
				other, err := recipes.NewInterProcessMutex(c, "/other")
				r.Check(err)
				h, err := other.Acquire(r.Ctx)
				r.Check(err)
				r.Check(r.Srv.Delete(h.Path()))
				<-h.Context().Done()
				synctest.Wait() // the loss is told elsewhere
				_ = m
				_, err = other.Acquire(context.WithValue(h.Context(), spanKey{}, spanOf(ctx)))
				return err
			},
			want: []string{
				" asks for InterProcessMutex exclusive /other", " in /other: 0 ahead", ": acquired", " holds as ",
				" held /other: deleted", "w asks for InterProcessMutex exclusive /other", "w: error",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var d diary
				r.held(r.mutex(r.Connect("holder")))
				time.Sleep(time.Second)
				c := r.Connect("a", client.WithObserver(d.hooks(false)))
				err := tt.do(r, r.mutex(c), c, r.as("w"))
				if err == nil {
					t.Fatal("the lock was had")
				}
				want := tt.want
				if len(want) < 3 {
					want = append([]string{"w asks for " + mutexName}, want...)
				}
				d.want(t, want...)
				last := d.got[len(d.got)-1]
				if last.Err == nil || last.Err.Error() != err.Error() || last.HoldInfo != (client.HoldInfo{}) {
					t.Errorf("the hook was told %+v, the caller %v", last, err)
				}
			})
		})
	}
}

// A hold that is lost ends once, when it is lost and with the cause, and its release
// says nothing more.
func TestLockHooksOfLosses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose func(*rig, *client.Client, *recipes.Hold)
		want client.HoldEnd
	}{
		"session": {func(r *rig, c *client.Client, _ *recipes.Hold) { r.Srv.ExpireSession(r.SessionID(c)) }, client.HoldLostSession},
		"lease":   {func(r *rig, _ *client.Client, _ *recipes.Hold) { r.Srv.Client("a").Partition() }, client.HoldLostLease},
		"deleted": {func(r *rig, _ *client.Client, h *recipes.Hold) { r.Check(r.Srv.Delete(h.Path())) }, client.HoldLostNode},
		"closed":  {func(r *rig, c *client.Client, _ *recipes.Hold) { r.Check(c.CloseContext(r.Ctx)) }, client.HoldLostClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var d diary
				c := r.Connect("a", client.WithObserver(d.hooks(false)))
				h, err := r.mutex(c).Acquire(r.as("w"))
				r.Check(err)
				time.Sleep(time.Minute)
				d.take()
				tt.lose(r, c, h)
				<-h.Context().Done()
				d.want(t, "w held "+dir+": "+tt.want.String())
				got := d.ended[0]
				if !got.End.Lost() || got.End.String() != name || !errors.Is(got.Err, recipes.ErrLost) ||
					got.Duration < time.Minute || got.Duration > 2*time.Minute {
					t.Errorf("lost: %+v", got)
				}
				testrig.WantErr(t, h.Close(), recipes.ErrLost)
				d.want(t)
			})
		})
	}
}

// A loss that only the release finds out about is a loss.
func TestLockHooksOfALateLoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var d diary
		h, err := r.mutex(r.Connect("a", client.WithObserver(d.hooks(false)))).Acquire(r.as("w"))
		r.Check(err)
		d.take()
		r.Check(r.Srv.Delete(h.Path())) // before it is watched
		testrig.WantErr(t, h.Release(r.Ctx), recipes.ErrLost)
		d.want(t, "w held "+dir+": deleted")
	})
}

// Do pairs what it begins, whatever fn does.
func TestLockHooksOfDo(t *testing.T) {
	t.Parallel()
	for name, fn := range map[string]func(context.Context) error{
		"returns": func(context.Context) error { return nil },
		"fails":   func(context.Context) error { return errors.New("no") },
		"panics":  func(context.Context) error { panic("no") },
		"exits":   func(context.Context) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var d diary
				m := r.mutex(r.Connect("a", client.WithObserver(d.hooks(false))))
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					_ = m.Do(r.as("w"), func(ctx context.Context, _ *recipes.Hold) error {
						d.add("%s works", spanOf(ctx))
						return fn(ctx)
					})
				}()
				<-done
				d.want(t, "w asks for "+mutexName, "w in "+dir+": 0 ahead", "w: acquired", "w holds as w",
					"w/hold works", "w held "+dir+": released")
			})
		})
	}
}

// Hooks that never return keep no holder from hearing of a loss. They keep no
// waiter from the lock for longer than the holder's lease.
func TestLockHooksThatBlock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		never := make(chan struct{})
		defer close(never)
		block := false
		c := r.Connect("a", client.WithObserver(client.Observer{
			Lock: func(ctx context.Context, _ client.LockInfo) (context.Context, client.LockHooks) {
				hooks := client.LockHooks{Ended: func(client.HoldResult) { <-never }}
				if block {
					hooks.Held = func(context.Context, client.HoldInfo) context.Context { <-never; return nil }
				}
				return ctx, hooks
			},
		}))
		var holds []*recipes.Hold
		for i := range 3 {
			m, err := recipes.NewInterProcessMutex(c, fmt.Sprintf("/lock%d", i))
			r.Check(err)
			h, err := m.Acquire(r.Ctx)
			r.Check(err)
			holds = append(holds, h)
		}
		block = true
		stuck := acquire(r.Ctx, r.mutex(c)) // held, and never given to the caller
		time.Sleep(time.Minute)
		deadline := holds[0].Deadline()
		r.Srv.Client("a").Partition()
		for _, h := range holds {
			<-h.Context().Done()
			if early := time.Until(deadline); early < 500*time.Millisecond {
				t.Errorf("%s was lost %v before the deadline", h.Path(), early)
			}
			_ = h.Close()
		}
		time.Sleep(time.Minute)
		r.Srv.Client("a").Heal()
		other := r.held(r.mutex(r.Connect("b")))
		r.Check(other.Close())
		select {
		case res := <-stuck:
			t.Errorf("the acquire behind the hook returned: %+v", res)
		default:
		}
	})
}
