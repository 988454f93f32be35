package client_test

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// bySuper lets a server know the superuser, and superuser makes a client that user.
func bySuper() zktest.Option {
	sum := sha1.Sum([]byte("super:pw"))
	return zktest.WithSuperDigest("super:" + base64.StdEncoding.EncodeToString(sum[:]))
}

func superuser() client.Option { return client.WithAuth("digest", "super:pw") }

func TestIdentities(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, tt := range []struct {
			opts []client.Option
			want string
		}{
			{nil, "[]"},
			{[]client.Option{client.WithAuth("digest", "bob:secret"), client.WithNamespace("ns")}, "[{digest bob}]"},
			{[]client.Option{superuser(), client.WithAuth("digest", "amy:x")}, "[{digest amy} {digest super} {super }]"},
		} {
			all, err := r.Connect("a", tt.opts...).Identities(r.Ctx)
			r.Check(err)
			all = slices.DeleteFunc(all, func(i client.Identity) bool { return i.Scheme == "ip" })
			if got := fmt.Sprint(all); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		}
	}, bySuper())
}

func TestEphemeralsAndCounts(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		root := r.Connect("a")
		c, err := root.Namespace("ns")
		r.Check(err)
		for _, path := range []string{"/a/x", "/a/y", "/ab", "/b"} {
			_, err := c.Create(r.Ctx, path, nil, client.Ephemeral(), client.WithParents())
			r.Check(err)
		}
		_, err = root.Create(r.Ctx, "/nsx", nil, client.Ephemeral())
		r.Check(err)
		_, err = r.Connect("b").Create(r.Ctx, "/ns/a/z", nil, client.Ephemeral()) // of another session
		r.Check(err)
		for path, want := range map[string][]string{
			"/": {"/a/x", "/a/y", "/ab", "/b"}, "/a": {"/a/x", "/a/y"}, "/b": {"/b"}, "/none": {},
		} {
			got, err := c.Ephemerals(r.Ctx, path)
			r.Check(err)
			if !slices.Equal(got, want) || got == nil {
				t.Errorf("Ephemerals(%s) = %v", path, got)
			}
		}
		all, err := root.Ephemerals(r.Ctx, "/")
		r.Check(err)
		if want := []string{"/ns/a/x", "/ns/a/y", "/ns/ab", "/ns/b", "/nsx"}; !slices.Equal(all, want) {
			t.Errorf("all: %v", all)
		}
		for path, want := range map[string]int{"/": 6, "/a": 3, "/b": 0} {
			if n, err := c.CountDescendants(r.Ctx, path); err != nil || n != want {
				t.Errorf("CountDescendants(%s) = %d, %v", path, n, err)
			}
		}
		_, err = c.CountDescendants(r.Ctx, "/none")
		testrig.WantErr(t, err, client.ErrNoNode)
		wantOutcome(t, err, client.OutcomeRefused)
	})
}

func TestMultiRead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		root := r.Connect("a")
		c, err := root.Namespace("ns")
		r.Check(err)
		r.create("/ns/a", "data")
		r.create("/ns/a/b", "")
		r.create("/other", "else")
		r.create("/ns/secret", "x")
		_, err = root.SetACL(r.Ctx, "/ns/secret", zk.WorldACL(zk.PermAdmin), -1)
		r.Check(err)
		res, err := c.MultiRead(r.Ctx, client.GetOp("/a"), client.ChildrenOp("/a"), client.GetOp("/none"), client.GetOp("/secret"), client.GetOp("/other").In(root), client.GetOp("/a/b"))
		r.Check(err)
		if len(res) != 6 || string(res[0].Data) != "data" || res[0].Stat.NumChildren != 1 || !slices.Equal(res[1].Children, []string{"b"}) || res[1].Stat != nil ||
			string(res[4].Data) != "else" || len(res[5].Data) != 0 || res[5].Err != nil {
			t.Errorf("%+v", res)
		}
		testrig.WantErr(t, res[2].Err, client.ErrNoNode)
		wantErrText(t, res[2].Err, "client: get /none: ", "unknown")
		testrig.WantErr(t, res[3].Err, client.ErrNoAuth)
		wantErrText(t, res[3].Err, "no credentials", "unknown")
		if res, err := c.MultiRead(r.Ctx); err != nil || len(res) != 0 {
			t.Errorf("no parts: %v, %v", res, err)
		}
		for _, bad := range []client.ReadOp{client.GetOp("a"), {}, client.GetOp("/a").In(r.Connect("b")), client.ChildrenOp("/a").In(nil)} {
			_, err := c.MultiRead(r.Ctx, client.GetOp("/a"), bad)
			wantOutcome(t, err, client.OutcomeNeverSent)
		}
		small := r.Connect("small", client.WithMaxReply(1024))
		_, err = small.MultiRead(r.Ctx, slices.Repeat([]client.ReadOp{client.GetOp("/ns/a")}, 20)...)
		testrig.WantErr(t, err, client.ErrReplyTooLarge)
		if n := r.Srv.Count(zktest.OpGetData); n > 3 { // of the question what the server is
			t.Errorf("%d single reads", n)
		}
	})
}

