package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// kvNode is what the reference knows of a node.
type kvNode struct {
	data  string
	owner int64
}

type kvTree map[string]kvNode

// kvLook is the tree below /ch/ns as the server has it.
func kvLook(srv *zktest.Server) kvTree {
	t := kvTree{}
	for _, n := range srv.Tree() {
		if path, in := strings.CutPrefix(n.Path, "/ch/ns/"); in {
			owner := n.Stat.EphemeralOwner
			if n.Container || n.TTL > 0 {
				owner = 0
			}
			t["/"+path] = kvNode{string(n.Data), owner}
		}
	}
	return t
}

func (t kvTree) below(path string) (all []string) {
	for p := range t {
		if strings.HasPrefix(p, path+"/") {
			all = append(all, p)
		}
	}
	return all
}

func (t kvTree) parent(path string) (kvNode, bool) {
	i := strings.LastIndexByte(path, '/')
	if i == 0 {
		return kvNode{}, true
	}
	n, has := t[path[:i]]
	return n, has
}

// kvStep is the reference: what a call makes of the tree, and whether it is refused.
func kvStep(before kvTree, op, path, data string, session int64) (after kvTree, refused bool) {
	after = maps.Clone(before)
	old, has := after[path]
	up, hasUp := after.parent(path)
	switch op {
	case "create":
		if has || !hasUp || up.owner != 0 {
			return before, true
		}
		after[path] = kvNode{data, 0}
	case "upsert":
		if !has && (!hasUp || up.owner != 0) {
			return before, true
		}
		after[path] = kvNode{data, old.owner}
	case "ephemeral":
		if !has && (!hasUp || up.owner != 0) || has && old.owner != session {
			return before, true
		}
		after[path] = kvNode{data, session}
	case "delete all":
		for _, p := range after.below(path) {
			delete(after, p)
		}
		delete(after, path)
	case "multi":
		if !has {
			return before, true
		}
		if _, taken := after[path+"/m"]; taken || old.owner != 0 {
			return before, true
		}
		after[path] = kvNode{data, 0}
		after[path+"/m"] = kvNode{data, 0}
	}
	return after, false
}

func noLogin(q zktest.Request) bool { return q.Op != zktest.OpSASL && q.Op != zktest.OpAuth }

