package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// A client that has not asked for it goes on to a server with a quorum, and keeps its session.
func TestReadOnlyServerIsPassedBy(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]zktest.Option{{zktest.WithReadOnlyMode()}, {zktest.WithReadOnlyMode(), zktest.WithoutLocalSessions()}} {
		ensemble(t, func(r crew) {
			c := r.join("a", client.WithSessionTimeout(40*time.Second)) // a cut server answers for 10 s
			s := r.Session(c)
			_, err := c.Create(r.Ctx, "/a", nil, client.Ephemeral())
			r.Check(err)
			for i := range 3 {
				r.e.Isolate(i + 1)
				time.Sleep(12 * time.Second)
				if _, _, err := c.Get(r.Ctx, "/a"); err != nil || r.Session(c).ReadOnly() || r.Session(c).ID() != s.ID() {
					t.Errorf("%d: %v; session %x of %x, %v", i+1, err, r.Session(c).ID(), s.ID(), s.Err())
				}
				r.e.Heal()
				time.Sleep(10 * time.Second)
			}
		}, opts...)
	}
}

// Without a quorum there is no server for a client that has not asked for it, and the error
// says why.
func TestNoQuorumForWriters(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Srv.SetReadOnly(true)
		_, err := r.Open("zk", "a")
		wantErrText(t, err, "a read-only server", "another protocol")
		r2, err := r.Open("zk", "b", client.WithReadOnly())
		if err == nil {
			t.Errorf("a session without local sessions: %v", r2.State())
		}
		wantErrText(t, err, "the server is read-only: it is cut off from its quorum", "another protocol")
		wantErrText(t, err, "localSessionsEnabled=true", "another protocol")
	}, zktest.WithoutLocalSessions())
}

// A reader goes on without a quorum after its session timeout, says so, and is back when the
// quorum is.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a", "data")
		c := r.Connect("a", client.WithReadOnly())
		read := func(want bool) {
			t.Helper()
			data, _, err := c.Get(r.Ctx, "/a")
			if err != nil || string(data) != "data" || r.Session(c).ReadOnly() != want {
				t.Errorf("%q, %v; the server is read-only: %v, want %v", data, err, r.Session(c).ReadOnly(), want)
			}
		}
		read(false)
		r.Srv.SetReadOnly(true)
		begun := time.Now()
		read(true)
		if took := time.Since(begun); took > 2*testrig.SessionTimeout {
			t.Errorf("it took %v", took)
		}
		for name, err := range writes(r, c) {
			testrig.WantErr(t, err, client.ErrReadOnly)
			wantOutcome(t, err, client.OutcomeNeverSent)
			if client.SafeToRetry(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		testrig.WantErr(t, c.Sync(r.Ctx, "/a"), client.Code(-119))
		local := r.Session(c).ID()
		r.Srv.CutAll()
		read(true)
		if r.Session(c).ID() != local {
			t.Error("the local session is another one")
		}
		said := false
		for change := range c.States(r.Within(time.Nanosecond)) {
			said = said || change.ReadOnly
		}
		if !said {
			t.Error("no state says it")
		}
		r.Srv.SetReadOnly(false)
		time.Sleep(time.Second)
		read(false)
		for _, err := range writes(r, c) {
			testrig.WantErr(t, err, client.ErrReadOnly)
		}
		if n := r.Srv.Count(zktest.OpCreate) + r.Srv.Count(zktest.OpSetData) + r.Srv.Count(zktest.OpMulti); n != 0 {
			t.Errorf("%d writes were sent", n)
		}
	})
}

// writes are calls that write.
func writes(r *rig, c *client.Client) map[string]error {
	_, created := c.Create(r.Ctx, "/n", nil)
	_, set := c.Set(r.Ctx, "/a", nil, -1)
	_, acl := c.SetACL(r.Ctx, "/a", nil, -1)
	_, multi := c.Multi(r.Ctx, client.CheckOp("/a", 0))
	_, upsert := c.CreateOrSet(r.Ctx, "/a", nil)
	_, config := c.Reconfigure(r.Ctx, client.Reconfiguration{Leave: []int64{1}})
	s := r.Session(c)
	_, listed := inner.CreateAndList(r.Ctx, s, newNode{Dir: "/d", Prefix: "n"})
	_, group := inner.CreateGroup(r.Ctx, s, []newNode{{Dir: "/d", Prefix: "n"}})
	return map[string]error{
		"create": created, "set": set, "acl": acl, "multi": multi, "upsert": upsert, "config": config, "list": listed, "group": group,
		"delete": c.Delete(r.Ctx, "/a", -1), "delete all": c.DeleteAll(r.Ctx, "/a"),
		"quota": c.SetQuota(r.Ctx, "/a", client.Quota{Nodes: 1}), "no quota": c.RemoveQuota(r.Ctx, "/a"),
	}
}

// Calls end with their contexts while the reader waits for its session to be over.
func TestReadOnlyWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithReadOnly())
		s := r.Session(c)
		r.Srv.SetReadOnly(true)
		_, _, err := c.Get(r.Within(time.Second), "/")
		testrig.WantErr(t, err, context.DeadlineExceeded)
		if s.Err() != nil {
			t.Errorf("the session: %v", s.Err())
		}
		_, _, err = s.Get(r.Ctx, "/")
		if !errors.Is(err, client.ErrSessionLost) {
			t.Errorf("in the old session: %v", err)
		}
		if _, _, err := c.Get(r.Ctx, "/"); err != nil || !r.Session(c).ReadOnly() {
			t.Errorf("in the new one: %v", err)
		}
	})
}