func TestKindsInATransaction(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithNamespace("ns"))
		res, err := c.Multi(r.Ctx, client.CreateOp("/c", nil, client.Container()), client.CreateOp("/t", []byte("x"), client.TTL(time.Hour)),
			client.CreateOp("/s-", nil, client.TTL(time.Hour), client.Sequential()), client.CreateOp("/p", nil))
		r.Check(err)
		for i, path := range []string{"/c", "/t", "/s-0000000002", "/p"} {
			n, there := r.Srv.Node("/ns" + path)
			if res[i].Path != path || !there || (res[i].Stat == nil) != (path == "/p") || i < 3 && res[i].Stat.Czxid != n.Stat.Czxid {
				t.Errorf("%s: %+v, on the server %+v", path, res[i], n)
			}
		}
	}, zktest.WithExtendedTypes())
	bubble(t, func(r *rig) {
		_, err := r.Connect("a").Multi(r.Ctx, client.CreateOp("/p", nil), client.CreateOp("/t", nil, client.TTL(time.Hour)))
		testrig.WantErr(t, err, client.ErrUnsupported)
		wantErrText(t, err, "part 1 (create /t)", "unknown")
		wantErrText(t, err, "extendedTypesEnabled", "unknown")
		wantOutcome(t, err, client.OutcomeRefused)
		if _, there := r.Srv.Node("/p"); there {
			t.Error("a part was applied")
		}
	})
	bubble(t, func(r *rig) {
		_, err := r.Connect("a").Multi(r.Ctx, client.CreateOp("/p", nil), client.CreateOp("/c", nil, client.Container()))
		testrig.WantErr(t, err, client.ErrUnsupported)
		wantOutcome(t, err, client.OutcomeNeverSent)
	}, zktest.WithProfile(zktest.ClickHouseKeeper))
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		root := r.Connect("a")
		c, err := root.Namespace("ns")
		r.Check(err)
		for _, path := range []string{"/ns/a/b", "/ns/c", "/d"} {
			r.create(path, "12345")
		}
		hard := client.Quota{Nodes: 2, HardNodes: 3, HardBytes: 12}
		r.Check(c.SetQuota(r.Ctx, "/a", hard))
		q, err := c.Quota(r.Ctx, "/a")
		if want := (client.TreeQuota{Path: "/a", Quota: hard, UsedNodes: 2, UsedBytes: 5}); err != nil || q != want {
			t.Errorf("%+v, %v", q, err)
		}
		_, err = c.Create(r.Ctx, "/a/1", nil)
		r.Check(err)
		_, err = c.Create(r.Ctx, "/a/2", nil)
		testrig.WantErr(t, err, client.ErrQuotaExceeded)
		_, err = c.Set(r.Ctx, "/a/1", make([]byte, 100), -1)
		testrig.WantErr(t, err, client.ErrQuotaExceeded)
		wantOutcome(t, err, client.OutcomeRefused)
		soft := client.Quota{Nodes: 1, Bytes: 1}
		r.Check(c.SetQuota(r.Ctx, "/a", soft))
		_, err = c.Create(r.Ctx, "/a/2", nil)
		r.Check(err)
		for path, name := range map[string]string{"/a/b": "/a has a quota", "/": "/a has a quota"} {
			err := c.SetQuota(r.Ctx, path, soft)
			wantErrText(t, err, name, "unknown")
			wantOutcome(t, err, client.OutcomeRefused)
		}
		r.Check(root.SetQuota(r.Ctx, "/d", soft))
		all, err := root.Quotas(r.Ctx, "/")
		if err != nil || len(all) != 2 || all[0].Path != "/d" || all[1].Path != "/ns/a" || all[1].UsedNodes != 4 {
			t.Errorf("%+v, %v", all, err)
		}
		all, err = c.Quotas(r.Ctx, "/")
		if err != nil || len(all) != 1 || all[0].Path != "/a" || all[0].Quota != soft {
			t.Errorf("%+v, %v", all, err)
		}
		_, err = c.Quota(r.Ctx, "/c")
		testrig.WantErr(t, err, client.ErrNoNode)
		wantErrText(t, err, "no quota", "unknown")
		r.Check(c.RemoveQuota(r.Ctx, "/a"))
		testrig.WantErr(t, c.RemoveQuota(r.Ctx, "/a"), client.ErrNoNode)
		testrig.WantErr(t, c.SetQuota(r.Ctx, "/none", soft), client.ErrNoNode)
		if left := r.Srv.Children("/zookeeper/quota"); !slices.Equal(left, []string{"d"}) {
			t.Errorf("left behind: %v", left)
		}
		for _, bad := range []client.Quota{{}, {Nodes: -1}, {Nodes: 1, HardBytes: -1}} {
			wantOutcome(t, c.SetQuota(r.Ctx, "/c", bad), client.OutcomeNeverSent)
		}
		wantOutcome(t, root.SetQuota(r.Ctx, "/", soft), client.OutcomeNeverSent)
	}, zktest.WithEnforcedQuotas())
}