func kvRun(t *testing.T, seed uint64, opts ...zktest.Option) {
	bubble(t, func(r *rig) {
		counts := map[string]int{}
		defer func() { t.Log(seed, counts) }()
		rnd := rand.New(rand.NewPCG(seed, 29))
		r.create("/ch", "")
		c, err := r.Open("zk:2181/ch", "a", client.WithNamespace("ns"), client.WithLazyConnect(), docentLogin(), client.WithAuth("digest", "u:0"),
			client.WithDefaultACL(zk.WorldACL(zk.PermAll)...), client.WithRetry(retry.NTimes(6, time.Second)))
		r.Check(err)
		_, err = c.Create(r.Ctx, "/a", nil)
		r.Check(err)
		paths := []string{"/a", "/b", "/a/x", "/a/y", "/a/x/z", "/ab", "/a/x/zz", "/a/q"}
		writes := []string{"create", "upsert", "upsert", "ephemeral", "delete all", "multi"}
		for i := range 120 {
			synctest.Wait()
			time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
			r.Srv.ClearRules()
			expired := false
			switch rnd.IntN(8) {
			case 0:
				r.Srv.LoseReply(zktest.Match{Client: "a", Where: noLogin, Nth: 1 + rnd.IntN(3), Times: 1 + rnd.IntN(6)})
			case 1:
				r.Srv.DropBefore(zktest.Match{Client: "a", Where: noLogin, Nth: 1 + rnd.IntN(3), Times: 1 + rnd.IntN(6)})
			case 2:
				r.Srv.CutAll()
			case 3:
				if rnd.IntN(3) == 0 {
					r.Srv.Client("a").ExpireSession()
					expired = true
				}
			case 4:
				r.Srv.LoseReply(zktest.Match{Client: "a", Op: zktest.OpSASL})
			case 5:
				if rnd.IntN(2) == 0 {
					go func() { _ = c.ReplaceAuth(r.Ctx, "digest", fmt.Sprint("u:", i)) }()
				}
			}
			if expired {
				synctest.Wait()
				time.Sleep(time.Second)
			}
			s, err := c.Session(r.Ctx)
			r.Check(err)
			before := kvLook(r.Srv)
			path, data := paths[rnd.IntN(len(paths))], fmt.Sprint(i)
			if rnd.IntN(3) == 0 {
				kvRead(t, r, c, s, before, path, seed, i)
				continue
			}
			op := writes[rnd.IntN(len(writes))]
			switch op {
			case "create":
				_, err = c.Create(r.Ctx, path, []byte(data))
			case "upsert":
				_, err = c.CreateOrSet(r.Ctx, path, []byte(data))
			case "ephemeral":
				_, err = c.CreateOrSet(r.Ctx, path, []byte(data), client.Ephemeral())
			case "delete all":
				err = c.DeleteAll(r.Ctx, path)
			case "multi":
				_, err = c.Multi(r.Ctx, client.SetOp(path, []byte(data), -1), client.CreateOp(path+"/m", []byte(data)))
			}
			synctest.Wait()
			want, refused := kvStep(before, op, path, data, s.ID())
			now := kvLook(r.Srv)
			where := fmt.Sprintf("seed %d step %d: %s %s: %v", seed, i, op, path, err)
			counts[fmt.Sprint(op, " ", err == nil, " ", client.UnknownOutcome(err))]++
			switch {
			case s.Err() != nil: // ephemeral nodes went meanwhile
			case err == nil && (refused || !maps.Equal(now, want)):
				t.Errorf("%s\nbefore %v\nnow %v\nwant %v", where, before, now, want)
			case err != nil && client.UnknownOutcome(err):
				for p, n := range now {
					if n != before[p] && n != want[p] {
						t.Errorf("%s\nbefore %v\nnow %v\nwant %v", where, before, now, want)
					}
				}
			case err != nil && !maps.Equal(now, before):
				t.Errorf("%s changed something\nbefore %v\nnow %v", where, before, now)
			case err != nil && !refused && errors.As(err, new(*client.OpError)):
				var o *client.OpError
				if errors.As(err, &o); o.Outcome == client.OutcomeRefused {
					t.Errorf("%s: refused\nbefore %v", where, before)
				}
			}
		}
	}, append(opts, zktest.WithSASLUser("docent", "s3cret"))...)
}

func kvRead(t *testing.T, r *rig, c *client.Client, s *client.Session, tree kvTree, path string, seed uint64, i int) {
	t.Helper()
	where := fmt.Sprintf("seed %d step %d %s", seed, i, path)
	n, has := tree[path]
	var names []string
	for _, p := range tree.below(path) {
		if rest := p[len(path)+1:]; !strings.Contains(rest, "/") {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	var got []string
	all, _, err := c.ChildrenData(r.Ctx, path)
	for _, child := range all {
		got = append(got, child.Name)
		if string(child.Data) != tree[path+"/"+child.Name].data {
			t.Errorf("%s: %+v", where, child)
		}
	}
	slices.Sort(got)
	if s.Err() != nil {
		return
	}
	if err == nil && (!has || !slices.Equal(got, names)) || errors.Is(err, client.ErrNoNode) && has {
		t.Errorf("%s: %v, %v; want %v", where, got, err, names)
	}
	if many, err := c.MultiRead(r.Ctx, client.GetOp(path), client.ChildrenOp(path)); err == nil && s.Err() == nil {
		if (many[0].Err == nil) != has || has && (string(many[0].Data) != n.data || len(many[1].Children) != len(names)) {
			t.Errorf("%s: %+v", where, many)
		}
	}
	if count, err := c.CountDescendants(r.Ctx, path); err == nil && s.Err() == nil && count != len(tree.below(path)) {
		t.Errorf("%s: %d", where, count)
	}
	var mine []string
	for p, n := range tree {
		if n.owner == s.ID() && (p == path || strings.HasPrefix(p, path+"/")) {
			mine = append(mine, p)
		}
	}
	slices.Sort(mine)
	if all, err := c.Ephemerals(r.Ctx, path); err == nil && s.Err() == nil && !slices.Equal(all, mine) {
		t.Errorf("%s: %v, want %v", where, all, mine)
	}
}

func TestRandomKeyValue(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		kvRun(t, seed)
		if seed%4 == 0 {
			kvRun(t, seed, zktest.WithVersion(zktest.ZooKeeper380))
			kvRun(t, seed, zktest.WithVersion(zktest.ZooKeeper35))
		}
	}
}

// Nobody deletes the folder of all quotas.
func TestRemoveQuotaOfRoot(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/ch", "")
		if _, there := r.Srv.Node("/zookeeper/quota"); !there {
			t.Fatal("nothing is tested")
		}
		testrig.WantErr(t, c.RemoveQuota(r.Ctx, "/"), client.ErrNoNode)
		if _, there := r.Srv.Node("/zookeeper/quota"); !there {
			t.Error("the folder of the quotas is gone")
		}
	})
}

