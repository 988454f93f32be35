package nodes_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// The nodes are Curator's, in every mode (TestPersistentNode.testBasic,
// TestPersistentEphemeralNode.testDeletesNodeWhenClosed).
func TestPersistentNodeLayout(t *testing.T) {
	t.Parallel()
	const uuid = `_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-`
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for _, tt := range []struct {
			mode      nodes.Mode
			protected bool
			name      string
		}{
			{nodes.Ephemeral, false, "w1"},
			{nodes.Ephemeral, true, uuid + "w1"},
			{nodes.EphemeralSequential, false, `w1\d{10}`},
			{nodes.EphemeralSequential, true, uuid + `w1\d{10}`},
			{nodes.Persistent, false, "w1"},
			{nodes.Persistent, true, uuid + "w1"},
			{nodes.PersistentSequential, true, uuid + `w1\d{10}`},
			{nodes.Container, false, "w1"},
			{nodes.Container, true, uuid + "w1"},
		} {
			var opts []nodes.Option
			if tt.protected {
				opts = append(opts, nodes.WithProtection())
			}
			n := r.node(c, tt.mode, opts...)
			stat := r.wantOurs(c, n, "one")
			made, _ := r.Srv.Node(n.Status().Path)
			if name := strings.TrimPrefix(made.Path, "/workers/"); !regexp.MustCompile("^" + tt.name + "$").MatchString(name) {
				r.Errorf("%v: name %s", tt.mode, name)
			}
			if eph := stat.EphemeralOwner > 0; eph != strings.HasPrefix(tt.mode.String(), "ephemeral") || made.Container != (tt.mode == nodes.Container) {
				r.Errorf("%v: %+v", tt.mode, made)
			}
			if parent, _ := r.Srv.Node("/workers"); !parent.Container {
				r.Error("the parent is no container")
			}
			if r.Srv.WatchCount() != 1 {
				r.Errorf("%v: %d watches", tt.mode, r.Srv.WatchCount())
			}
			first := made.Path
			// An operator deletes it: it is made again, with its number (PersistentNode.createNode).
			r.Check(r.Srv.Delete(first))
			time.Sleep(5 * time.Second)
			r.wantOurs(c, n, "one")
			again := n.Status().Path
			if !tt.protected && again != first || tt.protected && again == first || strings.HasSuffix(tt.name, "}") && again[len(again)-10:] != first[len(first)-10:] {
				r.Errorf("%v: made again as %s, was %s", tt.mode, again, first)
			}
			r.closed(n)
		}
	})
}

// The same session goes on after the connection was cut: nothing is written, and the
// status stays (Curator writes the data on every RECONNECTED).
func TestPersistentNodeReconnects(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n := r.node(c, nodes.Ephemeral)
		before := r.wantOurs(c, n, "one")
		time.Sleep(time.Second)
		zxid := r.Srv.Zxid()
		for range 3 {
			r.Srv.CutAll()
			time.Sleep(3 * time.Second)
		}
		r.Srv.Stop()
		time.Sleep(time.Second)
		r.Srv.Resume()
		time.Sleep(5 * time.Second)
		if after := r.wantOurs(c, n, "one"); after != before {
			r.Errorf("stat %+v, was %+v", after, before)
		}
		if now := r.Srv.Zxid(); now != zxid {
			r.Errorf("%d writes", now-zxid)
		}
		r.closed(n)
	})
}

// The session is lost, with the server's knowledge and without. Each time the node
// stands again (TestPersistentEphemeralNode.testRecreatesNodeWhenSessionReconnects,
// ...MultipleTimes).
func TestPersistentNodeSessionLost(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]nodes.Option{nil, {nodes.WithProtection()}} {
		for _, mode := range []nodes.Mode{nodes.Ephemeral, nodes.EphemeralSequential, nodes.Persistent, nodes.Container} {
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				n := r.node(c, mode, opts...)
				for range 5 {
					r.Srv.ExpireSession(r.SessionID(c))
					time.Sleep(5 * time.Second)
					r.wantOurs(c, n, "one")
				}
				r.Srv.Client("a").Partition()
				time.Sleep(2 * testrig.SessionTimeout)
				if mode == nodes.Ephemeral && n.Status().State != nodes.Absent {
					r.Errorf("%+v although the session is lost", n.Status())
				}
				r.Srv.Client("a").Heal()
				time.Sleep(5 * time.Second)
				r.wantOurs(c, n, "one")
				r.closed(n)
			})
		}
	}
}

// With StopWhenRemoved a node that an operator deletes stays deleted (codec-dubbo 86);
// one that is deleted with its session does not.
func TestStopWhenRemoved(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for _, mode := range []nodes.Mode{nodes.Ephemeral, nodes.Persistent} {
			n := r.node(c, mode, nodes.StopWhenRemoved())
			r.Srv.ExpireSession(r.SessionID(c))
			time.Sleep(5 * time.Second)
			r.wantOurs(c, n, "one")
			r.Check(r.Srv.Delete(nodePath))
			time.Sleep(5 * time.Second)
			if _, there := r.Srv.Node(nodePath); there || n.Status().State != nodes.Removed {
				r.Errorf("%v: %v, %+v", mode, there, n.Status())
			}
			testrig.WantErr(t, n.Wait(r.Ctx), nodes.ErrRemoved)
			testrig.WantErr(t, n.Set(r.Ctx, nil), nodes.ErrRemoved)
			var states []nodes.State
			for s := range n.Changes(r.Ctx) {
				states = append(states, s.State)
			}
			if len(states) != 1 || states[0] != nodes.Removed {
				r.Errorf("changes %v", states)
			}
			r.closed(n)
		}
	})
}