// What another program has left of a quota, or written into it, is in nobody's way.
func TestQuotasByHalves(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/a", "")
		q := client.Quota{HardNodes: 5}
		const folder = "/zookeeper/quota/a"
		r.create(folder+"/zookeeper_stats", "count=9,bytes=9")
		r.Check(c.SetQuota(r.Ctx, "/a", q))
		if got, err := c.Quota(r.Ctx, "/a"); err != nil || got.UsedNodes != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		r.Check(r.Srv.Delete(folder + "/zookeeper_stats"))
		if got, err := c.Quota(r.Ctx, "/a"); err != nil || got.Quota != q {
			t.Errorf("%+v, %v", got, err)
		}
		r.Check(c.RemoveQuota(r.Ctx, "/a"))
		r.create(folder+"/zookeeper_limits", "nonsense")
		_, err := c.Quota(r.Ctx, "/a")
		wantErrText(t, err, `/a: "nonsense" is no text of a quota`, "unknown")
		_, err = c.Quotas(r.Ctx, "/")
		wantErrText(t, err, `/a: "nonsense" is no text of a quota`, "unknown")
		r.Check(c.SetQuota(r.Ctx, "/a", q))
		r.Check(c.RemoveQuota(r.Ctx, "/a"))
		r.create(folder+"/zookeeper_stats", "count=9,bytes=9")
		testrig.WantErr(t, c.RemoveQuota(r.Ctx, "/a"), client.ErrNoNode)
		if left := r.Srv.Children("/zookeeper/quota"); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

func TestEnsembleAndReconfigure(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		c := r.join("a", superuser(), client.WithNamespace("ns"))
		e, err := c.Ensemble(r.Ctx)
		r.Check(err)
		if len(e.Members) != 3 || e.Members[1].ID != 2 || e.Members[1].Observer || !slices.Equal(e.Members[1].Clients, []string{"zk2:2181"}) || e.Version == 0 {
			t.Errorf("%+v", e)
		}
		two := e.Members[1].Line
		less, err := c.Reconfigure(r.Ctx, client.Reconfiguration{Leave: []int64{2}, IfVersion: e.Version})
		r.Check(err)
		if len(less.Members) != 2 || less.Version <= e.Version {
			t.Errorf("%+v", less)
		}
		_, err = c.Reconfigure(r.Ctx, client.Reconfiguration{Join: []string{two}, IfVersion: e.Version})
		testrig.WantErr(t, err, client.ErrBadVersion)
		wantErrText(t, err, "read it again with Client.Ensemble", "unknown")
		more, err := c.Reconfigure(r.Ctx, client.Reconfiguration{Join: []string{two, "server.4=zk4:2888:3888:observer;2181"}})
		r.Check(err)
		if now, err := c.Ensemble(r.Ctx); err != nil || len(more.Members) != 4 || now.Version != more.Version || !more.Members[3].Observer {
			t.Errorf("%+v, now %+v, %v", more, now, err)
		}
		var lines []string
		for _, m := range e.Members {
			lines = append(lines, m.Line)
		}
		all, err := c.Reconfigure(r.Ctx, client.Reconfiguration{Members: lines})
		if err != nil || len(all.Members) != 3 {
			t.Errorf("%+v, %v", all, err)
		}
		_, err = c.Reconfigure(r.Ctx, client.Reconfiguration{Leave: []int64{1, 2, 3}})
		wantErrText(t, err, "no member with a vote would be left", "unknown")
		_, err = c.Reconfigure(r.Ctx, client.Reconfiguration{Members: []string{lines[0], "server.8=zk8:1:2;3", "server.9=zk9:1:2;3"}})
		testrig.WantErr(t, err, client.Code(-13))
		wantErrText(t, err, "start its members", "unknown")
		if client.SafeToRetry(err) {
			t.Error("the same call cannot succeed")
		}
		_, err = r.join("b", client.WithAuth("digest", "bob:x")).Reconfigure(r.Ctx, client.Reconfiguration{Leave: []int64{2}})
		testrig.WantErr(t, err, client.ErrNoAuth)
		wantErrText(t, err, "superDigest", "WithAuth")
	}, zktest.WithReconfig(), bySuper())
}

