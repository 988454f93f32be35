package nodes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// Each map of MemberChanges is the caller's, with the data in it.
func TestMembersAreTheCallers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		one := r.member(a, "1")
		r.Check(one.Wait(r.Ctx))
		var two *nodes.GroupMember
		for now, err := range one.MemberChanges(r.Ctx) {
			r.Check(err)
			if two != nil {
				if listed(now) != "1=of 1 2=of 2" {
					r.Errorf("members %q", listed(now))
				}
				break
			}
			copy(now["1"], "XXXX")
			two = r.member(b, "2")
		}
		r.Check(two.Close())
		r.Check(one.Close())
	})
}

// MemberChanges reads many members at once, and goes on among more of them than
// reflect.Select takes channels.
func TestManyMembers(t *testing.T) {
	t.Parallel()
	for _, n := range []int{320, 66_000} {
		bubble(t, func(r *rig) {
			r.Check(r.Srv.Create("/workers", nil))
			for i := range n {
				r.Check(r.Srv.Create(fmt.Sprintf("/workers/%06d", i), nil))
			}
			watcher, err := nodes.NewGroup(r.Connect("a"), "/workers")
			r.Check(err)
			ctx, cancel := context.WithTimeout(r.Ctx, time.Minute)
			defer cancel()
			begun, seen := time.Now(), 0
			for now, err := range watcher.MemberChanges(ctx) {
				r.Check(err)
				if seen++; seen == 1 {
					if took := time.Since(begun); n < 1000 && took > time.Duration(n)*time.Millisecond/4 {
						r.Errorf("%d members were read in %v", n, took)
					}
					r.Check(r.Srv.SetData("/workers/000007", []byte("x")))
					continue
				}
				if string(now["000007"]) != "x" || len(now) != n {
					r.Errorf("%q of %d members", now["000007"], len(now))
				}
				break
			}
			if seen != 2 {
				r.Errorf("told %d times", seen)
			}
		}, zktest.WithLogSize(10))
	}
}

// Without the path of a group the error says so, and does not blame the id.
func TestGroupWithoutPath(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		_, err := nodes.NewGroupMember(r.Connect("a"), "", "w1", nil)
		if err == nil || err.Error() != `nodes: the path of the group is ""; give it a path like "/workers"` {
			r.Error(err)
		}
	})
}
