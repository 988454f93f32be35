package recipes_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/recipes"
)

// A request to release that was written while the contender waited for permits
// goes over to its leases. The hold hears of the request, and operators still see
// the owner.
func TestSemaphoreAskedWhileWaiting(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]recipes.SemaphoreOption{
		"default data": nil,
		"own data":     {recipes.WithNodeData([]byte("db-7"))},
		"no data":      {recipes.WithNodeData([]byte{})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				s, other := r.semaphore(r.Connect("a"), 2), r.semaphore(r.Connect("b"), 2, opts...)
				one := r.lease(s, 2)
				waits := acquireLease(r.Ctx, other, 2)
				r.wantWaiting(waits)
				q, err := s.Queue(r.Ctx)
				r.Check(err)
				r.Check(s.RequestRelease(r.Ctx, q[2]))
				r.Check(one.Close())
				got := <-waits
				r.Check(got.err)
				select {
				case <-got.lease.Revoked():
				case <-time.After(time.Second):
					t.Error("the hold was not told of the request that was written while it waited")
				}
				q, err = s.Queue(r.Ctx)
				r.Check(err)
				for _, c := range q {
					if !c.ReleaseRequested() {
						t.Errorf("not shown as asked: %v", c)
					}
				}
				if data, err := got.lease.Data(r.Ctx); name == "own data" && string(data) != "db-7" {
					t.Errorf("the lease says %q, %v", data, err)
				}
				r.Check(got.lease.Close())
				r.drained()
			})
		})
	}
}

// Another program writes data to the node of a waiter for permits, and the data
// is no request. The waiter still gets the permits, and the data is not taken for
// a request.
func TestSemaphoreWrittenWhileWaiting(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.Connect("a")
		s := r.semaphore(a, 1)
		one := r.lease(s, 1)
		waits := acquireLease(r.Ctx, r.semaphore(r.Connect("b"), 1), 1)
		r.wantWaiting(waits)
		q, err := s.Queue(r.Ctx)
		r.Check(err)
		for range 3 {
			_, err = a.Set(r.Ctx, q[1].Path, []byte("a note"), -1)
			r.Check(err)
		}
		r.Check(one.Close())
		got := <-waits
		r.Check(got.err)
		time.Sleep(time.Second)
		select {
		case <-got.lease.Revoked():
			t.Error("a note was taken for a request")
		default:
		}
		r.Check(got.lease.Close())
		r.drained()
	})
}

// A waiter whose own node it may not read is granted its permits although another
// client has written to the node.
func TestSemaphoreAskedUnreadable(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.Connect("a")
		s := r.semaphore(a, 1)
		one := r.lease(s, 1)
		acl := zk.ACL{Perms: zk.PermAll &^ zk.PermRead, Scheme: "world", ID: "anyone"}
		waits := acquireLease(r.Ctx, r.semaphore(r.Connect("b"), 1, recipes.WithNodeACL(acl)), 1)
		r.wantWaiting(waits)
		q, err := s.Queue(r.Ctx)
		r.Check(err)
		r.Check(s.RequestRelease(r.Ctx, q[1]))
		r.Check(one.Close())
		got := <-waits
		r.Check(got.err)
		r.Check(got.lease.Close())
	})
}