func TestReconfigureRefusedBeforeItLeaves(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", superuser())
		for _, bad := range []client.Reconfiguration{
			{},
			{IfVersion: 3},
			{Members: []string{"server.1=a:1:2;3"}, Leave: []int64{2}},
			{Join: []string{"server.1=a:1:2;3,server.2=b:1:2;3"}},
			{Join: []string{"server.1=a:1:2;3\nserver.2=b:1:2;3"}},
			{Join: []string{""}},
			{Join: []string{"server.x=a:1:2;3"}},
			{Join: []string{"a:1:2;3"}},
			{Members: []string{"server.1="}},
		} {
			_, err := c.Reconfigure(r.Ctx, bad)
			wantOutcome(t, err, client.OutcomeNeverSent)
		}
		if n := r.Srv.Count(zktest.OpReconfig); n != 0 {
			t.Errorf("%d were sent", n)
		}
		_, err := c.Reconfigure(r.Ctx, client.Reconfiguration{Leave: []int64{2}})
		testrig.WantErr(t, err, zk.ErrReconfigDisabled)
		wantErrText(t, err, "reconfigEnabled=true", "unknown")
		_, err = c.Ensemble(r.Ctx)
		wantErrText(t, err, "no server", "unknown")
		wantOutcome(t, err, client.OutcomeRefused)
	}, bySuper())
	bubble(t, func(r *rig) {
		_, err := r.Connect("a", superuser()).Reconfigure(r.Ctx, client.Reconfiguration{Leave: []int64{2}})
		testrig.WantErr(t, err, client.ErrUnsupported)
		wantErrText(t, err, "a single server has no ensemble", "later")
	}, bySuper(), zktest.WithReconfig())
}

// adminCall is one of the calls of this file, its request and what it may leave.
type adminCall struct {
	op     zktest.Op
	writes bool
	run    func(context.Context, *client.Client) error
}

func adminCalls() map[string]adminCall {
	return map[string]adminCall{
		"identities": {zktest.OpWhoAmI, false, func(ctx context.Context, c *client.Client) error { _, err := c.Identities(ctx); return err }},
		"ephemerals": {zktest.OpGetEphemerals, false, func(ctx context.Context, c *client.Client) error { _, err := c.Ephemerals(ctx, "/"); return err }},
		"count":      {zktest.OpGetAllChildrenNumber, false, func(ctx context.Context, c *client.Client) error { _, err := c.CountDescendants(ctx, "/a"); return err }},
		"multi read": {zktest.OpMultiRead, false, func(ctx context.Context, c *client.Client) error {
			_, err := c.MultiRead(ctx, client.GetOp("/a"))
			return err
		}},
		"quotas": {zktest.OpGetChildren2, false, func(ctx context.Context, c *client.Client) error { _, err := c.Quotas(ctx, "/"); return err }},
		"quota":  {zktest.OpGetData, false, func(ctx context.Context, c *client.Client) error { _, err := c.Quota(ctx, "/a"); return err }},
		"set quota": {zktest.OpSetData, true, func(ctx context.Context, c *client.Client) error {
			return c.SetQuota(ctx, "/a", client.Quota{Nodes: 100})
		}},
		"first quota": {zktest.OpMulti, true, func(ctx context.Context, c *client.Client) error {
			return c.SetQuota(ctx, "/b", client.Quota{Nodes: 100})
		}},
		"remove quota": {zktest.OpMulti, true, func(ctx context.Context, c *client.Client) error { return c.RemoveQuota(ctx, "/a") }},
	}
}

