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
				s, other := r.semaphore(r.connect("a"), 2), r.semaphore(r.connect("b"), 2, opts...)
				one := r.lease(s, 2)
				waits := acquireLease(r.ctx, other, 2)
				r.wantWaiting(waits)
				q, err := s.Queue(r.ctx)
				r.check(err)
				r.check(s.RequestRelease(r.ctx, q[2]))
				r.check(one.Close())
				got := <-waits
				r.check(got.err)
				select {
				case <-got.lease.Revoked():
				case <-time.After(time.Second):
					t.Error("the hold was not told of the request that was written while it waited")
				}
				q, err = s.Queue(r.ctx)
				r.check(err)
				for _, c := range q {
					if !c.ReleaseRequested() {
						t.Errorf("not shown as asked: %v", c)
					}
				}
				if data, err := got.lease.Data(r.ctx); name == "own data" && string(data) != "db-7" {
					t.Errorf("the lease says %q, %v", data, err)
				}
				r.check(got.lease.Close())
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
		a := r.connect("a")
		s := r.semaphore(a, 1)
		one := r.lease(s, 1)
		waits := acquireLease(r.ctx, r.semaphore(r.connect("b"), 1), 1)
		r.wantWaiting(waits)
		q, err := s.Queue(r.ctx)
		r.check(err)
		for range 3 {
			_, err = a.Set(r.ctx, q[1].Path, []byte("a note"), -1)
			r.check(err)
		}
		r.check(one.Close())
		got := <-waits
		r.check(got.err)
		time.Sleep(time.Second)
		select {
		case <-got.lease.Revoked():
			t.Error("a note was taken for a request")
		default:
		}
		r.check(got.lease.Close())
		r.drained()
	})
}

// A waiter whose own node it may not read is granted its permits although another
// client has written to the node.
func TestSemaphoreAskedUnreadable(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.connect("a")
		s := r.semaphore(a, 1)
		one := r.lease(s, 1)
		acl := zk.ACL{Perms: zk.PermAll &^ zk.PermRead, Scheme: "world", ID: "anyone"}
		waits := acquireLease(r.ctx, r.semaphore(r.connect("b"), 1, recipes.WithNodeACL(acl)), 1)
		r.wantWaiting(waits)
		q, err := s.Queue(r.ctx)
		r.check(err)
		r.check(s.RequestRelease(r.ctx, q[1]))
		r.check(one.Close())
		got := <-waits
		r.check(got.err)
		r.check(got.lease.Close())
	})
}
