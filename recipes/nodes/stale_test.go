package nodes_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// told collects what MemberChanges yields, with "stale: " before what may be old.
func (r *rig) told(ctx context.Context, g *nodes.Group) (all func() []string, ended <-chan error) {
	f, last := &follower{}, make(chan error, 1)
	go func() {
		var final error
		for now, err := range g.MemberChanges(ctx) {
			text := listed(now)
			if final = err; err != nil {
				testrig.WantErr(r.T, err, nodes.ErrStale)
				text = "stale: " + text
			}
			if now == nil {
				text += "nil"
			}
			f.mu.Lock()
			f.all = append(f.all, text)
			f.mu.Unlock()
		}
		last <- final
	}()
	return func() []string {
		synctest.Wait()
		f.mu.Lock()
		defer f.mu.Unlock()
		now := f.all
		f.all = nil
		return now
	}, last
}

func wantTold(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// A reader is told when the members may be old, and when they are current again, also if
// nothing has changed: when the connection is cut, when the session is lost, and when the
// connection is cut without a sign.
func TestMembersAreStale(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		two := r.member(r.Connect("b"), "2")
		r.Check(two.Wait(r.Ctx))
		watcher, err := nodes.NewGroup(r.Connect("a"), "/workers")
		r.Check(err)
		ctx, cancel := context.WithCancel(r.Ctx)
		told, ended := r.told(ctx, watcher)
		time.Sleep(time.Second)
		wantTold(t, told(), "2=of 2")
		link := r.Srv.Client("a")

		link.Cut()
		time.Sleep(testrig.SessionTimeout)
		wantTold(t, told(), "stale: 2=of 2", "2=of 2")

		link.Partition() // nothing is heard
		time.Sleep(2 * testrig.SessionTimeout / 3)
		r.Check(two.Set(r.Ctx, []byte("new")))
		time.Sleep(time.Second)
		wantTold(t, told(), "stale: 2=of 2")
		time.Sleep(5 * testrig.SessionTimeout) // the session is lost
		wantTold(t, told())
		link.Heal()
		time.Sleep(testrig.SessionTimeout)
		wantTold(t, told(), "2=new")

		r.Srv.ExpireSession(r.SessionID(r.Connect("c"))) // of another client
		time.Sleep(time.Second)
		wantTold(t, told())
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.Check(two.Close())
		time.Sleep(5 * time.Second)
		testrig.WantNoGoroutine(t, ourFrames)
		r.WantNoWatch()
	})
}

// A member that cannot be read does not end the following, and hides no other. It keeps
// the data that was read last. Its error names it.
func TestUnreadableMember(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		b := r.Connect("b")
		one, two := r.member(b, "1"), r.member(b, "2")
		r.Check(one.Wait(r.Ctx))
		r.Check(two.Wait(r.Ctx))
		watcher, err := nodes.NewGroup(r.Connect("a"), "/workers")
		r.Check(err)
		unreadable := func(id string) *zktest.Rule {
			return r.Srv.Fail(zktest.Match{Op: zktest.OpGetData, Client: "a", Path: "/workers/" + id, Times: zktest.Always}, zktest.CodeNoAuth)
		}
		rule := unreadable("2")
		for now, err := range watcher.MemberChanges(r.Ctx) {
			testrig.WantErr(t, err, nodes.ErrStale, client.ErrNoAuth)
			if listed(now) != "1=of 1" || !strings.Contains(err.Error(), "/workers/2") {
				t.Errorf("%v, %v", now, err)
			}
			break
		}
		told, ended := r.told(r.Ctx, watcher)
		time.Sleep(time.Minute)
		wantTold(t, told(), "stale: 1=of 1")
		r.Check(one.Set(r.Ctx, []byte("new")))
		three := r.member(b, "3")
		r.Check(three.Wait(r.Ctx))
		time.Sleep(time.Second)
		if got := told(); len(got) == 0 || got[len(got)-1] != "stale: 1=new 3=of 3" {
			t.Errorf("told %q", got)
		}
		rule.Remove()
		time.Sleep(3 * time.Second)
		wantTold(t, told(), "1=new 2=of 2 3=of 3")

		rule = unreadable("2")
		r.Check(two.Set(r.Ctx, []byte("unread")))
		time.Sleep(time.Second)
		wantTold(t, told(), "stale: 1=new 2=of 2 3=of 3")
		before := r.Srv.Count(zktest.OpGetData)
		time.Sleep(100 * time.Second)
		if n := r.Srv.Count(zktest.OpGetData) - before; n < 20 || n > 200 {
			t.Errorf("%d reads in 100 s", n)
		}
		rule.Remove()
		time.Sleep(3 * time.Second)
		wantTold(t, told(), "1=new 2=unread 3=of 3")

		list := r.Srv.Fail(zktest.Match{Op: zktest.OpGetChildren2, Client: "a", Times: zktest.Always}, zktest.CodeNoAuth)
		r.Check(three.Close())
		time.Sleep(10 * time.Second)
		if got := told(); len(got) == 0 || !strings.HasPrefix(got[0], "stale: 1=new 2=unread") {
			t.Errorf("told %q", got)
		}
		list.Remove()
		time.Sleep(3 * time.Second)
		wantTold(t, told(), "1=new 2=unread")
		r.Check(one.Close())
		r.Check(two.Close())
		select {
		case err := <-ended:
			t.Errorf("it has ended: %v", err)
		default:
		}
	})
}

// Without servers the reader is told so, with nil. When the client is closed, the last pair
// says so.
func TestStaleFromTheBeginning(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Srv.Stop()
		c := r.Connect("a", client.WithLazyConnect())
		watcher, err := nodes.NewGroup(c, "/workers")
		r.Check(err)
		told, ended := r.told(r.Ctx, watcher)
		time.Sleep(time.Minute)
		wantTold(t, told(), "stale: nil")
		r.Srv.Resume()
		time.Sleep(testrig.SessionTimeout)
		wantTold(t, told(), "")
		r.Check(c.Close())
		time.Sleep(time.Second)
		if err := <-ended; !errors.Is(err, client.ErrClosed) {
			t.Error(err)
		}
		wantTold(t, told(), "stale: ")
		testrig.WantNoGoroutine(t, ourFrames)
	})
}
