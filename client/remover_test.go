package client_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// A protected create whose caller gave up leaves nothing. Its request is applied
// after the caller left, was applied before, or never is.
func TestAbandonedProtectedCreate(t *testing.T) {
	t.Parallel()
	kinds := map[string][]client.CreateOption{
		"ephemeral":  {client.Ephemeral(), client.Sequential(), client.Protected()},
		"persistent": {client.Protected()},
	}
	faults := map[string]func(r *rig) (undo func()){
		"applied later": func(r *rig) func() { r.Srv.Client("a").Freeze(); return r.Srv.Client("a").Thaw },
		"applied, answer on its way": func(r *rig) func() {
			r.Srv.StallReply(zktest.Match{Op: zktest.OpCreate})
			return r.Srv.Client("a").Heal
		},
		"applied, answer lost, no server reachable": func(r *rig) func() {
			r.Srv.LoseReply(zktest.Match{Op: zktest.OpCreate, Where: func(zktest.Request) bool { return true }})
			r.Srv.OnRequest(func(req zktest.Request) {
				if req.Op == zktest.OpCreate && req.Client == "a" {
					r.Srv.Client("a").Refuse()
				}
			})
			return r.Srv.Client("a").Accept
		},
		"never applied": func(r *rig) func() {
			r.Srv.Ignore(zktest.Match{Op: zktest.OpCreate})
			return func() {}
		},
	}
	for kind, opts := range kinds {
		for name, fault := range faults {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					r.create("/q", "")
					c := r.Connect("a")
					undo := fault(r)
					start := time.Now()
					_, err := c.Create(r.Within(time.Second), "/q/n-", nil, opts...)
					testrig.WantErr(t, err, context.DeadlineExceeded)
					wantOutcome(t, err, client.OutcomeUnknown)
					if took := time.Since(start); took != time.Second {
						r.Errorf("took %v", took)
					}
					time.Sleep(time.Second)
					undo()
					time.Sleep(2 * testrig.SessionTimeout)
					if left := r.named("/q"); len(left) != 0 {
						r.Errorf("left behind: %v", left)
					}
					if kind == "ephemeral" && r.Srv.Count(zktest.OpConnect) == 0 {
						r.Error("no client")
					}
					r.Check(c.CloseContext(r.Ctx))
					wantQuiet(r.T)
				})
			})
		}
	}
}

// What the remover shall delete goes in spite of lost requests, and stays
// gone; what is gone already is no trouble.
func TestDeleteInBackground(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(r *rig){
		"calm":           func(*rig) {},
		"blip":           func(r *rig) { r.Srv.CutAll() },
		"dropped before": func(r *rig) { r.Srv.DropBefore(zktest.Match{Op: zktest.OpDelete, Times: 3}) },
		"reply lost":     func(r *rig) { r.Srv.LoseReply(zktest.Match{Op: zktest.OpDelete}) },
		"throttled":      func(r *rig) { r.Srv.Fail(zktest.Match{Op: zktest.OpDelete, Times: 3}, zktest.CodeThrottledOp) },
		"refused":        func(r *rig) { r.Srv.Fail(zktest.Match{Op: zktest.OpDelete, Times: 3}, zktest.CodeMarshallingError) },
		"outage":         func(r *rig) { r.Srv.Stop(); time.AfterFunc(3*time.Second, r.Srv.Resume) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				s := r.Session(c)
				path, err := s.Create(r.Ctx, "/e", nil, client.Ephemeral())
				r.Check(err)
				trouble(r)
				r.Check(inner.DeleteInBackground(s, path, nil))
				r.Check(inner.DeleteInBackground(s, "/never/was", nil))
				time.Sleep(testrig.SessionTimeout - time.Second)
				if _, there := r.Srv.Node("/e"); there {
					r.Error("still there")
				}
				if s.Err() != nil {
					r.Error("the session was lost: nothing was shown")
				}
				r.Check(c.CloseContext(r.Ctx))
				wantQuiet(r.T)
			})
		})
	}
}

