package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/recipes"
)

// cancelledEverywhere cancels an acquire at each of its requests. It does so once
// before the server has the request, and once when the answer does not come.
// Whatever the call returns, nothing remains, and the call returns at once.
func cancelledEverywhere(ctx context.Context, t *testing.T, base *world) {
	for _, contended := range []bool{false, true} {
		for _, action := range []proxy.Action{proxy.StallRequests, proxy.StallReplies} {
			for step := 1; ; step++ {
				fired := false
				name := fmt.Sprintf("contended=%v %v request %d", contended, action, step)
				t.Run(name, func(t *testing.T) {
					w := newWorld(ctx, t, base.node)
					fired = cancelAt(ctx, t, w, contended, action, step)
				})
				if !fired {
					if step < 3 {
						t.Errorf("%s: an acquire has more requests than that", name)
					}
					break
				}
			}
		}
	}
}

func cancelAt(ctx context.Context, t *testing.T, w *world, contended bool, action proxy.Action, step int) bool {
	var first *recipes.Hold
	if contended {
		first = held(ctx, t, w.mutex(t, connect(ctx, t, w.node.Addr())))
	}
	c := connect(ctx, t, w.px.Addr())
	cctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rule := w.px.On(proxy.Match{Nth: step}, action)
	done := acquire(cctx, w.mutex(t, c))

	reached := make(chan error, 1)
	rctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, err := rule.Await(rctx)
		reached <- err
	}()
	var r result
	fired := false
	select {
	case err := <-reached:
		check(t, err)
		fired = true
	case r = <-done: // it came to its end before that step
	case <-time.After(2 * time.Second): // or waits for its turn
	}
	began := time.Now()
	cancel()
	if r == (result{}) {
		r = await(ctx, t, done)
		if took := time.Since(began); took > grace {
			t.Errorf("returned %v after the cancellation", took)
		}
	}
	rule.Resume()
	switch {
	case r.err == nil: // it was granted in the same moment: then it is held
		check(t, r.hold.Err())
		check(t, r.hold.Release(ctx))
	case !errors.Is(r.err, context.Canceled):
		t.Errorf("error %v, want a cancelled one", r.err)
	}
	if first != nil {
		check(t, first.Err())
		check(t, first.Release(ctx))
	}
	w.empty(t)
	w.free(ctx, t)
	return fired
}

// partitions silences the connection of a holder while another client waits. The
// holder's context ends before another client can hold the lock. It ends within
// the session timeout of the last answer.
func partitions(ctx context.Context, t *testing.T, base *world) {
	for name, cut := range map[string]func(*proxy.Proxy){
		"both ways":     (*proxy.Proxy).Stall,
		"to the server": (*proxy.Proxy).StallRequests,
		"to the client": (*proxy.Proxy).StallReplies,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(ctx, t, base.node)
			c := connect(ctx, t, w.px.Addr())
			h := held(ctx, t, w.mutex(t, c))
			witness := acquire(ctx, w.mutex(t, connect(ctx, t, w.node.Addr())))
			w.waiting(t, 2)
			began := time.Now()
			cut(w.px)
			var next result
			select {
			case <-h.Context().Done():
			case next = <-witness:
				t.Errorf("another holds after %v while the first was not told", time.Since(began))
			}
			lost := time.Since(began)
			if lost > sessionTimeout+grace {
				t.Errorf("told %v after the cut, the timeout is %v", lost, sessionTimeout)
			}
			wantErr(t, h.Err(), recipes.ErrLost, client.ErrLeaseExpired)
			if next == (result{}) {
				next = await(ctx, t, witness)
			}
			check(t, next.err)
			t.Logf("first told after %v, next held after %v", lost, time.Since(began))
			check(t, next.hold.Release(ctx))
			w.px.Resume()
			w.empty(t)
			check(t, held(ctx, t, w.mutex(t, c)).Release(ctx)) // in a new session
		})
	}
}

// frozenServer stops the server's process: calls obey their contexts, and what
// they leave is gone soon after the server is back.
func frozenServer(ctx context.Context, t *testing.T, w *world) {
	c := connect(ctx, t, w.node.Addr(), client.WithSessionTimeout(10*time.Second))
	m := w.mutex(t, c)
	h := held(ctx, t, m)
	waiter := acquire(ctx, m)
	w.waiting(t, 2)

	check(t, w.node.Pause(ctx))
	for range 3 {
		actx, cancel := context.WithTimeout(ctx, time.Second)
		r := await(ctx, t, acquire(actx, m))
		cancel()
		wantErr(t, r.err, context.DeadlineExceeded)
		if r.took > 1100*time.Millisecond {
			t.Errorf("an acquire with a second to live took %v", r.took)
		}
	}
	rctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	began := time.Now()
	err := h.Release(rctx)
	cancel()
	wantErr(t, err, context.DeadlineExceeded)
	if took := time.Since(began); took > 200*time.Millisecond+grace {
		t.Errorf("a release with 200ms to live took %v", took)
	}
	check(t, w.node.Unpause(ctx))

	r := await(ctx, t, waiter) // the release goes on in the background
	check(t, r.err)
	check(t, r.hold.Release(ctx))
	w.empty(t)
	w.free(ctx, t)
}

func closeInPartition(ctx context.Context, t *testing.T, w *world) {
	c := connect(ctx, t, w.px.Addr())
	h := held(ctx, t, w.mutex(t, c))
	waiter := acquire(ctx, w.mutex(t, c))
	w.waiting(t, 2)
	w.px.Stall()
	cctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := c.CloseContext(cctx)
	wantErr(t, err, context.DeadlineExceeded)
	if took := time.Since(began); took > 500*time.Millisecond+grace {
		t.Errorf("Close took %v", took)
	}
	r := await(ctx, t, waiter)
	wantErr(t, r.err, client.ErrClosed)
	wantErr(t, h.Err(), recipes.ErrLost, client.ErrClosed)
	_, err = w.mutex(t, c).Acquire(ctx)
	wantErr(t, err, client.ErrClosed)
	w.px.CutAll()
	w.px.Resume()
	w.px.Accept()
	eventually(t, sessionTimeout+2*time.Second, func() error {
		if left := w.contenders(t); len(left) > 0 {
			return fmt.Errorf("left behind: %v", left)
		}
		return nil
	})
}
