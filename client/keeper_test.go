package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
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
	r.Srv.Delay(zktest.Match{Op: zktest.OpConnect, Times: zktest.Always, Where: func(q zktest.Request) bool {
		*asked = append(*asked, q.Session)
		return false
	}}, 0)
	return asked
}

// held makes a protected node in a new session and holds it.
func (r *rig) held(c *client.Client) (s *client.Session, path string, lost func() time.Time) {
	r.Helper()
	s = r.Session(c)
	e, err := inner.CreateAndList(r.Ctx, s, newNode{Dir: "/locks", Prefix: "lock-"})
	r.Check(err)
	_, err = inner.Hold(r.Ctx, s, func(error) {}, e.Path)
	r.Check(err)
	at := make(chan time.Time, 1)
	context.AfterFunc(s.Context(), func() { at <- time.Now() })
	return s, e.Path, func() time.Time {
		select {
		case t := <-at:
			return t
		case <-r.Ctx.Done():
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
		"the connection breaks": func(r *rig) { r.Srv.CutAll() },
		"the server stops":      func(r *rig) { r.Srv.Stop(); r.Srv.Resume() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keeper(t, func(r *rig) {
				asked := r.connects()
				c := r.Connect("a")
				s, _, lost := r.held(c)
				before := time.Now()
				cut(r)
				if took := lost().Sub(before); took > 10*time.Millisecond {
					t.Errorf("told after %v", took)
				}
				err := context.Cause(s.Context())
				testrig.WantErr(t, err, client.ErrSessionLost)
				wantErrText(t, err, "the connection was lost, and ClickHouse Keeper does not restore sessions", "lease")
				if next := r.Session(c); next.ID() == s.ID() || next.ID() == 0 {
					t.Errorf("next session %d", next.ID())
				}
				time.Sleep(2 * testrig.SessionTimeout)
				if !slices.Equal(*asked, []int64{0, 0}) {
					t.Errorf("asked for sessions %d", *asked)
				}
				if n := len(r.Srv.Sessions()); n != 1 {
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
		r.Srv.Fail(zktest.Match{Op: zktest.OpGetData, Path: "/keeper/api_version", Times: zktest.Always}, zktest.CodeThrottledOp)
		r.create("/locks", "")
		c := r.Connect("a")
		s := r.Session(c)
		if p := c.Product(); p != "" {
			t.Errorf("product %q", p)
		}
		e, err := inner.CreateAndList(r.Ctx, s, newNode{Dir: "/locks", Prefix: "lock-"})
		r.Check(err)
		_, err = inner.Hold(r.Within(100*time.Millisecond), s, func(error) {}, e.Path)
		testrig.WantErr(t, err, context.DeadlineExceeded)
		r.Check(s.Err())
	})
}

// A connection is lost before the server said what it is, so the next connection
// asks again. A session that comes back changed is over; the other one is closed.
func TestKeeperBeforeItIsKnown(t *testing.T) {
	t.Parallel()
	keeper(t, func(r *rig) {
		r.Srv.DropBefore(zktest.Match{Op: zktest.OpGetData, Path: "/keeper/api_version"})
		c := r.Connect("a")
		s := r.Session(c)
		r.await("end of the session", s.Context().Done())
		testrig.WantErr(t, context.Cause(s.Context()), client.ErrSessionLost)
		wantErrText(t, context.Cause(s.Context()), "this is another session", "lease")
		next := r.Session(c)
		// The client shows the first session to the server once more, which makes another one
		// for a moment. What is left behind stands for longer than this.
		time.Sleep(testrig.SessionTimeout / 2)
		if p := c.Product(); p != "ClickHouse Keeper" {
			t.Errorf("product %q", p)
		}
		for _, on := range r.Srv.Sessions() {
			if on.ID != s.ID() && on.ID != next.ID() {
				t.Errorf("session %d was left behind", on.ID)
			}
		}
		time.Sleep(2 * testrig.SessionTimeout)
		if n := len(r.Srv.Sessions()); n != 1 {
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
		r.Srv.DropBefore(zktest.Match{Op: zktest.OpGetData, Path: "/keeper/api_version"})
		r.Srv.Fail(zktest.Match{Op: zktest.OpGetData, Path: "/keeper/api_version"}, zktest.CodeThrottledOp)
		c, err := r.Open("zk:2181/app", "a", client.WithNamespace("ns"))
		r.Check(err)
		s := r.Session(c)
		for c.Product() == "" && r.Ctx.Err() == nil {
			time.Sleep(time.Second)
		}
		if p := c.Product(); p != "Apache ZooKeeper" {
			t.Errorf("product %q", p)
		}
		r.Check(s.Err())
	})
}

// A client that may not read the node is careful: the node is there.
func TestUnreadableProduct(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Srv.Fail(zktest.Match{Op: zktest.OpGetData, Path: "/keeper/api_version"}, zktest.CodeNoAuth)
		c := r.Connect("a")
		s, _, lost := r.held(c)
		r.Srv.CutAll()
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
		c := r.Connect("a", client.WithSessionTimeout(40*time.Second))
		_, path, lost := r.held(c)
		s := r.Session(c)
		waiter, err := inner.CreateAndList(r.Ctx, s, newNode{Dir: "/locks", Prefix: "lock-"})
		r.Check(err)
		h, err := inner.Hold(r.Ctx, s, func(error) {}, path)
		r.Check(err)
		deadline := h.Deadline()
		r.Srv.CutAll()
		lost()
		r.Check(inner.DeleteInBackground(s, waiter.Path, nil))
		time.Sleep(5 * time.Second)
		if _, ok := r.Srv.Node(waiter.Path); ok {
			t.Error("the waiter's node is in the way")
		}
		time.Sleep(time.Until(deadline.Add(-time.Millisecond)))
		if _, ok := r.Srv.Node(path); !ok {
			t.Error("the held node was deleted before its deadline")
		}
		time.Sleep(2 * time.Second)
		if _, ok := r.Srv.Node(path); ok {
			t.Error("the held node outlives its deadline")
		}
	})
}

// A name that another client may use again is left to the server.
func TestKeeperKeepsNodesOfCommonNames(t *testing.T) {
	t.Parallel()
	keeper(t, func(r *rig) {
		c := r.Connect("a", client.WithSessionTimeout(40*time.Second))
		s, _, lost := r.held(c)
		_, err := s.Create(r.Ctx, "/leader", nil, client.Ephemeral())
		r.Check(err)
		r.Srv.CutAll()
		lost()
		r.Check(inner.DeleteInBackground(s, "/leader", nil))
		time.Sleep(5 * time.Second)
		if _, ok := r.Srv.Node("/leader"); !ok {
			t.Error("another client's node may be deleted")
		}
	})
}

// A heartbeat that is not answered does not cost the connection on Keeper: it
// would cost the session.
func TestKeeperKeepsASlowConnection(t *testing.T) {
	t.Parallel()
	keeper(t, func(r *rig) {
		c := r.Connect("a", client.WithSessionTimeout(30*time.Second))
		s, _, _ := r.held(c)
		r.Srv.DelayReply(zktest.Match{Op: zktest.OpMulti}, 12*time.Second)
		time.Sleep(18 * time.Second)
		r.Check(s.Err())
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
		_, err := client.Connect(r.Ctx, "zk1:2181,zk2:2181", client.WithDialer(e.Client("x").DialContext), testrig.Quiet())
		testrig.WantErr(t, err, client.ErrNotConnected)
		wantErrText(t, err, "has no leader", "session lost")
		e.Heal()
		c, err := client.Connect(r.Ctx, "zk1:2181,zk2:2181", client.WithDialer(e.Client("x").DialContext), testrig.Quiet(),
			client.WithConnectTimeout(time.Minute))
		r.Check(err)
		r.Check(c.Close())
	})
}

// Close says that a session which it could not end stays for a while.
func TestCloseOnKeeperWithoutAConnection(t *testing.T) {
	t.Parallel()
	keeper(t, func(r *rig) {
		c := r.Connect("a")
		r.held(c)
		r.Srv.DropBefore(zktest.Match{Op: zktest.OpCloseSession})
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
		c, idle := r.Connect("a"), r.Connect("b")
		s, _, _ := r.held(c)
		free := r.Session(idle)
		r.Check(c.SetServers("elsewhere:2181"))
		r.Check(idle.SetServers("elsewhere:2181"))
		time.Sleep(2 * testrig.SessionTimeout)
		r.Check(s.Err())
		testrig.WantErr(t, free.Err(), client.ErrSessionLost) // it moved
	})
}
