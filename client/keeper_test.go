package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// keeper is bubble with a ClickHouse Keeper.
func keeper(t *testing.T, f func(*rig), opts ...zktest.Option) {
	t.Helper()
	bubble(t, f, append([]zktest.Option{zktest.WithProfile(zktest.ClickHouseKeeper)}, opts...)...)
}

// connects are the sessions that clients asked for, 0 for a new one.
func (r *rig) connects() (asked *[]int64) {
	asked = &[]int64{}
	r.srv.Delay(zktest.Match{Op: zktest.OpConnect, Times: zktest.Always, Where: func(q zktest.Request) bool {
		*asked = append(*asked, q.Session)
		return false
	}}, 0)
	return asked
}

// held makes a protected node in a new session and holds it.
func (r *rig) held(c *client.Client) (s *client.Session, path string, lost func() time.Time) {
	r.Helper()
	s = r.session(c)
	e, err := inner.CreateAndList(r.ctx, s, newNode{Dir: "/locks", Prefix: "lock-"})
	r.check(err)
	_, err = inner.Hold(r.ctx, s, func(error) {}, e.Path)
	r.check(err)
	at := make(chan time.Time, 1)
	context.AfterFunc(s.Context(), func() { at <- time.Now() })
	return s, e.Path, func() time.Time {
		select {
		case t := <-at:
			return t
		case <-r.ctx.Done():
			r.Fatal("the session never ended")
			return time.Time{}
		}
	}
}

// A lost connection ends the session at once and says why. The client does not
// come back with the old id.
func TestKeeperDisconnectEndsTheSession(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*rig){
		"the connection breaks": func(r *rig) { r.srv.CutAll() },
		"the server stops":      func(r *rig) { r.srv.Stop(); r.srv.Resume() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keeper(t, func(r *rig) {
				asked := r.connects()
				c := r.connect("a")
				s, _, lost := r.held(c)
				before := time.Now()
				cut(r)
				if took := lost().Sub(before); took > 10*time.Millisecond {
					t.Errorf("told after %v", took)
				}
				err := context.Cause(s.Context())
				wantErr(t, err, client.ErrSessionLost)
				wantErrText(t, err, "the connection was lost, and ClickHouse Keeper does not restore sessions", "lease")
				if next := r.session(c); next.ID() == s.ID() || next.ID() == 0 {
					t.Errorf("next session %d", next.ID())
				}
				time.Sleep(2 * sessionTimeout)
				if !slices.Equal(*asked, []int64{0, 0}) {
					t.Errorf("asked for sessions %d", *asked)
				}
				if n := len(r.srv.Sessions()); n != 1 {
					t.Errorf("%d sessions on the server", n)
				}
			})
		})
	}
}

// A session that was never recognised may not be held.
func TestHoldWaitsForTheProduct(t *testing.T) {
	t.Parallel()
	keeper(t, func(r *rig) {
		r.srv.Fail(zktest.Match{Op: zktest.OpGetData, Path: "/keeper/api_version", Times: zktest.Always}, zktest.CodeThrottledOp)
		r.create("/locks", "")
		c := r.connect("a")
		s := r.session(c)
		if p := c.Product(); p != "" {
			t.Errorf("product %q", p)
		}
		e, err := inner.CreateAndList(r.ctx, s, newNode{Dir: "/locks", Prefix: "lock-"})
		r.check(err)
		_, err = inner.Hold(r.within(100*time.Millisecond), s, func(error) {}, e.Path)
		wantErr(t, err, context.DeadlineExceeded)
		r.check(s.Err())
	})
}

// A connection is lost before the server said what it is, so the next connection
// asks again. A session that comes back changed is over; the other one is closed.
func TestKeeperBeforeItIsKnown(t *testing.T) {
	t.Parallel()
	keeper(t, func(r *rig) {
		r.srv.DropBefore(zktest.Match{Op: zktest.OpGetData, Path: "/keeper/api_version"})
		c := r.connect("a")
		s := r.session(c)
		r.await("end of the session", s.Context().Done())
		wantErr(t, context.Cause(s.Context()), client.ErrSessionLost)
		wantErrText(t, context.Cause(s.Context()), "this is another session", "lease")
		next := r.session(c)
		// The client shows the first session to the server once more, which makes another one
		// for a moment. What is left behind stands for longer than this.
		time.Sleep(sessionTimeout / 2)
		if p := c.Product(); p != "ClickHouse Keeper" {
			t.Errorf("product %q", p)
		}
		for _, on := range r.srv.Sessions() {
			if on.ID != s.ID() && on.ID != next.ID() {
				t.Errorf("session %d was left behind", on.ID)
			}
		}
		time.Sleep(2 * sessionTimeout)
		if n := len(r.srv.Sessions()); n != 1 {
			t.Errorf("%d sessions on the server", n)
		}
	})
}

// On Apache ZooKeeper a lost answer costs nothing: the session goes on, and the
// next connection asks again. So does a chroot or a namespace.
func TestProductOfZooKeeper(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/app", "")
		r.srv.DropBefore(zktest.Match{Op: zktest.OpGetData, Path: "/keeper/api_version"})
		r.srv.Fail(zktest.Match{Op: zktest.OpGetData, Path: "/keeper/api_version"}, zktest.CodeThrottledOp)
		c, err := r.open("zk:2181/app", "a", client.WithNamespace("ns"))
		r.check(err)
		s := r.session(c)
		for c.Product() == "" && r.ctx.Err() == nil {
			time.Sleep(time.Second)
		}
		if p := c.Product(); p != "Apache ZooKeeper" {
			t.Errorf("product %q", p)
		}
		r.check(s.Err())
	})
}