// A quota in a chroot with a namespace, with lost answers at every request, twice.
func TestQuotaThroughChrootLosses(t *testing.T) {
	t.Parallel()
	for nth := 1; nth < 12; nth++ {
		for _, before := range []bool{true, false} {
			bubble(t, func(r *rig) {
				r.create("/ch/ns/t", "12345")
				c, err := r.Open("zk:2181/ch", "a", client.WithNamespace("ns"))
				r.Check(err)
				fault := func() {
					m := zktest.Match{Client: "a", Nth: nth}
					if before {
						r.Srv.DropBefore(m)
					} else {
						r.Srv.LoseReply(m)
					}
				}
				fault()
				r.Check(c.SetQuota(r.Ctx, "/t", client.Quota{Nodes: 5, HardBytes: 1 << 40}))
				fault()
				q, err := c.Quota(r.Ctx, "/t")
				if err != nil || q.Path != "/t" || q.Quota != (client.Quota{Nodes: 5, HardBytes: 1 << 40}) || q.UsedNodes != 1 || q.UsedBytes != 5 {
					t.Errorf("%d %v: %+v, %v", nth, before, q, err)
				}
				all, err := c.Quotas(r.Ctx, "/")
				if err != nil || len(all) != 1 || all[0] != q {
					t.Errorf("%+v, %v", all, err)
				}
				fault()
				r.Check(c.RemoveQuota(r.Ctx, "/t"))
				for _, n := range r.Srv.Tree() { // an empty folder may stay
					if strings.HasPrefix(n.Path, "/zookeeper/quota/") && strings.Contains(n.Path, "zookeeper_") {
						t.Errorf("%d %v: left behind: %s", nth, before, n.Path)
					}
				}
			})
		}
	}
}

// DeleteAll against creators ends, once they end, with nothing left; CreateOrSet against
// DeleteAll never says that there is no node.
func TestUpsertAgainstDeleteAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/d", "")
		a, b := r.Connect("a"), r.Connect("b")
		ctx, stop := context.WithTimeout(r.Ctx, 20*time.Second)
		defer stop()
		done := make(chan int)
		go func() {
			n := 0
			for ; ctx.Err() == nil; n++ {
				if _, err := b.CreateOrSet(ctx, fmt.Sprint("/d/e/", n%7, "/f"), nil, client.WithPersistentParents()); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
			done <- n
		}()
		deleted := 0
		for ; ctx.Err() == nil; deleted++ {
			if err := a.DeleteAll(ctx, "/d/e"); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
		n := <-done
		r.Check(a.DeleteAll(r.Ctx, "/d"))
		if len(r.Srv.Children("/")) > 1 || n < 100 || deleted < 2 {
			t.Errorf("%v; %d, %d", r.Srv.Children("/"), n, deleted)
		}
	}, zktest.WithLatency(100*time.Microsecond, 5*time.Millisecond))
}
