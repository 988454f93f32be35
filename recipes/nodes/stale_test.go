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
				wantErr(r.T, err, nodes.ErrStale)
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
		two := r.member(r.connect("b"), "2")
		r.check(two.Wait(r.ctx))
		watcher, err := nodes.NewGroup(r.connect("a"), "/workers")
		r.check(err)
		ctx, cancel := context.WithCancel(r.ctx)
		told, ended := r.told(ctx, watcher)
		time.Sleep(time.Second)
		wantTold(t, told(), "2=of 2")
		link := r.srv.Client("a")

		link.Cut()
		time.Sleep(sessionTimeout)
		wantTold(t, told(), "stale: 2=of 2", "2=of 2")

		link.Partition() // nothing is heard
		time.Sleep(2 * sessionTimeout / 3)
		r.check(two.Set(r.ctx, []byte("new")))
		time.Sleep(time.Second)
		wantTold(t, told(), "stale: 2=of 2")
		time.Sleep(5 * sessionTimeout) // the session is lost
		wantTold(t, told())
		link.Heal()
		time.Sleep(sessionTimeout)
		wantTold(t, told(), "2=new")

		r.srv.ExpireSession(r.session(r.connect("c"))) // of another client
		time.Sleep(time.Second)
		wantTold(t, told())
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.check(two.Close())
		time.Sleep(5 * time.Second)
		wantNoGoroutine(t)
		if n := r.srv.WatchCount(); n != 0 {
			t.Errorf("%d watches left", n)
		}
	})
}

// A member that cannot be read does not end the following, and hides no other. It keeps
// the data that was read last. Its error names it.
func TestUnreadableMember(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		b := r.connect("b")
		one, two := r.member(b, "1"), r.member(b, "2")
		r.check(one.Wait(r.ctx))
		r.check(two.Wait(r.ctx))
		watcher, err := nodes.NewGroup(r.connect("a"), "/workers")
		r.check(err)
		unreadable := func(id string) *zktest.Rule {
			return r.srv.Fail(zktest.Match{Op: zktest.OpGetData, Client: "a", Path: "/workers/" + id, Times: zktest.Always}, zktest.CodeNoAuth)
		}
		rule := unreadable("2")
		for now, err := range watcher.MemberChanges(r.ctx) {
			wantErr(t, err, nodes.ErrStale, client.ErrNoAuth)
			if listed(now) != "1=of 1" || !strings.Contains(err.Error(), "/workers/2") {
				t.Errorf("%v, %v", now, err)
			}
			break
		}
		told, ended := r.told(r.ctx, watcher)
		time.Sleep(time.Minute)
		wantTold(t, told(), "stale: 1=of 1")
		r.check(one.Set(r.ctx, []byte("new")))
		three := r.member(b, "3")
		r.check(three.Wait(r.ctx))
		time.Sleep(time.Second)
		if got := told(); len(got) == 0 || got[len(got)-1] != "stale: 1=new 3=of 3" {
			t.Errorf("told %q", got)
		}
		rule.Remove()
		time.Sleep(3 * time.Second)
		wantTold(t, told(), "1=new 2=of 2 3=of 3")

		rule = unreadable("2")
		r.check(two.Set(r.ctx, []byte("unread")))
		time.Sleep(time.Second)
		wantTold(t, told(), "stale: 1=new 2=of 2 3=of 3")
		before := r.srv.Count(zktest.OpGetData)
		time.Sleep(100 * time.Second)
		if n := r.srv.Count(zktest.OpGetData) - before; n < 20 || n > 200 {
			t.Errorf("%d reads in 100 s", n)
		}
		rule.Remove()
		time.Sleep(3 * time.Second)
		wantTold(t, told(), "1=new 2=unread 3=of 3")

		list := r.srv.Fail(zktest.Match{Op: zktest.OpGetChildren2, Client: "a", Times: zktest.Always}, zktest.CodeNoAuth)
		r.check(three.Close())
		time.Sleep(10 * time.Second)
		if got := told(); len(got) == 0 || !strings.HasPrefix(got[0], "stale: 1=new 2=unread") {
			t.Errorf("told %q", got)
		}
		list.Remove()
		time.Sleep(3 * time.Second)
		wantTold(t, told(), "1=new 2=unread")
		r.check(one.Close())
		r.check(two.Close())
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
		r.srv.Stop()
		c := r.connect("a", client.WithLazyConnect())
		watcher, err := nodes.NewGroup(c, "/workers")
		r.check(err)
		told, ended := r.told(r.ctx, watcher)
		time.Sleep(time.Minute)
		wantTold(t, told(), "stale: nil")
		r.srv.Resume()
		time.Sleep(sessionTimeout)
		wantTold(t, told(), "")
		r.check(c.Close())
		time.Sleep(time.Second)
		if err := <-ended; !errors.Is(err, client.ErrClosed) {
			t.Error(err)
		}
		wantTold(t, told(), "stale: ")
		wantNoGoroutine(t)
	})
}
