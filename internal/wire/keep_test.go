package wire_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// keptAndGivenUp is a create with Keep and the list behind it, which left and
// were given up.
func keptAndGivenUp(t *testing.T, r *rig, p *peer) (kept, list *wire.Exchange) {
	t.Helper()
	kept, list = asked(wire.OpCreate, "/a"), asked(wire.OpGetChildren, "/")
	kept.Keep = true
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	go func() {
		p.expect(request(1, kept))
		p.expect(request(2, list))
	}()
	if err := r.link.Do(ctx, kept, list); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Do = %v", err)
	}
	wantFate(t, "given up", kept, true, false)
	wantFate(t, "given up", list, true, false)
	r.wantPending("given up", 1, 0)
	return kept, list
}

// The answer to a request with Keep is taken when it comes, before Settle or
// during it.
func TestSettle(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.establish()
			seen := r.view(c)
			kept, list := keptAndGivenUp(t, r, p)
			answer := func() {
				p.write(reply(ownXid(1), 77, 0, "/a0000000001"))
				p.write(reply(ownXid(2), 77, 0, 0, make([]byte, 68)))
			}
			want := time.Duration(0)
			if early {
				answer()
			} else {
				time.AfterFunc(time.Minute, answer)
				want = time.Minute
			}
			begun := time.Now()
			kept.AwaitAnswer(t.Context())
			if took := time.Since(begun); took != want {
				t.Errorf("Settle took %v, want %v", took, want)
			}
			wantFate(t, "settled", kept, true, true)
			wantFate(t, "not kept", list, true, false)
			if kept.Reply.Path != "/a0000000001" || kept.Reply.Zxid != 77 || kept.Err() != nil {
				t.Errorf("reply %+v, %v", kept.Reply, kept.Err())
			}
			kept.AwaitAnswer(t.Context()) // again
			seen.want(t)
			r.wantPending("settled", 0, 0)
		})
	}
}

// Without an answer Settle ends with its context or the connection, and nothing
// of the request stays.
func TestSettleWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig, p *peer, cancel func()){
		"context":    func(_ *rig, _ *peer, cancel func()) { cancel() },
		"connection": func(_ *rig, p *peer, _ func()) { _ = p.conn.Close() },
		"Link":       func(r *rig, _ *peer, _ func()) { r.link.End(errKilled) },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.establish()
			r.view(c)
			kept, _ := keptAndGivenUp(t, r, p)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(time.Minute, func() { end(r, p, cancel) })
			begun := time.Now()
			kept.AwaitAnswer(ctx)
			if took := time.Since(begun); took != time.Minute {
				t.Errorf("%s: Settle took %v", name, took)
			}
			wantFate(t, name, kept, true, false)
			r.wantPending(name, 0, 0)
			if name == "context" {
				p.write(reply(ownXid(1), 77, 0, "/a")) // too late
				synctest.Wait()
				wantFate(t, name, kept, true, false)
				r.wantAlive()
			}
			kept.AwaitAnswer(t.Context()) // there is nothing to wait for any more
		})
	}
}

// A request that was not sent is not waited for, whatever kept it.
func TestSettleOfWhatWasNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		unsent := func(when string, ctx context.Context) {
			t.Helper()
			x := asked(wire.OpDelete, "/a")
			x.Keep = true
			if err := r.link.Do(ctx, x); err == nil {
				t.Errorf("%s: Do succeeded", when)
			}
			wantFate(t, when, x, false, false)
			begun := time.Now()
			x.AwaitAnswer(t.Context())
			if took := time.Since(begun); took != 0 {
				t.Errorf("%s: Settle took %v", when, took)
			}
		}
		unsent("before a connection", t.Context())
		c, _ := r.establish()
		r.view(c)
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		unsent("after the context", dead)
		go func() { _, _ = c.Write(frame(1, 9, "/raw")) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		unsent("in the queue", ctx)
	})
}

// A request with Keep is given up while it is written, and the write then fails.
// The request turns out not to have been sent. Asking meanwhile is no race.
func TestKeptRequestWhoseWriteFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		_, p := r.establish()
		x := asked(wire.OpDelete, "/a")
		x.Keep = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.link.Do(ctx, x); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do = %v", err)
		}
		wantFate(t, "being written", x, true, false)
		_, _ = p.conn.Read(make([]byte, 3))
		go func() { _ = p.conn.Close() }()
		for range 1000 {
			_ = x.Sent() // as a caller may at any time
			runtime.Gosched()
		}
		x.AwaitAnswer(t.Context())
		synctest.Wait()
		wantFate(t, "the write has failed", x, false, false)
	})
}
