package nodes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// A client is closed while its members are stale: the loop of MemberChanges ends, and "the
// error of its last pair then matches client.ErrClosed".
func TestMembersClosedWhileStale(t *testing.T) {
	t.Parallel()
	for name, stale := range map[string]func(*rig){
		"partition": func(r *rig) { r.Srv.Client("a").Partition() },
		"unreadable": func(r *rig) {
			r.Srv.Fail(zktest.Match{Op: zktest.OpGetData, Client: "a", Path: "/workers/2", Times: zktest.Always}, zktest.CodeNoAuth)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				two := r.member(r.Connect("b"), "2")
				r.Check(two.Wait(r.Ctx))
				c := r.Connect("a")
				watcher, err := nodes.NewGroup(c, "/workers")
				r.Check(err)
				if name == "unreadable" {
					stale(r)
				}
				told, ended := r.told(r.Ctx, watcher)
				time.Sleep(time.Second)
				if name == "partition" {
					stale(r)
				}
				time.Sleep(testrig.SessionTimeout)
				r.Logf("%s: %q", name, told())
				ctx, cancel := context.WithTimeout(r.Ctx, 20*time.Second)
				defer cancel()
				_ = c.CloseContext(ctx)
				if err := <-ended; !errors.Is(err, client.ErrClosed) {
					r.Errorf("%s: the last pair's error: %v", name, err)
				}
			})
		})
	}
}
