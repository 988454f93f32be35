package shared_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/zktest"
)

// followed collects what Listen tells.
type followed struct {
	mu  sync.Mutex
	all []int32
}

func (f *followed) add(v shared.VersionedCount) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, v.Value)
}

func (f *followed) want(r *rig, values ...int32) {
	r.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.all, values) {
		r.Errorf("followed %v, want %v", f.all, values)
	}
	f.all = nil
}

// Every follower hears of every value, once, wherever it is set. So it is after a
// lost connection and after a lost session (TestSharedCount.testMultiClients,
// testMultiClientDifferentSeed, testDisconnectEventOnWatcherDoesNotRetry,
// testDisconnectReconnectEventDoesNotFireValueWatcher).
func TestSharedCountFollowed(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		a, b := r.sharedCount(c, 1), r.sharedCount(r.Connect("b"), 10)
		var one, two followed
		stopOne, stopTwo := a.Listen(r.Ctx, one.add), a.Listen(r.Ctx, two.add)
		wait := func() { time.Sleep(time.Second); synctest.Wait() }
		wait()
		one.want(r, 1)
		r.wantCount(b, 1) // the first seed is the value
		if n := r.Srv.WatchCount(); n != 1 {
			r.Errorf("%d watches for two listeners", n)
		}
		for v := range int32(10) {
			r.Check(b.Set(r.Ctx, v))
			wait()
			one.want(r, v)
		}
		r.Srv.CutAll()
		wait()
		one.want(r)
		r.Srv.Client("a").Partition()
		r.Check(b.Set(r.Ctx, 20))
		time.Sleep(time.Second)
		r.Srv.Client("a").Heal()
		time.Sleep(5 * time.Second)
		one.want(r, 20)
		r.Srv.ExpireSession(r.SessionID(c))
		r.Check(b.Set(r.Ctx, 30))
		time.Sleep(5 * time.Second)
		one.want(r, 30)
		r.Check(b.Set(r.Ctx, 31))
		wait()
		one.want(r, 31)
		stopOne()
		r.Check(b.Set(r.Ctx, 40))
		wait()
		one.want(r)
		if last := two.all[len(two.all)-1]; last != 40 {
			r.Errorf("the other follows up to %d", last)
		}
		stopTwo()
		stopTwo()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// A node that is deleted and made again is followed; Curator's follower goes
// blind (curator-layout: shared values). A follower does not make the node again.
func TestSharedCountSurvivesDeletion(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.sharedCount(r.Connect("a"), 1), r.sharedCount(r.Connect("b"), 2)
		var got followed
		stop := a.Listen(r.Ctx, got.add)
		time.Sleep(time.Second)
		got.want(r, 1)
		for range 3 {
			r.Check(r.Srv.Delete("/counts"))
			time.Sleep(time.Second)
			got.want(r)
			if _, there := r.Srv.Node(countPath); there {
				r.Error("a follower has made the node again")
			}
			if n := r.Srv.WatchCount(); n != 1 {
				r.Errorf("%d watches", n)
			}
			r.wantCount(b, 2)
			time.Sleep(time.Second)
			got.want(r, 2)
			r.Check(b.Set(r.Ctx, 3))
			time.Sleep(time.Second)
			got.want(r, 3)
		}
		// Deleted and made again in one moment, and between two reads.
		r.Check(r.Srv.Delete(countPath))
		r.Check(r.Srv.Create(countPath, []byte{0, 0, 0, 4}))
		time.Sleep(time.Second)
		got.want(r, 4)
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpExists, Client: "a"}, func(context.Context, zktest.Request) {
			r.Check(r.Srv.Create(countPath, []byte{0, 0, 0, 5}))
		})
		r.Check(r.Srv.Delete(countPath))
		time.Sleep(time.Second)
		got.want(r, 5)
		stop()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// It ends with its context, the loop, the client, or a refusal.
func TestSharedCountChangesEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.sharedCount(c, 1)
		follow := func(ctx context.Context) (n int, last error) {
			for _, err := range s.Changes(ctx) {
				n, last = n+1, err
			}
			return n, last
		}
		if n, err := follow(r.Within(time.Second)); n != 1 || err != nil {
			r.Errorf("until its context ends: %d, %v", n, err)
		}
		if n, err := follow(r.Within(-1)); n != 0 || err != nil {
			r.Errorf("with a context that has ended: %d, %v", n, err)
		}
		r.Srv.Freeze()
		if n, err := follow(r.Within(time.Second)); n != 0 || err != nil {
			r.Errorf("without an answer: %d, %v", n, err)
		}
		r.Srv.Thaw()
		for range s.Changes(r.Ctx) {
			break
		}
		r.Srv.Fail(zktest.Match{Op: zktest.OpGetData, Client: "a"}, zktest.CodeNoAuth)
		if n, err := follow(r.Ctx); n != 1 || !errors.Is(err, zk.ErrNoAuth) {
			r.Errorf("refused: %d, %v", n, err)
		}
		var got followed
		stop := s.Listen(r.Ctx, got.add)
		closed := make(chan error, 1)
		time.AfterFunc(time.Second, func() { closed <- c.CloseContext(r.Ctx) })
		if n, err := follow(r.Ctx); n != 2 || !errors.Is(err, client.ErrClosed) {
			r.Errorf("closed: %d, %v", n, err)
		}
		r.Check(<-closed)
		testrig.WantNoGoroutine(r.T, ourFrames)
		stop()
		r.WantNoWatch()
	})
}