// Each call goes on over a lost connection and a lost session, and says what it knows when its
// context ends.
func TestAdminThroughFaults(t *testing.T) {
	t.Parallel()
	for name, call := range adminCalls() {
		for what, fault := range map[string]func(*rig, zktest.Match) *zktest.Rule{
			"reply lost":     func(r *rig, m zktest.Match) *zktest.Rule { return r.Srv.LoseReply(m) },
			"dropped before": func(r *rig, m zktest.Match) *zktest.Rule { return r.Srv.DropBefore(m) },
			"throttled":      func(r *rig, m zktest.Match) *zktest.Rule { return r.Srv.Fail(m, zktest.CodeThrottledOp) },
			"session ended": func(r *rig, m zktest.Match) *zktest.Rule {
				return r.Srv.BeforeApply(m, func(_ context.Context, req zktest.Request) { r.Srv.ExpireSession(req.Session) })
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					c := r.adminClient()
					rule := fault(r, zktest.Match{Client: "a", Op: call.op})
					r.Check(call.run(r.Ctx, c))
					if rule.Fired() != 1 {
						t.Errorf("the fault struck %d times", rule.Fired())
					}
				})
			})
		}
		t.Run(name+"/context", func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.adminClient()
				ended, cancel := context.WithCancel(r.Ctx)
				cancel()
				err := call.run(ended, c)
				testrig.WantErr(t, err, context.Canceled)
				wantOutcome(t, err, client.OutcomeNeverSent)
				r.Srv.StallReply(zktest.Match{Client: "a", Op: call.op})
				begun := time.Now()
				err = call.run(r.Within(time.Second), c)
				testrig.WantErr(t, err, context.DeadlineExceeded)
				want := client.OutcomeUnchanged
				if call.writes {
					want = client.OutcomeUnknown
				}
				wantOutcome(t, err, want)
				if took := time.Since(begun); took != time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// adminClient is a client in a namespace, where /a has a quota and /b has none.
func (r *rig) adminClient() *client.Client {
	r.Helper()
	c := r.Connect("a", client.WithNamespace("ns"))
	r.create("/ns/a", "")
	r.create("/ns/b", "")
	r.Check(c.SetQuota(r.Ctx, "/a", client.Quota{Nodes: 50}))
	return c
}

// A reconfiguration whose answer is lost may have been carried out. It is not sent twice. One
// that another one is in the way of is.
func TestReconfigureThroughFaults(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		c := r.join("a", superuser())
		out := client.Reconfiguration{Leave: []int64{3}}
		sent := func() (n int) {
			for _, req := range r.e.Log() {
				if req.Op == zktest.OpReconfig {
					n++
				}
			}
			return n
		}
		for i := range 3 {
			r.e.Server(i + 1).LoseReply(zktest.Match{Op: zktest.OpReconfig})
		}
		_, err := c.Reconfigure(r.Ctx, out)
		wantOutcome(t, err, client.OutcomeUnknown)
		if now, err := c.Ensemble(r.Ctx); err != nil || len(now.Members) != 2 || sent() != 1 {
			t.Errorf("%+v, %v, %d requests", now, err, sent())
		}
		for i := range 3 {
			r.e.Server(i + 1).ClearRules()
			r.e.Server(i+1).Fail(zktest.Match{Op: zktest.OpReconfig, Times: 2}, zktest.CodeReconfigInProgress)
		}
		now, err := c.Reconfigure(r.Ctx, client.Reconfiguration{Join: []string{"server.3=zk3:2888:3888:participant;zk3:2181"}})
		if err != nil || len(now.Members) != 3 || sent() != 4 {
			t.Errorf("%+v, %v, %d requests", now, err, sent())
		}
	}, zktest.WithReconfig(), bySuper())
}

// Old servers are asked once for what they do not have, and the next call is refused without
// them. Nothing is sent to ClickHouse Keeper.
func TestAdminUnsupported(t *testing.T) {
	t.Parallel()
	for name, call := range adminCalls() {
		if call.writes || name == "quota" || name == "quotas" {
			continue
		}
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			s := r.Session(c)
			for range 3 {
				err := call.run(r.Ctx, c)
				testrig.WantErr(t, err, client.ErrUnsupported)
				wantErrText(t, err, "Apache ZooKeeper 3.", "unknown")
				if client.SafeToRetry(err) {
					t.Errorf("%v", err)
				}
			}
			if n := r.Srv.Count(call.op); n != 1 || r.Session(c).ID() != s.ID() {
				t.Errorf("%s: asked %d times", name, n)
			}
		}, zktest.WithVersion(zktest.ZooKeeper35))
	}
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/a", "")
		for name, call := range adminCalls() {
			if name == "quota" || name == "quotas" || name == "remove quota" {
				continue
			}
			testrig.WantErr(t, call.run(r.Ctx, c), client.ErrUnsupported)
			if n := r.Srv.Count(call.op); call.op != zktest.OpGetData && n != 0 {
				t.Errorf("%s: sent %d times", name, n)
			}
		}
		_, err := c.Ensemble(r.Ctx)
		if !errors.Is(err, client.ErrNoNode) {
			t.Errorf("Ensemble: %v", err)
		}
	}, zktest.WithProfile(zktest.ClickHouseKeeper))
}