// A client that may not read the node is careful: the node is there.
func TestUnreadableProduct(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.srv.Fail(zktest.Match{Op: zktest.OpGetData, Path: "/keeper/api_version"}, zktest.CodeNoAuth)
		c := r.connect("a")
		s, _, lost := r.held(c)
		r.srv.CutAll()
		lost()
		wantErrText(t, context.Cause(s.Context()), "does not restore sessions", "lease")
	})
}

// The nodes that a lost session leaves on Keeper are deleted in the next one. A
// held node is deleted at the deadline that its holder was promised, and not
// before.
func TestKeeperNodesOfALostSession(t *testing.T) {
	t.Parallel()
	keeper(t, func(r *rig) {
		c := r.connect("a", client.WithSessionTimeout(40*time.Second))
		_, path, lost := r.held(c)
		s := r.session(c)
		waiter, err := inner.CreateAndList(r.ctx, s, newNode{Dir: "/locks", Prefix: "lock-"})
		r.check(err)
		h, err := inner.Hold(r.ctx, s, func(error) {}, path)
		r.check(err)
		deadline := h.Deadline()
		r.srv.CutAll()
		lost()
		r.check(inner.DeleteInBackground(s, waiter.Path, nil))
		time.Sleep(5 * time.Second)
		if _, ok := r.srv.Node(waiter.Path); ok {
			t.Error("the waiter's node is in the way")
		}
		time.Sleep(time.Until(deadline.Add(-time.Millisecond)))
		if _, ok := r.srv.Node(path); !ok {
			t.Error("the held node was deleted before its deadline")
		}
		time.Sleep(2 * time.Second)
		if _, ok := r.srv.Node(path); ok {
			t.Error("the held node outlives its deadline")
		}
	})
}

// A name that another client may use again is left to the server.
func TestKeeperKeepsNodesOfCommonNames(t *testing.T) {
	t.Parallel()
	keeper(t, func(r *rig) {
		c := r.connect("a", client.WithSessionTimeout(40*time.Second))
		s, _, lost := r.held(c)
		_, err := s.Create(r.ctx, "/leader", nil, client.Ephemeral())
		r.check(err)
		r.srv.CutAll()
		lost()
		r.check(inner.DeleteInBackground(s, "/leader", nil))
		time.Sleep(5 * time.Second)
		if _, ok := r.srv.Node("/leader"); !ok {
			t.Error("another client's node may be deleted")
		}
	})
}

// A heartbeat that is not answered does not cost the connection on Keeper: it
// would cost the session.
func TestKeeperKeepsASlowConnection(t *testing.T) {
	t.Parallel()
	keeper(t, func(r *rig) {
		c := r.connect("a", client.WithSessionTimeout(30*time.Second))
		s, _, _ := r.held(c)
		r.srv.DelayReply(zktest.Match{Op: zktest.OpMulti}, 12*time.Second)
		time.Sleep(18 * time.Second)
		r.check(s.Err())
	})
}

// A handshake that is answered without a leader is a failed attempt. The session
// lives on, and the next server is tried.
func TestServerWithoutALeader(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		e := zktest.NewEnsemble(r.T, 3, zktest.WithQuirks(zktest.QuirkAnswerLeaderless), zktest.WithTick(time.Second))
		for i := 1; i <= 3; i++ {
			e.Isolate(i)
		}
		time.Sleep(20 * time.Second)
		_, err := client.Connect(r.ctx, "zk1:2181,zk2:2181", client.WithDialer(e.Client("x").DialContext), quiet())
		wantErr(t, err, client.ErrNotConnected)
		wantErrText(t, err, "has no leader", "session lost")
		e.Heal()
		c, err := client.Connect(r.ctx, "zk1:2181,zk2:2181", client.WithDialer(e.Client("x").DialContext), quiet(),
			client.WithConnectTimeout(time.Minute))
		r.check(err)
		r.check(c.Close())
	})
}

// Close says that a session which it could not end stays for a while.
func TestCloseOnKeeperWithoutAConnection(t *testing.T) {
	t.Parallel()
	keeper(t, func(r *rig) {
		c := r.connect("a")
		r.held(c)
		r.srv.DropBefore(zktest.Match{Op: zktest.OpCloseSession})
		err := c.Close()
		if err == nil || !strings.Contains(err.Error(), "was not ended on the server") || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v", err)
		}
	})
}

// Another list of servers does not cost a lock on Keeper, where moving would.
func TestKeeperHolderStays(t *testing.T) {
	t.Parallel()
	keeper(t, func(r *rig) {
		c, idle := r.connect("a"), r.connect("b")
		s, _, _ := r.held(c)
		free := r.session(idle)
		r.check(c.SetServers("elsewhere:2181"))
		r.check(idle.SetServers("elsewhere:2181"))
		time.Sleep(2 * sessionTimeout)
		r.check(s.Err())
		wantErr(t, free.Err(), client.ErrSessionLost) // it moved
	})
}
