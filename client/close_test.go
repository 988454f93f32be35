package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// Close ends the session on the server and everything here, at once.
func TestCloseIdle(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		_, err := c.Create(r.Ctx, "/e", nil, client.Ephemeral())
		r.Check(err)
		_, _, w, err := c.GetW(r.Ctx, "/")
		r.Check(err)
		start := time.Now()
		r.Check(c.CloseContext(r.Ctx))
		if took := time.Since(start); took > parting+10*time.Millisecond {
			r.Errorf("took %v", took)
		}
		wantQuiet(r.T)
		r.gone()
		r.fired(w, zk.EventNotWatching, client.ErrClosed)
		start = time.Now()
		r.Check(c.CloseContext(r.Ctx))
		ended, cancel := context.WithCancel(r.Ctx)
		cancel()
		_ = c.CloseContext(ended) // either result
		if took := time.Since(start); took != 0 {
			r.Errorf("again: took %v", took)
		}
	})
}

// gone checks that no session, connection, ephemeral node or watch is left.
func (r *rig) gone() {
	r.Helper()
	if s := r.Srv.Sessions(); len(s) != 0 {
		r.Errorf("sessions left: %+v", s)
	}
	if n := r.Srv.ConnCount(); n != 0 {
		r.Errorf("%d connections left", n)
	}
	r.WantNoWatch()
	if n := r.Srv.ExpiredCount(); n != 0 {
		r.Errorf("%d sessions were left to expire", n)
	}
}

// Operations in flight are answered or say that the client was closed, and
// what was answered with success is there.
func TestCloseInFlight(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/q", "")
		for round := range 30 {
			c := r.Connect(fmt.Sprint("c", round))
			var wg sync.WaitGroup
			for w := range 8 {
				wg.Go(func() {
					for i := 0; ; i++ {
						path := fmt.Sprintf("/q/%d-%d-%d", round, w, i)
						_, err := c.Create(r.Ctx, path, nil)
						_, there := r.Srv.Node(path)
						switch {
						case err == nil && !there, neverSent(err) && there:
							r.Errorf("%s: %v, there: %v", path, err, there)
						case errors.Is(err, client.ErrClosed):
							return
						case err != nil:
							r.Errorf("%s: %v", path, err)
							return
						}
					}
				})
			}
			wg.Go(func() {
				_, _, w, err := c.GetW(r.Ctx, "/q")
				if err == nil {
					<-w.Done()
				}
			})
			time.Sleep(time.Duration(round) * 113 * time.Microsecond)
			r.Check(c.CloseContext(r.Ctx))
			wg.Wait()
			wantQuiet(r.T)
		}
		r.gone()
	})
}

// Close keeps to its context whatever the servers do, and what remains ends
// by itself.
func TestCloseUnreachable(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(r *rig){
		"frozen":    func(r *rig) { r.Srv.Freeze() },
		"partition": func(r *rig) { r.Srv.Partition() },
		"refused":   func(r *rig) { r.Srv.Refuse(); r.Srv.CutAll() },
		"hanging":   func(r *rig) { r.Srv.HangHandshake(); r.Srv.CutAll() },
		"close is not answered": func(r *rig) {
			r.Srv.Ignore(zktest.Match{Op: zktest.OpCloseSession, Times: zktest.Always})
		},
	} {
		for _, before := range []time.Duration{0, time.Second, 5 * time.Second, time.Minute} {
			t.Run(fmt.Sprint(name, " for ", before), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					c := r.Connect("a")
					trouble(r)
					var wg sync.WaitGroup
					for range 3 {
						wg.Go(func() {
							_, err := c.Create(r.Ctx, "/x", nil, client.Protected())
							if err == nil && name != "close is not answered" {
								r.Error("created nothing nowhere")
							}
						})
					}
					time.Sleep(before)
					start := time.Now()
					err := c.CloseContext(r.Within(1500 * time.Millisecond))
					if took := time.Since(start); took > 1500*time.Millisecond {
						r.Errorf("took %v", took)
					}
					if before < time.Minute {
						testrig.WantErr(t, err, context.DeadlineExceeded)
					}
					wg.Wait()
					if took := time.Since(start); took > 1500*time.Millisecond {
						r.Errorf("an operation came back %v after Close began", took)
					}
					time.Sleep(2 * time.Second)
					wantQuiet(r.T)
				})
			})
		}
	}
}

// Close takes no context and is bounded all the same.
func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithSessionTimeout(20*time.Second))
		r.Srv.Freeze()
		start := time.Now()
		testrig.WantErr(t, c.Close(), context.DeadlineExceeded)
		if took := time.Since(start); took != 5*time.Second {
			r.Errorf("took %v", took)
		}
		time.Sleep(2 * time.Second)
		wantQuiet(r.T)
	})
}

// Without a limit Close waits for a server, and no longer than the session
// may live.
func TestCloseWaitsForAServer(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		time.Sleep(time.Minute)
		r.Srv.Refuse()
		r.Srv.CutAll()
		time.AfterFunc(3*time.Second, r.Srv.Accept)
		r.Check(c.CloseContext(r.Ctx))
		r.gone()
		wantQuiet(r.T)

		c = r.Connect("b")
		r.Srv.Freeze()
		start := time.Now()
		_ = c.CloseContext(r.Ctx) // the session expired or was not ended: both are right
		if took := time.Since(start); took > testrig.SessionTimeout+2*time.Second {
			r.Errorf("took %v", took)
		}
		wantQuiet(r.T)
	})
}

// Each of several callers keeps to its own context and all get one result. The
// test runs outside of a bubble, whose clock stops while a goroutine waits for a
// mutex.
func TestCloseConcurrently(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	connect := func() *client.Client {
		c, err := client.Connect(t.Context(), "zk", client.WithDialer(srv.DialContext), testrig.Quiet())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := connect()
	srv.Freeze()
	var wg sync.WaitGroup
	first := make(chan struct{})
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.AfterFunc(50*time.Millisecond, func() { close(first) })
		testrig.WantErr(t, c.CloseContext(ctx), context.DeadlineExceeded)
	})
	<-first
	for range 5 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			start := time.Now()
			testrig.WantErr(t, c.CloseContext(ctx), context.DeadlineExceeded)
			if took := time.Since(start); took > 500*time.Millisecond {
				t.Errorf("took %v, the limit was 50ms", took)
			}
		})
	}
	wg.Wait()
	srv.Thaw()

	c = connect()
	for range 10 {
		wg.Go(func() {
			if err := c.CloseContext(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Close between the making of a session and the client's hearing of it.
func TestCloseBeforeNewSessionIsKnown(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("c")
		r.Srv.ExpireSession(r.Session(c).ID())
		for len(r.Srv.Sessions()) == 0 {
			time.Sleep(10 * time.Microsecond)
		}
		if state := c.State(); state == client.Connected {
			r.Fatal("known")
		}
		r.Check(c.CloseContext(r.Ctx))
		wantQuiet(r.T)
		if s := r.Srv.Sessions(); len(s) != 0 {
			r.Errorf("sessions left: %+v", s)
		}
	})
}

// Close during the loss of a session and the making of the next.
func TestCloseBetweenSessions(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for i := range 60 {
			c := r.Connect(fmt.Sprint("c", i))
			r.Srv.ExpireSession(r.Session(c).ID())
			time.Sleep(time.Duration(i) * 61 * time.Microsecond)
			r.Check(c.CloseContext(r.Ctx))
			wantQuiet(r.T)
			if s := r.Srv.Sessions(); len(s) != 0 {
				r.Fatalf("%d: sessions left: %+v", i, s)
			}
		}
	})
}
