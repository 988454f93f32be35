package recipes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// A wait that times out names the contender ahead, from what the waiter has read
// before. After its end only the delete of its node is sent.
func TestWaitSaysWhoIsAhead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		data := recipes.WithNodeData([]byte("10.0.0.7 pid=12 client=billing"))
		h := r.held(r.mutex(r.Connect("a"), data))
		c := r.Connect("b")
		time.Sleep(time.Second) // its node is watched by then
		for _, holder := range []bool{true, false} {
			r.Srv.ResetCounts()
			ctx, cancel := context.WithTimeout(r.Ctx, time.Minute)
			m := r.mutex(c, data)
			_, err := m.Acquire(ctx)
			cancel()
			if reads := r.Srv.Count(zktest.OpGetData); reads > 2 { // the reads with watches: of the node ahead and of its own
				t.Errorf("%d reads", reads)
			}
			var wait *recipes.WaitError
			if !errors.As(err, &wait) {
				t.Fatalf("error %v", err)
			}
			want := recipes.Owner{Host: "10.0.0.7", PID: 12, Client: "billing"}
			if a := wait.Ahead; a.Owner != want || a.Holder != holder || a.QueuedSince.IsZero() || a.Session == 0 || holder && a.Path != h.Path() {
				t.Errorf("ahead %+v", a)
			}
			testrig.WantErr(t, err, context.DeadlineExceeded)
			if text := err.Error(); !strings.Contains(text, "waiting behind ") || strings.Contains(text, "holder ") != holder ||
				!strings.Contains(text, "10.0.0.7 pid=12 client=billing") || wait.SameClient == holder {
				t.Errorf("text %q, same client %v", text, wait.SameClient)
			}
			if holder {
				acquire(r.Ctx, m) // stands between the holder and the next
				time.Sleep(time.Second)
			}
		}
	})
}

// A wait ends before the read of the contender ahead was answered. Then the error does not
// say that an ACL is in the way.
func TestWaitBehindANodeThatWasNotRead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.Connect("a")))
		b := r.Connect("b")
		r.Srv.StallReply(zktest.Match{Op: zktest.OpGetData, PathPrefix: dir + "/", Times: zktest.Always})
		_, err := r.mutex(b).Acquire(r.Within(300 * time.Millisecond))
		var wait *recipes.WaitError
		if !errors.As(err, &wait) {
			t.Fatalf("error %v", err)
		}
		if a := wait.Ahead; a.Unreadable || a.Path != h.Path() || a.Session != 0 {
			t.Errorf("ahead %+v", a)
		}
		if text := err.Error(); strings.Contains(text, "may not read") || strings.Contains(text, "0x0") {
			t.Error(text)
		}
	})
}

// The hint to pass the context on is not given where that would not help.
func TestWaitHint(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		const hint = "pass its context"
		h := r.held(r.mutex(c))
		for want, opts := range map[bool][]recipes.LockOption{true: nil, false: {recipes.WithoutReentry()}} {
			_, err := r.mutex(c, opts...).Acquire(r.Within(time.Second))
			if text := errText(err); !strings.Contains(text, "of this same client") || strings.Contains(text, hint) != want {
				t.Errorf("%q", text)
			}
		}
		r.Check(h.Release(r.Ctx))
		s := r.semaphore(c, 1)
		l, err := s.Acquire(r.Ctx, 1)
		r.Check(err)
		go func() { _, _ = s.Acquire(r.Ctx, 1) }()
		time.Sleep(time.Second)
		_, err = s.Acquire(r.Within(time.Second), 1)
		var wait *recipes.WaitError
		if !errors.As(err, &wait) || wait.Ahead.Holder || wait.Ahead.Mode != recipes.ModeLease || strings.Contains(err.Error(), hint) {
			t.Errorf("%v", err)
		}
		r.Check(l.Release(r.Ctx))
		closing := r.Connect("b")
		waits := acquire(r.Ctx, r.mutex(closing))
		r.Check((<-waits).err)
		waits = acquire(r.Ctx, r.mutex(closing))
		time.Sleep(time.Second)
		r.Check(closing.Close())
		if res := <-waits; !errors.Is(res.err, client.ErrClosed) {
			t.Errorf("%v", res.err)
		}
	})
}

// A wait for permits that times out says how many are free, and names a holder.
// If the caller's own client has a lease, that is the one. No request is sent for
// that.
func TestWaitSaysWhoHoldsPermits(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		other := r.lease(r.semaphore(r.Connect("a"), 4), 1)
		c := r.Connect("b")
		s := r.semaphore(c, 4)
		wait := func(leases int) (wait *recipes.WaitError, text string) {
			time.Sleep(time.Second) // the nodes of the holds are watched by then
			r.Srv.ResetCounts()
			_, err := s.Acquire(r.Within(time.Minute), 4)
			testrig.WantErr(t, err, context.DeadlineExceeded)
			if !errors.As(err, &wait) || !wait.Ahead.Holder || wait.Ahead.Mode != recipes.ModeLease || wait.Ahead.HeldSince.IsZero() || !wait.Ahead.QueuedSince.IsZero() {
				t.Fatalf("%v", err)
			}
			if n := r.Srv.Count(zktest.OpGetData); n > leases+1 { // when its watch was set, each lease was read, and the queue
				t.Errorf("%d reads", n)
			}
			return wait, err.Error()
		}
		said, text := wait(1)
		want := "recipes: acquire /pools/db: waiting behind holder " + other.Path() + ", session 0x"
		if said.Ahead.Path != other.Path() || said.Ahead.Session == 0 || said.SameClient || !strings.HasPrefix(text, want) ||
			!strings.HasSuffix(text, ", lease by Docent: permits free: 3 of 4, asked for: 4: context deadline exceeded") {
			t.Errorf("%+v, %q", said, text)
		}
		own := r.lease(s, 2)
		said, text = wait(3)
		if !strings.HasPrefix(said.Ahead.Path, "/pools/db/leases/") || said.Ahead.Path == other.Path() || !said.SameClient ||
			!strings.HasSuffix(text, ", of this same client (if that lease is the caller's, release it first): permits free: 1 of 4, asked for: 4: context deadline exceeded") {
			t.Errorf("%+v, %q", said, text)
		}
		more := r.lease(r.semaphore(r.Connect("c"), 9), 3)
		if _, text = wait(6); !strings.HasSuffix(text, ": permits free: 0 of 4 (6 are held: their number was lowered, or another client goes by a greater one), asked for: 4: context deadline exceeded") {
			t.Errorf("%q", text)
		}
		r.Check(more.Close())
		r.Check(own.Close())
		r.Check(other.Close())
		r.drained()
	})
}

// The error of an acquire names the contender ahead as the acquire's own client has it.
func TestWaitErrorAcrossNamespaces(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		ns, err := c.Namespace("locks")
		r.Check(err)
		m := r.mutex(c)
		in, err := recipes.NewInterProcessMutex(ns, strings.TrimPrefix(dir, "/locks"))
		r.Check(err)
		for range 4 {
			r.Check(r.held(m).Release(r.Ctx))
		}
		h := r.held(m)
		ctx, cancel := context.WithTimeout(r.Ctx, time.Second)
		defer cancel()
		_, err = in.Acquire(ctx)
		var wait *recipes.WaitError
		if !errors.As(err, &wait) || wait.Ahead.Path != strings.TrimPrefix(h.Path(), "/locks") {
			t.Errorf("%v", err)
		}
		r.Check(h.Release(r.Ctx))
	})
}
