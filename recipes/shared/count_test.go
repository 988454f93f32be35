package shared_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/zktest"
)

const countPath = "/counts/permits"

func (r *rig) sharedCount(c *client.Client, seed int32) *shared.SharedCount {
	r.Helper()
	s, err := shared.NewSharedCount(c, countPath, seed)
	r.check(err)
	return s
}

func (r *rig) wantVersioned(s *shared.SharedCount) shared.VersionedCount {
	r.Helper()
	now, err := s.Get(r.ctx)
	r.check(err)
	return now
}

func (r *rig) wantCount(s *shared.SharedCount, want int32) shared.VersionedCount {
	r.Helper()
	now := r.wantVersioned(s)
	if now.Value != want {
		r.Errorf("the count is %d, want %d", now.Value, want)
	}
	return now
}

// noMarks checks that nothing is left below the count.
func (r *rig) noMarks() {
	r.Helper()
	time.Sleep(5 * time.Second)
	if left := r.srv.Children(countPath); len(left) != 0 {
		r.Errorf("left behind: %v", left)
	}
	wantNoGoroutine(r.T)
}

// The node is Curator's: four bytes, the highest first, persistent, below
// containers (SharedCount.toBytes; TestSharedCount.testSimple).
func TestSharedCountNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.sharedCount(r.connect("a"), 7)
		if _, there := r.srv.Node(countPath); there {
			r.Error("the constructor did I/O")
		}
		r.wantCount(s, 7)
		n, _ := r.srv.Node(countPath)
		if !bytes.Equal(n.Data, []byte{0, 0, 0, 7}) || n.Container || n.Stat.EphemeralOwner != 0 {
			r.Errorf("node %+v", n)
		}
		if up, _ := r.srv.Node("/counts"); !up.Container || len(up.Data) != 0 {
			r.Errorf("parent %+v", up)
		}
		for v, data := range map[int32][]byte{
			-1: {255, 255, 255, 255}, math.MaxInt32: {127, 255, 255, 255}, math.MinInt32: {128, 0, 0, 0}, 258: {0, 0, 1, 2},
		} {
			r.check(s.Set(r.ctx, v))
			r.wantCount(s, v)
			if n, _ := r.srv.Node(countPath); !bytes.Equal(n.Data, data) {
				r.Errorf("%d is % x", v, n.Data)
			}
		}
		if s.Path() != countPath {
			r.Errorf("Path = %s", s.Path())
		}
	})
}

func TestSharedCountInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		if s, err := shared.NewSharedCount(nil, countPath, 1); s != nil || err == nil {
			r.Errorf("without a client: %v", err)
		}
		c := r.connect("a", client.WithNamespace("ns"))
		if s, err := shared.NewSharedCount(c, "/", 1); s != nil || err == nil {
			r.Errorf("the root: %v", err)
		}
		s, err := shared.NewSharedCount(c, countPath, 1, shared.WithNodeACL())
		wantErr(t, err, client.ErrInvalidACL)
		if s != nil {
			r.Error("a count without an ACL")
		}
		if s, err := shared.NewSharedCount(c, "counts", 1); s != nil || err == nil || !strings.HasPrefix(err.Error(), "shared: ") {
			r.Errorf("path: %v", err)
		}
		s = r.sharedCount(c, 1)
		r.wantCount(s, 1)
		if _, there := r.srv.Node("/ns" + countPath); !there {
			r.Error("not in the namespace")
		}
		acl := zk.ACL{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}
		mine, err := shared.NewSharedCount(c, "/other", 3, shared.WithNodeACL(acl))
		r.check(err)
		r.wantCount(mine, 3)
		wantErr(t, mine.Set(r.ctx, 4), zk.ErrNoAuth)
		prev := r.wantCount(mine, 3)
		set, err := mine.TrySet(r.ctx, prev, 4)
		wantErr(t, err, zk.ErrNoAuth)
		if set || client.UnknownOutcome(err) {
			r.Errorf("TrySet = %v, %v", set, err)
		}
	})
}

// A node whose data is not four bytes long belongs to another recipe, such as a
// DistributedAtomicLong. Get, Set and TrySet refuse it with its length and leave
// it as it is. A follower is told the same, and goes on when the node is
// repaired.
func TestSharedCountData(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.sharedCount(r.connect("a"), 1)
		good := r.wantCount(s, 1)
		for length, data := range map[int][]byte{
			0: nil, 3: {1, 2, 3}, 5: {0, 0, 0, 9, 1}, 8: {0, 0, 0, 0, 0, 0, 0, 5}, // DistributedAtomicLong.valueToBytes of 5
		} {
			r.check(r.srv.SetData(countPath, data))
			refused := func(what string, err error) {
				r.Helper()
				var bad *shared.CountDataError
				if !errors.As(err, &bad) || !errors.Is(err, shared.ErrCountData) || bad.Path != countPath || bad.Length != length {
					r.Errorf("%s of %d bytes: %v", what, length, err)
				}
				if long := strings.Contains(fmt.Sprint(err), "DistributedAtomicLong"); long != (length == 8) {
					r.Errorf("%s of %d bytes: %v", what, length, err)
				}
				if client.UnknownOutcome(err) {
					r.Errorf("%s: %v is known", what, err)
				}
				if n, _ := r.srv.Node(countPath); !bytes.Equal(n.Data, data) {
					r.Errorf("%s of %d bytes left % x", what, length, n.Data)
				}
			}
			_, err := s.Get(r.ctx)
			refused("Get", err)
			_, err = s.Value(r.ctx)
			refused("Value", err)
			_, w, err := s.ValueW(r.ctx)
			refused("ValueW", err)
			if w != nil {
				r.Error("a watch beside an error")
			}
			refused("Set", s.Set(r.ctx, 7))
			for _, prev := range []shared.VersionedCount{good, {}} {
				set, err := s.TrySet(r.ctx, prev, 7)
				refused("TrySet", err)
				if set {
					r.Errorf("set %d bytes", length)
				}
			}
			var got []any
			for now, err := range s.Changes(r.ctx) {
				if err != nil {
					refused("Changes", err)
					got = append(got, errors.Is(err, shared.ErrCountData))
					r.srv.CutAll() // wakes it, and is no news
					go func() {
						time.Sleep(time.Second)
						r.check(r.srv.SetData(countPath, []byte{0, 0, 0, 5}))
					}()
					continue
				}
				got = append(got, now.Value)
				break
			}
			if !slices.Equal(got, []any{true, int32(5)}) {
				r.Errorf("followed %v", got)
			}
			r.noMarks()
		}
	})
}

// Every request of Get and Set may be lost, on a node that is there and on one
// that is missing.
func TestSharedCountLostRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.sharedCount(r.connect("a"), 7)
		for _, fault := range []func(zktest.Match) *zktest.Rule{r.srv.LoseReply, r.srv.DropBefore, r.srv.StallReply, r.srv.DropAfter} {
			for _, op := range []zktest.Op{zktest.OpExists, zktest.OpGetData, zktest.OpCreate, zktest.OpCreateContainer, zktest.OpSetData} {
				_ = r.srv.Delete("/counts")
				rule := fault(zktest.Match{Op: op, PathPrefix: "/counts"})
				r.wantCount(s, 7)
				r.check(s.Set(r.ctx, 8))
				r.wantCount(s, 8)
				_ = r.srv.Delete("/counts")
				r.check(s.Set(r.ctx, 9)) // makes it
				r.wantCount(s, 9)
				if rule.Fired() != 1 {
					r.Errorf("%v: the fault happened %d times", op, rule.Fired())
				}
			}
		}
		wantNoGoroutine(r.T)
	})
}
