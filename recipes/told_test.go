package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// Close tells the holder before it gives the lock away, also when the answer
// to the end of the session never comes.
func TestCloseTellsTheHolderFirst(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		h := r.held(r.mutex(a))
		r.Srv.StallReply(zktest.Match{Client: "a", Op: zktest.OpCloseSession})
		closed := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(r.Ctx, 30*time.Second)
			defer cancel()
			closed <- a.CloseContext(ctx)
		}()
		next := r.held(r.mutex(b))
		if h.Err() == nil || h.Context().Err() == nil {
			t.Errorf("another holds, and the holder was not told: %v, %v", h.Err(), h.Context().Err())
		}
		if cause := context.Cause(h.Context()); !errors.Is(cause, recipes.ErrLost) || !errors.Is(cause, client.ErrClosed) {
			t.Errorf("cause %v", cause)
		}
		r.Check(next.Close())
		<-closed
	})
}

// A server that grants less on a reconnection moves the moment at which the
// holder is told.
func TestShrinkingTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const less = 6 * time.Second
		a, b := r.Connect("a", client.WithSessionTimeout(20*time.Second)), r.Connect("b")
		h := r.held(r.mutex(a))
		r.Srv.SetSessionTimeouts(time.Second, less)
		r.Srv.CutAll()
		time.Sleep(time.Second)
		s, err := a.Session(r.Ctx)
		r.Check(err)
		if s.Timeout() != less {
			t.Fatalf("timeout %v: nothing is tested", s.Timeout())
		}
		time.Sleep(100 * time.Millisecond)
		r.Srv.Client("a").Partition()
		next := r.held(r.mutex(b))
		if h.Context().Err() == nil {
			t.Error("another holds, and the holder's context lives")
		}
		r.Check(next.Close())
	})
}

// The holder's own node stays watched when the client's retry policy gives up.
func TestOwnNodeIsWatchedThroughABlip(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.Connect("a", client.WithRetry(retry.None()))))
		lost := r.Srv.LoseReply(zktest.Match{Client: "a", Op: zktest.OpGetData})
		time.Sleep(2 * time.Second)
		r.Check(h.Err())
		if lost.Fired() != 1 {
			t.Fatal("the watch was not cut: nothing is tested")
		}
		r.Check(r.Srv.Delete(h.Path()))
		time.Sleep(testrig.SessionTimeout)
		if !errors.Is(context.Cause(h.Context()), recipes.ErrNodeDeleted) {
			t.Errorf("the node is gone and the hold says %v", context.Cause(h.Context()))
		}
	})
}

// The contender ahead of a TryAcquire leaves while TryAcquire asks for its name:
// then TryAcquire holds.
func TestTryAcquireDoesNotNameItself(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		r.Check(r.held(r.mutex(a)).Close())
		var other *recipes.Hold
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpCreate, PathPrefix: dir}, func(ctx context.Context, _ zktest.Request) {
			other, _ = r.mutex(b).Acquire(ctx)
		})
		left := r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: dir, Nth: 3}, func(ctx context.Context, _ zktest.Request) {
			_ = other.Release(ctx)
		})
		h, err := r.mutex(a).TryAcquire(r.Ctx)
		r.Check(err)
		if left.Fired() != 1 {
			t.Fatal("the holder did not leave: nothing is tested")
		}
		r.Check(h.Close())
		r.empty()
	})
}

// Nodes hold bytes, never null, which Java would hand to its users as such.
func TestNoNullData(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		h := r.held(r.mutex(c, recipes.WithNodeData(nil)))
		for _, path := range []string{"/locks", dir, h.Path()} {
			n, ok := r.Srv.Node(path)
			if !ok || n.Data == nil || len(n.Data) != 0 {
				t.Errorf("%s: data %#v, want no bytes", path, n.Data)
			}
		}
		r.Check(h.Close())
	})
}

// A session that was lost unnoticed before the Acquire had no place to lose.
func TestAcquireAfterUnnoticedLoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		was := r.SessionID(c)
		r.Srv.ExpireSession(was)
		h := r.held(r.mutex(c))
		if r.SessionID(c) == was {
			t.Error("the session lives: nothing is tested")
		}
		r.Check(h.Close())
		r.empty()
	})
}

// Repeated refusals near the end of the counter do not use one more number each
// time. The refusal ends when the directory is made again.
func TestRefusalUsesNoNumbers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		r.Check(r.held(m).Close())
		r.Check(r.Srv.SetCounter(dir, 1<<31-1<<20))
		for range 5 {
			_, err := m.Acquire(r.Ctx)
			if !errors.Is(err, recipes.ErrSequenceExhausted) {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		n, _ := r.Srv.Node(dir)
		if used := n.Counter - (1<<31 - 1<<20); used != 1 {
			t.Errorf("five refusals used %d numbers", used)
		}
		r.Check(r.Srv.Delete(dir))
		r.Check(r.held(m).Close())
	})
}

// A release that is refused for want of rights is made good when they are
// given: until then others wait, and no longer.
func TestRefusedReleaseIsMadeGood(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.Connect("a")))
		next := acquire(r.Within(20*time.Minute), r.mutex(r.Connect("b")))
		time.Sleep(time.Second)
		admin := r.Connect("admin")
		_, err := admin.SetACL(r.Ctx, dir, zk.WorldACL(zk.PermAll&^zk.PermDelete), client.AnyVersion)
		r.Check(err)
		testrig.WantErr(t, h.Release(r.Ctx), zk.ErrNoAuth)
		time.Sleep(10 * time.Minute)
		began := time.Now()
		_, err = admin.SetACL(r.Ctx, dir, zk.WorldACL(zk.PermAll), client.AnyVersion)
		r.Check(err)
		res := <-next
		r.Check(res.err)
		if took := time.Since(began); took > 5*time.Second {
			r.Errorf("handed over %v after the right was given", took)
		}
		r.Check(res.hold.Close())
		r.empty()
	})
}
