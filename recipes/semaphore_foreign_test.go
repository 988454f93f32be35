package recipes_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// Children that are no leases take no room. Persistent nodes named as leases take
// none, for they would take it for ever. Leases of Curator take room.
func TestSemaphoreForeignChildren(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		const id = "_c_0c708091-6d54-4320-8594-f6fdb71d5f95-"
		for _, child := range []string{
			"", "/config", "/lease-0000000001", "/_c_0c708091-lease-0000000001", "/_c_0c7080916d5443208594f6fdb71d5f95-lease-0000000001",
			"/" + id + "lease-1", "/" + id + "lock-0000000001", "/" + id + "lease-000000000x", "/x" + id + "lease-0000000001",
			"/" + id + "lease-0000000007", // persistent: of no session
		} {
			if child == "" {
				r.Check(r.Srv.Create("/pools", nil))
				r.Check(r.Srv.Create(pool, nil))
			}
			r.Check(r.Srv.Create(poolLeases+child, nil))
		}
		_, err := r.Connect("foreigner").Create(r.Ctx, poolLeases+"/"+id+"lock-", nil, client.Ephemeral(), client.Sequential())
		r.Check(err)
		s := r.semaphore(c, 1)
		l := r.lease(s, 1)
		r.Check(l.Release(r.Ctx))
		curators, err := r.Connect("curator").Create(r.Ctx, poolLeases+"/"+id+"lease-", nil, client.Ephemeral(), client.Sequential())
		r.Check(err)
		waits := acquireLease(r.Ctx, s, 1)
		r.wantWaiting(waits)
		r.Srv.ResetCounts()
		r.Check(r.Srv.SetData(curators, nil)) // no news
		r.Check(r.Srv.Create(poolLeases+"/news", nil))
		r.wantWaiting(waits)
		if n := r.Srv.Count(zktest.OpExists); n != 0 {
			r.Errorf("looked at %d leases again", n)
		}
		r.Check(r.Srv.Delete(curators))
		got := <-waits
		r.Check(got.err)
		r.Check(got.lease.Release(r.Ctx))
	})
}

// A peer of Curator's makes its lease first and counts then, with the inner
// lock held. We wait for that lock, and for its leases.
func TestSemaphoreBesideCurator(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.Connect("a"), 2)
		peer := r.Connect("curator")
		inner, err := recipes.NewInterProcessMutex(peer, poolQueue)
		r.Check(err)
		create := func() string {
			path, err := peer.Create(r.Ctx, poolLeases+"/_c_0c708091-6d54-4320-8594-f6fdb71d5f95-lease-", nil, client.Ephemeral(), client.Sequential(), client.WithParents())
			r.Check(err)
			return path
		}
		lock := r.held(inner)
		waits := acquireLease(r.Ctx, s, 1)
		theirs := []string{create(), create(), create()} // one too many, until it has counted
		r.wantWaiting(waits)
		r.Check(peer.Delete(r.Ctx, theirs[2], client.AnyVersion))
		r.wantWaiting(waits)
		r.Check(lock.Release(r.Ctx))
		r.wantWaiting(waits)
		// It would wait for the inner lock now, which ours holds while it waits.
		again := acquire(r.Ctx, inner)
		r.Check(peer.Delete(r.Ctx, theirs[0], client.AnyVersion))
		got := <-waits
		r.Check(got.err)
		res := <-again
		r.Check(res.err)
		r.Check(res.hold.Close())
		r.Check(got.lease.Close())
	})
}

// kazoo's Semaphore on the same path, whose leases are children of the path
// itself, would not wait for ours nor ours for it.
func TestSemaphoreBesideKazoo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Check(r.Srv.Create("/pools", nil))
		r.Check(r.Srv.Create(pool, []byte("3")))
		const kazoos = pool + "/0c7080916d5443208594f6fdb71d5f95"
		r.Check(r.Srv.Create(kazoos, nil))
		s := r.semaphore(r.Connect("a"), 3)
		for _, acquire := range []func(context.Context, int) (*recipes.Lease, error){s.Acquire, s.TryAcquire} {
			_, err := acquire(r.Ctx, 1)
			testrig.WantErr(t, err, recipes.ErrForeignLock)
		}
		r.wantLeases(0)
		r.Check(r.Srv.Delete(kazoos))
		r.Check(r.lease(s, 1).Close())
		r.Srv.Fail(zktest.Match{Op: zktest.OpGetChildren2, Path: pool}, zktest.CodeNoAuth) // as in Curator, the path need not be listed
		r.Check(r.lease(r.semaphore(r.Connect("b"), 3), 1).Close())
	})
}

// WithNodeACL sets the rights of the leases. A refusal is an error and leaves
// nothing.
func TestSemaphoreACL(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		acl := zk.ACL{Perms: zk.PermAll, Scheme: "ip", ID: "10.9.9.9"}
		_, err := r.semaphore(r.Connect("a"), 2, recipes.WithNodeACL(acl)).Acquire(r.Ctx, 1) // its directory is not its own to work in
		testrig.WantErr(t, err, zk.ErrNoAuth)
		if in := r.named(poolQueue, queueName); len(in) != 0 {
			r.Errorf("left: %v", in)
		}
	})
}
