package recipes_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
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
				s, err := recipes.NewInterProcessSemaphoreV2(r.Connect("a"), dir, 3)
				r.Check(err)
				held, err := s.Acquire(r.Ctx, 2)
				r.Check(err)
				time.Sleep(10 * time.Minute)
				if names := r.Srv.Children(dir); len(names) != 1 || names[0] != "leases" {
					r.Fatalf("on the path: %v", names)
				}
				wait, try := r.acquirers(r.Connect("b"), kind)
				for range 2 {
					for name, acquire := range map[string]acquirer{"acquire": wait, "try": try} {
						h, err := acquire(r.Ctx)
						r.wantRefused(name, h, err, "semaphore", dir+"/leases/_c_")
					}
				}
				r.lives(held)
				r.Check(held.Close())
				for _, acquire := range []acquirer{wait, try} {
					h, err := acquire(r.Ctx)
					r.Check(err)
					r.Check(h.Close())
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
				c := r.Connect("a")
				acl := []zk.ACL{{Perms: zk.PermAll &^ zk.PermRead, Scheme: "world", ID: "anyone"}}
				with := func(node string) []client.CreateOption {
					if node == tt.of {
						return []client.CreateOption{client.ACL(acl...)}
					}
					return nil
				}
				_, err := c.Create(r.Ctx, dir+"/leases", nil, append(with("leases"), client.WithParents())...)
				r.Check(err)
				_, err = c.Create(r.Ctx, dir+"/leases/"+curatorsID+"lease-", nil, append(with("lease"), client.Ephemeral(), client.Sequential())...)
				r.Check(err)
				wait, _ := r.acquirers(r.Connect("b"), "mutex")
				h, err := wait(r.Ctx)
				if tt.refused {
					r.wantRefused("mutex", h, err, "semaphore", dir+"/leases/"+curatorsID)
					return
				}
				r.Check(err)
				r.Check(h.Close())
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
		s := r.calm(r.semaphore(r.Connect("a"), many))
		held := r.lease(r.semaphore(r.Connect("b"), many), many)
		before := acquireLease(r.Ctx, s, many)
		time.Sleep(500 * time.Millisecond) // it looks after its own node later
		for _, name := range r.Srv.Children(poolQueue) {
			r.Check(r.Srv.Delete(poolQueue + "/" + name))
		}
		r.Check(r.Srv.Delete(poolQueue))
		behind := acquireLease(r.Ctx, s, many)
		testrig.WantErr(t, (<-before).err, recipes.ErrNodeDeleted)
		r.wantWaiting(behind)
		r.Check(held.Release(r.Ctx))
		time.Sleep(time.Second)
		select {
		case got := <-behind:
			r.Check(got.err)
			r.Check(got.lease.Close())
		default:
			r.Fatal("waits, and all permits are free")
		}
		r.drained()
		testrig.WantNoGoroutine(t, ourFrames)
	})
}
