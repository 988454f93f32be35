package nodes_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

func (r *rig) member(c *client.Client, id string) *nodes.GroupMember {
	r.Helper()
	g, err := nodes.NewGroupMember(c, "/workers", id, []byte("of "+id), nodes.WithLazyStart())
	r.Check(err)
	r.Check(g.Start(r.Ctx))
	return g
}

// listed are the members as "id=data" in order.
func listed(m nodes.Members) string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(m)) {
		all = append(all, id+"="+string(m[id]))
	}
	return strings.Join(all, " ")
}

func (r *rig) wantMembers(g *nodes.GroupMember, want string) {
	r.Helper()
	now, err := g.Members(r.Ctx)
	r.Check(err)
	if got := listed(now); got != want {
		r.Errorf("members %q, want %q", got, want)
	}
}

// follower collects what MemberChanges yields.
type follower struct {
	mu  sync.Mutex
	all []string
	err error
}

func (r *rig) follow(ctx context.Context, g *nodes.Group) *follower {
	f := &follower{}
	go func() {
		for now, err := range g.MemberChanges(ctx) {
			f.mu.Lock()
			f.all, f.err = append(f.all, listed(now)), err
			f.mu.Unlock()
		}
	}()
	return f
}

// want checks what was told since the last call.
func (f *follower) want(r *rig, want ...string) {
	r.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.all, want) || f.err != nil {
		r.Errorf("told %q, %v, want %q", f.all, f.err, want)
	}
	f.all = nil
}

// Curator's TestGroupMember.testBasic, and what follows it by MemberChanges.
func TestGroupMember(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		one, err := nodes.NewGroupMember(c, "/workers", "1", []byte("of 1"))
		r.Check(err)
		r.wantMembers(one, "") // not a member yet, and no group
		ctx, cancel := context.WithCancel(r.Ctx)
		f := r.follow(ctx, one.Group)
		wait := func() { time.Sleep(time.Second) }
		wait()
		f.want(r, "")
		r.Check(one.Start(r.Ctx))
		wait()
		f.want(r, "1=of 1")
		two := r.member(r.Connect("b"), "2")
		wait()
		f.want(r, "1=of 1 2=of 2")
		r.wantMembers(one, "1=of 1 2=of 2")
		r.wantMembers(two, "1=of 1 2=of 2")
		r.Check(two.Set(r.Ctx, []byte("x")))
		wait()
		f.want(r, "1=of 1 2=x")
		r.Check(one.Set(r.Ctx, []byte("something")))
		wait()
		f.want(r, "1=something 2=x")
		if n, _ := r.Srv.Node("/workers"); !n.Container || r.Srv.WatchCount() != 4 { // one follows three nodes, two follows its own
			r.Errorf("%+v, %d watches", n, r.Srv.WatchCount())
		}
		r.Check(two.Close())
		wait()
		f.want(r, "1=something")
		r.wantMembers(one, "1=something")
		// A reconnection tells that the members are stale, and current again.
		r.Srv.CutAll()
		time.Sleep(testrig.SessionTimeout)
		f.want(r, "1=something", "1=something")
		r.Check(r.Srv.Delete("/workers/1")) // an operator: it comes back, maybe before it is missed
		time.Sleep(5 * time.Second)
		r.wantMembers(one, "1=something")
		f.mu.Lock()
		if all := strings.Join(f.all, ", "); f.err != nil || all != "" && all != ", 1=something" {
			r.Errorf("told %q, %v", all, f.err)
		}
		f.mu.Unlock()
		cancel()
		r.closed(one.PersistentNode)
		if one.ID() != "1" {
			r.Error(one.ID())
		}
	})
}

