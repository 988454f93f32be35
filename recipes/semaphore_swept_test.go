package recipes_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// While permits are held for long and no contender waits, the server sweeps the empty
// directory of the queue. The leases alone refuse the path to every other kind, in
// each acquire, and once they are released no longer.
func TestSemaphoreHeldWithoutQueue(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mutex", "multi-lock", "read", "write"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				s, err := recipes.NewInterProcessSemaphoreV2(r.connect("a"), dir, 3)
				r.check(err)
				held, err := s.Acquire(r.ctx, 2)
				r.check(err)
				time.Sleep(10 * time.Minute)
				if names := r.srv.Children(dir); len(names) != 1 || names[0] != "leases" {
					r.Fatalf("on the path: %v", names)
				}
				wait, try := r.acquirers(r.connect("b"), kind)
				for range 2 {
					for name, acquire := range map[string]acquirer{"acquire": wait, "try": try} {
						h, err := acquire(r.ctx)
						r.wantRefused(name, h, err, "semaphore", dir+"/leases/_c_")
					}
				}
				r.lives(held)
				r.check(held.Close())
				for _, acquire := range []acquirer{wait, try} {
					h, err := acquire(r.ctx)
					r.check(err)
					r.check(h.Close())
				}
			})
		})
	}
}

// A lease that may not be read refuses the path, too. A directory that may not be listed
// is an ordinary child.
func TestSemaphoreHeldWithoutQueueUnreadable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		of      string // the node that may not be read
		refused bool
	}{"lease": {"lease", true}, "directory": {"leases", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.connect("a")
				acl := []zk.ACL{{Perms: zk.PermAll &^ zk.PermRead, Scheme: "world", ID: "anyone"}}
				with := func(node string) []client.CreateOption {
					if node == tt.of {
						return []client.CreateOption{client.ACL(acl...)}
					}
					return nil
				}
				_, err := c.Create(r.ctx, dir+"/leases", nil, append(with("leases"), client.WithParents())...)
				r.check(err)
				_, err = c.Create(r.ctx, dir+"/leases/"+curatorsID+"lease-", nil, append(with("lease"), client.Ephemeral(), client.Sequential())...)
				r.check(err)
				wait, _ := r.acquirers(r.connect("b"), "mutex")
				h, err := wait(r.ctx)
				if tt.refused {
					r.wantRefused("mutex", h, err, "semaphore", dir+"/leases/"+curatorsID)
					return
				}
				r.check(err)
				r.check(h.Close())
			})
		})
	}
}

// An operator deletes the queue while a waiter stands in it. The numbers of the next queue
// begin at 0. Its first waiter believes what it lists, also if it cannot watch each lease.
func TestSemaphoreQueueMadeAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const many = 20 // more leases than are watched one by one
		s := r.calm(r.semaphore(r.connect("a"), many))
		held := r.lease(r.semaphore(r.connect("b"), many), many)
		before := acquireLease(r.ctx, s, many)
		time.Sleep(500 * time.Millisecond) // it looks after its own node later
		for _, name := range r.srv.Children(poolQueue) {
			r.check(r.srv.Delete(poolQueue + "/" + name))
		}
		r.check(r.srv.Delete(poolQueue))
		behind := acquireLease(r.ctx, s, many)
		wantErr(t, (<-before).err, recipes.ErrNodeDeleted)
		r.wantWaiting(behind)
		r.check(held.Release(r.ctx))
		time.Sleep(time.Second)
		select {
		case got := <-behind:
			r.check(got.err)
			r.check(got.lease.Close())
		default:
			r.Fatal("waits, and all permits are free")
		}
		r.drained()
		wantNoGoroutine(t)
	})
}
