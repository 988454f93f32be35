package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// strangers runs f on servers of every kind. The contenders give no other client
// a right on their nodes, in directories that are open to all.
func strangers(t *testing.T, f func(*rig)) {
	t.Helper()
	strangersOn(t, f, zktest.ZooKeeper380, zktest.ZooKeeper384, zktest.ZooKeeper39)
}

func strangersOn(t *testing.T, f func(*rig), versions ...zktest.Version) {
	t.Helper()
	for _, v := range versions {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			bubbleWith(t, func(r *rig) {
				for _, d := range []string{dir, poolQueue, poolLeases, "/rw"} {
					r.Check(r.Srv.Create(d, nil))
				}
				f(r)
			}, zktest.WithVersion(v))
		})
	}
}

// stranger is a client with an identity of its own, and the ACL of its nodes.
func (r *rig) stranger(name string) (*client.Client, recipes.NodeOption) {
	r.Helper()
	return r.Connect(name, client.WithAuth("digest", name+":"+name)), recipes.WithNodeACL(zk.AuthACL(zk.PermAll)...)
}

// A waiter behind a node that it may not read is granted in its turn. A release
// may delete the node, or the end of its session.
func TestMutexBehindUnreadableNode(t *testing.T) {
	t.Parallel()
	strangers(t, func(r *rig) {
		const n = 4
		var waits [n]<-chan result
		var clients [n]*client.Client
		for i := range n {
			c, acl := r.stranger(name(i))
			clients[i] = c
			waits[i] = acquire(r.Ctx, r.mutex(c, acl))
			time.Sleep(time.Second)
		}
		for i := range n {
			got := <-waits[i]
			r.Check(got.err)
			for _, w := range waits[i+1:] {
				if len(w) != 0 {
					r.Fatalf("%d holds, and one behind it", i)
				}
			}
			if i%2 == 0 {
				r.Check(got.hold.Release(r.Ctx))
			} else {
				r.Srv.ExpireSession(r.SessionID(clients[i]))
			}
		}
		r.empty()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// The waiter's own end is heard of as well.
func TestMutexBehindUnreadableNodeGivesUp(t *testing.T) {
	t.Parallel()
	strangers(t, func(r *rig) {
		a, acl := r.stranger("a")
		h := r.held(r.mutex(a, acl))
		b, acl := r.stranger("b")
		_, err := r.mutex(b, acl).Acquire(r.Within(time.Second))
		testrig.WantErr(r.T, err, context.DeadlineExceeded)
		if !strings.Contains(fmt.Sprint(err), "waiting behind holder "+dir+"/_c_") {
			r.Errorf("error %v", err)
		}
		waits := acquire(r.Ctx, r.mutex(b, acl))
		time.Sleep(time.Second)
		r.Srv.ExpireSession(r.SessionID(b))
		testrig.WantErr(r.T, (<-waits).err, client.ErrSessionLost)
		r.Check(h.Release(r.Ctx))
		r.empty()
	})
}

// The holder is named as far as the name of its node tells.
func TestUnreadableContenders(t *testing.T) {
	t.Parallel()
	strangers(t, func(r *rig) {
		a, acl := r.stranger("a")
		b, theirs := r.stranger("b")
		h := r.held(r.mutex(a, acl))
		_, err := r.mutex(b, theirs).TryAcquire(r.Ctx)
		var busy *recipes.BusyError
		if !errors.As(err, &busy) || !busy.Holder.Unreadable || busy.Holder.Path != h.Path() || !busy.Holder.Holder || busy.Holder.Age(time.Now()) != 0 {
			r.Errorf("TryAcquire: %v", err)
		}
		if text := fmt.Sprint(err); !strings.Contains(text, h.Path()) || !strings.Contains(text, "may not read") {
			r.Errorf("error %q", text)
		}
		q, err := r.mutex(b, theirs).Queue(r.Ctx)
		r.Check(err)
		if len(q) != 1 || !q[0].Unreadable || !q[0].Holder || q[0].Session != 0 || q[0].Mode != recipes.ModeExclusive {
			r.Errorf("Queue: %v", q)
		}
		q, err = r.mutex(a, acl).Queue(r.Ctx)
		r.Check(err)
		if len(q) != 1 || q[0].Unreadable || q[0].Session == 0 {
			r.Errorf("Queue of the holder: %v", q)
		}
		r.Check(h.Release(r.Ctx))
	})
}

// An unreadable lease takes its permit and no more.
func TestSemaphoreUnreadableLeases(t *testing.T) {
	t.Parallel()
	strangers(t, func(r *rig) {
		a, acl := r.stranger("a")
		b, theirs := r.stranger("b")
		mine, err := recipes.NewInterProcessSemaphoreV2(a, pool, 2, acl)
		r.Check(err)
		other, err := recipes.NewInterProcessSemaphoreV2(b, pool, 2, theirs)
		r.Check(err)
		first, second := r.lease(mine, 1), r.lease(mine, 1)
		_, err = other.TryAcquire(r.Ctx, 1)
		var busy *recipes.BusyError
		if !errors.As(err, &busy) || !busy.Holder.Unreadable || busy.Holder.Mode != recipes.ModeLease {
			r.Errorf("TryAcquire: %v", err)
		}
		if q, err := other.Queue(r.Ctx); err != nil || len(q) != 2 {
			r.Errorf("Queue: %v, %v", q, err)
		}
		waits := acquireLease(r.Ctx, other, 1)
		r.wantWaiting(waits)
		r.Check(first.Release(r.Ctx))
		got := <-waits
		r.Check(got.err)
		_, err = mine.TryAcquire(r.Ctx, 1) // one lease is its own, one it may not read
		testrig.WantErr(r.T, err, recipes.ErrBusy)
		r.Check(second.Release(r.Ctx))
		r.Check(got.lease.Release(r.Ctx))
		r.Check(r.lease(other, 2).Close())
		r.drained()
	})
}

// A lease that may be read later is looked at then: a persistent node takes no
// permit. ZooKeeper 3.8.0 tells of a node's owner without READ.
func TestSemaphoreLeaseBecomesReadable(t *testing.T) {
	t.Parallel()
	strangersOn(t, func(r *rig) {
		a, _ := r.stranger("a")
		b, theirs := r.stranger("b")
		made, err := a.Create(r.Ctx, poolLeases+"/lease-", nil, client.Protected(), client.Sequential(), client.ACL(zk.AuthACL(zk.PermAll)...))
		r.Check(err)
		s, err := recipes.NewInterProcessSemaphoreV2(b, pool, 1, theirs)
		r.Check(err)
		_, err = s.TryAcquire(r.Ctx, 1)
		testrig.WantErr(r.T, err, recipes.ErrBusy)
		_, err = a.SetACL(r.Ctx, made, zk.WorldACL(zk.PermAll), client.AnyVersion)
		r.Check(err)
		l, err := s.TryAcquire(r.Ctx, 1)
		r.Check(err)
		r.Check(l.Release(r.Ctx))
	}, zktest.ZooKeeper384, zktest.ZooKeeper39)
}

// Readers and writers that may not read each other's nodes keep each other out.
func TestRWLockUnreadableNodes(t *testing.T) {
	t.Parallel()
	strangers(t, func(r *rig) {
		a, acl := r.stranger("a")
		b, theirs := r.stranger("b")
		l, err := recipes.NewInterProcessReadWriteLock(a, "/rw", acl)
		r.Check(err)
		other, err := recipes.NewInterProcessReadWriteLock(b, "/rw", theirs)
		r.Check(err)
		read, err := l.ReadLock().Acquire(r.Ctx)
		r.Check(err)
		shared, err := other.ReadLock().Acquire(r.Ctx)
		r.Check(err)
		r.Check(shared.Release(r.Ctx))
		granted := make(chan *recipes.WriteHold, 1)
		go func() {
			h, err := other.WriteLock().Acquire(r.Ctx)
			r.Check(err)
			granted <- h
		}()
		time.Sleep(time.Second)
		if len(granted) != 0 {
			r.Error("a writer beside a reader")
		}
		r.Check(read.Release(r.Ctx))
		r.Check((<-granted).Release(r.Ctx))
	})
}

// A holder that may not read its own node does not know yet that it was deleted, and
// fills the room of its client. A TryAcquire looks a few times then, and joins.
func TestTryAcquireBesideAnUnreadableHolderOfNoNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"), recipes.WithMaxContenders(1), recipes.WithNodeACL(zk.WorldACL(zk.PermDelete)...))
		r.Check(r.Srv.Create("/locks", nil))
		r.Check(r.Srv.Create(dir, nil))
		h := r.held(m)
		time.Sleep(time.Second)
		r.Check(r.Srv.Delete(h.Path()))
		r.Srv.ResetCounts()
		next, err := m.TryAcquire(r.Ctx)
		r.Check(err)
		if n := r.Srv.Count(zktest.OpGetChildren2); n > 10 {
			t.Errorf("%d lists", n)
		}
		r.Check(next.Close())
		testrig.WantErr(t, h.Close(), recipes.ErrLost)
		r.empty()
	})
}