// All see the same members: also the node of another process with this member's id, and an
// onlooker sees the members without an id of its own.
func TestAllSeeTheSameMembers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		two := r.member(b, "2")
		_, err := b.Create(r.Ctx, "/workers/1", []byte("foreign"), client.Ephemeral(), client.WithParents())
		r.Check(err)
		one := r.member(a, "1")
		time.Sleep(time.Second)
		r.wantMembers(one, "1=foreign 2=of 2")
		r.wantMembers(two, "1=foreign 2=of 2")
		onlooker, err := nodes.NewGroup(r.Connect("c"), "/workers")
		r.Check(err)
		now, err := onlooker.Members(r.Ctx)
		r.Check(err)
		if listed(now) != "1=foreign 2=of 2" {
			r.Errorf("the onlooker sees %q", listed(now))
		}
		ctx, cancel := context.WithCancel(r.Ctx)
		f := r.follow(ctx, one.Group)
		time.Sleep(time.Second)
		f.want(r, "1=foreign 2=of 2")
		r.Check(b.Delete(r.Ctx, "/workers/1", client.AnyVersion))
		r.Check(one.Wait(r.Ctx))
		time.Sleep(time.Second)
		f.mu.Lock()
		if last := len(f.all) - 1; last < 0 || f.all[last] != "1=of 1 2=of 2" {
			r.Errorf("told %q", f.all)
		}
		f.all = nil
		f.mu.Unlock()
		for range 3 {
			r.Srv.Client("a").PartitionReplies()
			s, err := a.Session(r.Ctx)
			r.Check(err)
			<-s.Context().Done()
			r.Srv.Client("a").Heal()
			r.Check(one.Wait(r.Within(testrig.SessionTimeout)))
			r.wantMembers(one, "1=of 1 2=of 2")
			r.wantMembers(two, "1=of 1 2=of 2")
		}
		f.mu.Lock()
		for i, told := range f.all {
			if told != "2=of 2" && told != "1=of 1 2=of 2" || i == len(f.all)-1 && told != "1=of 1 2=of 2" {
				r.Errorf("told %q", f.all)
			}
		}
		f.mu.Unlock()
		cancel()
		r.Check(two.CloseContext(r.Ctx))
		r.closed(one.PersistentNode)
	})
}

// A read that fails never passes for a member that has left (vitess 15632).
func TestMembersUnreadable(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		one, two := r.member(c, "1"), r.member(r.Connect("b"), "2")
		r.Check(one.Wait(r.Ctx))
		r.Check(two.Wait(r.Ctx))
		m := zktest.Match{Op: zktest.OpGetData, Client: "a", Path: "/workers/2"}
		r.Srv.Fail(m, zktest.CodeNoAuth)
		if now, err := one.Members(r.Ctx); now != nil || !errors.Is(err, client.ErrNoAuth) {
			r.Errorf("%v, %v", now, err)
		}
		for range one.MemberChanges(r.Ctx) {
			break
		}
		time.Sleep(5 * time.Second)
		if n := r.Srv.WatchCount(); n != 2 { // each member's on its own node
			r.Errorf("%d watches after the loop was left", n)
		}
		r.Check(two.Close())
		r.closed(one.PersistentNode)
		for _, id := range []string{"", "a/b", ".."} {
			if _, err := nodes.NewGroupMember(c, "/workers", id, nil); err == nil {
				r.Errorf("id %q: no error", id)
			}
		}
		if _, err := nodes.NewGroupMember(c, "/workers", "1", nil, nodes.WithProtection()); err == nil {
			r.Error("protected, and no error")
		}
		root, err := nodes.NewGroupMember(c, "/", "1", nil)
		r.Check(err)
		r.Check(root.Start(r.Ctx))
		if now, err := root.Members(r.Ctx); err != nil || now["1"] == nil && len(now) == 0 {
			r.Errorf("%v, %v", now, err)
		}
		r.Check(root.Close())
	})
}

// A client that is no member can follow as well, and the group may come and go.
func TestFollowMissingGroup(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		watcher, err := nodes.NewGroup(r.Connect("a"), "/workers")
		r.Check(err)
		ctx, cancel := context.WithCancel(r.Ctx)
		f := r.follow(ctx, watcher)
		c := r.Connect("b")
		time.Sleep(time.Second)
		f.want(r, "")
		for range 3 {
			g := r.member(c, "1")
			time.Sleep(time.Second)
			f.want(r, "1=of 1")
			r.Check(g.Close())
			r.Srv.Sweep()
			time.Sleep(time.Second)
			f.want(r, "")
			r.Srv.CutAll()
			time.Sleep(testrig.SessionTimeout)
			f.want(r, "", "") // stale, and current again
		}
		cancel()
		time.Sleep(5 * time.Second)
		testrig.WantNoGoroutine(t, ourFrames)
		r.WantNoWatch()
	})
}