// The remover does not outlive the session of what it removes, and does not
// touch a node of that name in the next.
func TestRemoverEndsWithTheSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		_, err := s.Create(r.Ctx, "/e", nil, client.Ephemeral())
		r.Check(err)
		r.Srv.Stop()
		time.Sleep(time.Second)
		r.Check(inner.DeleteInBackground(s, "/e", nil))
		time.Sleep(2 * testrig.SessionTimeout)
		r.Srv.Resume()
		_, err = c.Create(r.Ctx, "/e", []byte("mine"), client.Ephemeral())
		if err != nil { // the old one is being buried
			time.Sleep(2 * testrig.SessionTimeout)
			_, err = c.Create(r.Ctx, "/e", []byte("mine"), client.Ephemeral())
		}
		r.Check(err)
		time.Sleep(time.Minute)
		if n, there := r.Srv.Node("/e"); !there || string(n.Data) != "mine" {
			r.Errorf("the next session's node: %v, %+v", there, n)
		}
	})
}

// Close ends the remover, whatever it waits for.
func TestRemoverEndsOnClose(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(r *rig){
		"unreachable": func(r *rig) { r.Srv.Refuse(); r.Srv.CutAll() },
		"frozen":      func(r *rig) { r.Srv.Freeze() },
		"throttled": func(r *rig) {
			r.Srv.Fail(zktest.Match{Op: zktest.OpDelete, Times: zktest.Always}, zktest.CodeThrottledOp)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				s := r.Session(c)
				_, err := s.Create(r.Ctx, "/e", nil, client.Ephemeral())
				r.Check(err)
				trouble(r)
				r.Check(inner.DeleteInBackground(s, "/e", nil))
				time.Sleep(time.Second)
				err = c.CloseContext(r.Within(time.Second))
				if name != "throttled" && !errors.Is(err, context.DeadlineExceeded) {
					r.Errorf("Close = %v", err)
				}
				time.Sleep(2 * time.Second)
				wantQuiet(r.T)
			})
		})
	}
}

// A transaction is given up, and its answer says later that it was refused. So nothing is to be
// removed, and Gone is called.
func TestRemoverOfARefusedGroup(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.Session(r.Connect("a"))
		_, err := s.Create(r.Ctx, "/q", nil)
		r.Check(err)
		r.Srv.DelayReply(zktest.Match{Op: zktest.OpMulti, Times: 1}, time.Second)
		var gone atomic.Int32
		_, err = inner.CreateGroup(r.Within(500*time.Millisecond), s, []newNode{{Dir: "/q", Prefix: "n-", Gone: func() { gone.Add(1) }}}, client.DeleteOp("/missing", client.AnyVersion))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		if gone.Load() != 0 {
			t.Error("gone before the answer")
		}
		r.Srv.ResetCounts()
		time.Sleep(time.Minute)
		if n := r.Srv.Count(zktest.OpDelete); n != 0 || gone.Load() != 1 {
			t.Errorf("%d deletes, gone %d times", n, gone.Load())
		}
	})
}

// Gone is called once, whatever became of the create: at once if nothing was made, and otherwise
// when the node is deleted, with its session or by the remover. A session is found to be over
// when the next one begins.
func TestGoneOfACreate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		trouble func(r *rig)
		at      time.Duration // when nothing stands
	}{
		"refused":   {func(r *rig) { r.Srv.Fail(zktest.Match{Op: zktest.OpCreate}, zktest.CodeInvalidACL) }, 0},
		"slow":      {func(r *rig) { r.Srv.DelayReply(zktest.Match{Op: zktest.OpCreate}, 2*time.Second) }, 3 * time.Second},
		"cut":       {func(r *rig) { r.Srv.Freeze(); time.AfterFunc(2*time.Second, func() { r.Srv.CutAll(); r.Srv.Thaw() }) }, 4 * time.Second},
		"no server": {func(r *rig) { r.Srv.Freeze(); time.AfterFunc(3*testrig.SessionTimeout, r.Srv.Thaw) }, 4 * testrig.SessionTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				s := r.Session(r.Connect("a"))
				_, err := s.Create(r.Ctx, "/q", nil)
				r.Check(err)
				tt.trouble(r)
				var gone atomic.Int32
				_, err = inner.CreateAndList(r.Within(time.Second), s, newNode{Dir: "/q", Prefix: "n-", Gone: func() { gone.Add(1) }})
				if err == nil {
					t.Fatal("no error")
				}
				time.Sleep(tt.at)
				if n := gone.Load(); n != 1 {
					t.Errorf("gone %d times", n)
				}
			})
		})
	}
}
