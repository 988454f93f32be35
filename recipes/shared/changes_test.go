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
		c := r.connect("a")
		a, b := r.sharedCount(c, 1), r.sharedCount(r.connect("b"), 10)
		var one, two followed
		stopOne, stopTwo := a.Listen(r.ctx, one.add), a.Listen(r.ctx, two.add)
		wait := func() { time.Sleep(time.Second); synctest.Wait() }
		wait()
		one.want(r, 1)
		r.wantCount(b, 1) // the first seed is the value
		if n := r.srv.WatchCount(); n != 1 {
			r.Errorf("%d watches for two listeners", n)
		}
		for v := range int32(10) {
			r.check(b.Set(r.ctx, v))
			wait()
			one.want(r, v)
		}
		r.srv.CutAll()
		wait()
		one.want(r)
		r.srv.Client("a").Partition()
		r.check(b.Set(r.ctx, 20))
		time.Sleep(time.Second)
		r.srv.Client("a").Heal()
		time.Sleep(5 * time.Second)
		one.want(r, 20)
		r.srv.ExpireSession(r.session(c))
		r.check(b.Set(r.ctx, 30))
		time.Sleep(5 * time.Second)
		one.want(r, 30)
		r.check(b.Set(r.ctx, 31))
		wait()
		one.want(r, 31)
		stopOne()
		r.check(b.Set(r.ctx, 40))
		wait()
		one.want(r)
		if last := two.all[len(two.all)-1]; last != 40 {
			r.Errorf("the other follows up to %d", last)
		}
		stopTwo()
		stopTwo()
		wantNoGoroutine(r.T)
	})
}

// A node that is deleted and made again is followed; Curator's follower goes
// blind (curator-layout: shared values). A follower does not make the node again.
func TestSharedCountSurvivesDeletion(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.sharedCount(r.connect("a"), 1), r.sharedCount(r.connect("b"), 2)
		var got followed
		stop := a.Listen(r.ctx, got.add)
		time.Sleep(time.Second)
		got.want(r, 1)
		for range 3 {
			r.check(r.srv.Delete("/counts"))
			time.Sleep(time.Second)
			got.want(r)
			if _, there := r.srv.Node(countPath); there {
				r.Error("a follower has made the node again")
			}
			if n := r.srv.WatchCount(); n != 1 {
				r.Errorf("%d watches", n)
			}
			r.wantCount(b, 2)
			time.Sleep(time.Second)
			got.want(r, 2)
			r.check(b.Set(r.ctx, 3))
			time.Sleep(time.Second)
			got.want(r, 3)
		}
		// Deleted and made again in one moment, and between two reads.
		r.check(r.srv.Delete(countPath))
		r.check(r.srv.Create(countPath, []byte{0, 0, 0, 4}))
		time.Sleep(time.Second)
		got.want(r, 4)
		r.srv.BeforeApply(zktest.Match{Op: zktest.OpExists, Client: "a"}, func(context.Context, zktest.Request) {
			r.check(r.srv.Create(countPath, []byte{0, 0, 0, 5}))
		})
		r.check(r.srv.Delete(countPath))
		time.Sleep(time.Second)
		got.want(r, 5)
		stop()
		wantNoGoroutine(r.T)
	})
}

// It ends with its context, the loop, the client, or a refusal.
func TestSharedCountChangesEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		s := r.sharedCount(c, 1)
		follow := func(ctx context.Context) (n int, last error) {
			for _, err := range s.Changes(ctx) {
				n, last = n+1, err
			}
			return n, last
		}
		if n, err := follow(r.within(time.Second)); n != 1 || err != nil {
			r.Errorf("until its context ends: %d, %v", n, err)
		}
		if n, err := follow(r.within(-1)); n != 0 || err != nil {
			r.Errorf("with a context that has ended: %d, %v", n, err)
		}
		r.srv.Freeze()
		if n, err := follow(r.within(time.Second)); n != 0 || err != nil {
			r.Errorf("without an answer: %d, %v", n, err)
		}
		r.srv.Thaw()
		for range s.Changes(r.ctx) {
			break
		}
		r.srv.Fail(zktest.Match{Op: zktest.OpGetData, Client: "a"}, zktest.CodeNoAuth)
		if n, err := follow(r.ctx); n != 1 || !errors.Is(err, zk.ErrNoAuth) {
			r.Errorf("refused: %d, %v", n, err)
		}
		var got followed
		stop := s.Listen(r.ctx, got.add)
		closed := make(chan error, 1)
		time.AfterFunc(time.Second, func() { closed <- c.CloseContext(r.ctx) })
		if n, err := follow(r.ctx); n != 2 || !errors.Is(err, client.ErrClosed) {
			r.Errorf("closed: %d, %v", n, err)
		}
		r.check(<-closed)
		wantNoGoroutine(r.T)
		stop()
		if n := r.srv.WatchCount(); n != 0 {
			r.Errorf("%d watches", n)
		}
	})
}