// The servers delete the node with its session, and the event may come before the
// client knows of the end. That is no removal by another client.
func TestDeletedWithSessionIsNotRemoved(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n := r.node(c, nodes.Ephemeral, nodes.StopWhenRemoved())
		id := r.SessionID(c)
		rule := r.Srv.BeforeApply(zktest.Match{Op: zktest.OpSync, Client: "a"}, func(context.Context, zktest.Request) { r.Srv.ExpireSession(id) })
		r.Check(r.Srv.Delete(nodePath)) // as the end of the session does
		time.Sleep(5 * time.Second)
		r.wantOurs(c, n, "one")
		if rule.Fired() != 1 {
			r.Error("nothing was tested")
		}
		r.closed(n)
	})
}

// An operator's script deletes the node in a loop: it is made again at a bounded pace.
func TestFightsAtABoundedPace(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		n := r.node(r.Connect("a"), nodes.Ephemeral)
		r.Srv.ResetCounts()
		for range 10000 {
			_ = r.Srv.Delete(nodePath)
			time.Sleep(10 * time.Millisecond)
		}
		if creates := r.Srv.Count(zktest.OpCreate); creates > 300 {
			r.Errorf("%d creates in 100 s", creates)
		}
		time.Sleep(5 * time.Second)
		r.closed(n)
	})
}

// Set works at any time, also before the first create
// (TestPersistentNode.testQuickSetData, CURATOR-485) and when its answer is lost
// (CURATOR-154, TestPersistentEphemeralNode.testSettingData).
func TestSet(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n, err := nodes.NewPersistentNode(c, nodes.Ephemeral, nodePath, []byte("one"))
		r.Check(err)
		r.Check(n.Set(r.Ctx, []byte("zero")))
		r.Check(n.Start(r.Ctx))
		r.Check(n.Set(r.Within(time.Second), []byte("two")))
		r.wantOurs(c, n, "two")
		for i, fault := range []func(zktest.Match) *zktest.Rule{r.Srv.LoseReply, r.Srv.DropBefore} {
			rule := fault(zktest.Match{Op: zktest.OpMulti})
			data := strings.Repeat("x", i+1)
			r.Check(n.Set(r.Within(time.Minute), []byte(data)))
			r.wantOurs(c, n, data)
			if rule.Fired() != 1 {
				r.Error("nothing was tested")
			}
		}
		r.Srv.Client("a").Partition()
		testrig.WantErr(t, n.Set(r.Within(time.Second), []byte("late")), context.DeadlineExceeded)
		r.Srv.Client("a").Heal()
		r.Check(n.Wait(r.Within(time.Minute)))
		r.wantOurs(c, n, "late")
		r.Srv.ExpireSession(r.SessionID(c))
		time.Sleep(5 * time.Second)
		stat := r.wantOurs(c, n, "late")
		if string(n.Data()) != "late" || stat.Version != 0 {
			r.Errorf("%q, %+v", n.Data(), stat)
		}
		// Data of an operator stays, as with Curator.
		r.Check(r.Srv.SetData(nodePath, []byte("operator")))
		time.Sleep(time.Second)
		r.wantOurs(c, n, "operator")
		r.Check(n.Set(r.Ctx, []byte("ours")))
		r.wantOurs(c, n, "ours")
		r.closed(n)
	})
}

// The constructor refuses what can never work, and does no I/O. Start and Close may
// be called in any order and number (testClosingMultipleTimes, testNullPath,
// testNullMode, testNullCurator, testQuickClose).
func TestArguments(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithDefaultData([]byte("default")))
		for _, tt := range []struct {
			c    *client.Client
			mode nodes.Mode
			path string
			opts []nodes.Option
		}{
			{nil, nodes.Ephemeral, nodePath, nil},
			{c, nodes.Ephemeral, "", nil},
			{c, nodes.Ephemeral, "/", nil},
			{c, nodes.Ephemeral, "relative", nil},
			{c, -1, nodePath, nil},
			{c, nodes.Container + 1, nodePath, nil},
			{c, nodes.PersistentSequential, nodePath, nil},
			{c, nodes.Ephemeral, nodePath, []nodes.Option{nodes.WithNodeACL()}},
		} {
			if _, err := nodes.NewPersistentNode(tt.c, tt.mode, tt.path, nil, tt.opts...); err == nil {
				r.Errorf("%+v: no error", tt)
			}
		}
		n, err := nodes.NewPersistentNode(c, nodes.Persistent, nodePath, nil, nil)
		r.Check(err)
		r.Check(n.Close())
		testrig.WantErr(t, n.Start(r.Ctx), nodes.ErrClosed)
		for range 20 {
			n = r.started(c, nodes.Persistent)
			r.Check(n.Close())
			r.Check(n.Close())
			r.closed(n)
			testrig.WantErr(t, n.Wait(r.Ctx), nodes.ErrClosed)
		}
		n = r.node(c, nodes.Ephemeral)
		if n.Start(r.Ctx) == nil {
			r.Error("started twice")
		}
		r.closed(n)
		n, err = nodes.NewPersistentNode(c, nodes.Ephemeral, nodePath, nil)
		r.Check(err)
		r.Check(n.Start(r.Ctx))
		if data, _ := r.data(nodePath); data != "default" {
			r.Errorf("data %q", data)
		}
		r.closed(n)
	})
}
