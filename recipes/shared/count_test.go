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
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/zktest"
)

const countPath = "/counts/permits"

func (r *rig) sharedCount(c *client.Client, seed int32) *shared.SharedCount {
	r.Helper()
	s, err := shared.NewSharedCount(c, countPath, seed)
	r.Check(err)
	return s
}

func (r *rig) wantVersioned(s *shared.SharedCount) shared.VersionedCount {
	r.Helper()
	now, err := s.Get(r.Ctx)
	r.Check(err)
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
	r.WantNoChild(countPath)
	testrig.WantNoGoroutine(r.T, ourFrames)
}

// The node is Curator's: four bytes, the highest first, persistent, below
// containers (SharedCount.toBytes; TestSharedCount.testSimple).
func TestSharedCountNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.sharedCount(r.Connect("a"), 7)
		if _, there := r.Srv.Node(countPath); there {
			r.Error("the constructor did I/O")
		}
		r.wantCount(s, 7)
		n, _ := r.Srv.Node(countPath)
		if !bytes.Equal(n.Data, []byte{0, 0, 0, 7}) || n.Container || n.Stat.EphemeralOwner != 0 {
			r.Errorf("node %+v", n)
		}
		if up, _ := r.Srv.Node("/counts"); !up.Container || len(up.Data) != 0 {
			r.Errorf("parent %+v", up)
		}
		for v, data := range map[int32][]byte{
			-1: {255, 255, 255, 255}, math.MaxInt32: {127, 255, 255, 255}, math.MinInt32: {128, 0, 0, 0}, 258: {0, 0, 1, 2},
		} {
			r.Check(s.Set(r.Ctx, v))
			r.wantCount(s, v)
			if n, _ := r.Srv.Node(countPath); !bytes.Equal(n.Data, data) {
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
		c := r.Connect("a", client.WithNamespace("ns"))
		if s, err := shared.NewSharedCount(c, "/", 1); s != nil || err == nil {
			r.Errorf("the root: %v", err)
		}
		s, err := shared.NewSharedCount(c, countPath, 1, shared.WithNodeACL())
		testrig.WantErr(t, err, client.ErrInvalidACL)
		if s != nil {
			r.Error("a count without an ACL")
		}
		if s, err := shared.NewSharedCount(c, "counts", 1); s != nil || err == nil || !strings.HasPrefix(err.Error(), "shared: ") {
			r.Errorf("path: %v", err)
		}
		s = r.sharedCount(c, 1)
		r.wantCount(s, 1)
		if _, there := r.Srv.Node("/ns" + countPath); !there {
			r.Error("not in the namespace")
		}
		acl := zk.ACL{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}
		mine, err := shared.NewSharedCount(c, "/other", 3, shared.WithNodeACL(acl))
		r.Check(err)
		r.wantCount(mine, 3)
		testrig.WantErr(t, mine.Set(r.Ctx, 4), zk.ErrNoAuth)
		prev := r.wantCount(mine, 3)
		set, err := mine.TrySet(r.Ctx, prev, 4)
		testrig.WantErr(t, err, zk.ErrNoAuth)
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
		s := r.sharedCount(r.Connect("a"), 1)
		good := r.wantCount(s, 1)
		for length, data := range map[int][]byte{
			0: nil, 3: {1, 2, 3}, 5: {0, 0, 0, 9, 1}, 8: {0, 0, 0, 0, 0, 0, 0, 5}, // DistributedAtomicLong.valueToBytes of 5
		} {
			r.Check(r.Srv.SetData(countPath, data))
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
				if n, _ := r.Srv.Node(countPath); !bytes.Equal(n.Data, data) {
					r.Errorf("%s of %d bytes left % x", what, length, n.Data)
				}
			}
			_, err := s.Get(r.Ctx)
			refused("Get", err)
			_, err = s.Value(r.Ctx)
			refused("Value", err)
			_, w, err := s.ValueW(r.Ctx)
			refused("ValueW", err)
			if w != nil {
				r.Error("a watch beside an error")
			}
			refused("Set", s.Set(r.Ctx, 7))
			for _, prev := range []shared.VersionedCount{good, {}} {
				set, err := s.TrySet(r.Ctx, prev, 7)
				refused("TrySet", err)
				if set {
					r.Errorf("set %d bytes", length)
				}
			}
			var got []any
			for now, err := range s.Changes(r.Ctx) {
				if err != nil {
					refused("Changes", err)
					got = append(got, errors.Is(err, shared.ErrCountData))
					r.Srv.CutAll() // wakes it, and is no news
					go func() {
						time.Sleep(time.Second)
						r.Check(r.Srv.SetData(countPath, []byte{0, 0, 0, 5}))
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
		s := r.sharedCount(r.Connect("a"), 7)
		for _, fault := range []func(zktest.Match) *zktest.Rule{r.Srv.LoseReply, r.Srv.DropBefore, r.Srv.StallReply, r.Srv.DropAfter} {
			for _, op := range []zktest.Op{zktest.OpExists, zktest.OpGetData, zktest.OpCreate, zktest.OpCreateContainer, zktest.OpSetData} {
				_ = r.Srv.Delete("/counts")
				rule := fault(zktest.Match{Op: op, PathPrefix: "/counts"})
				r.wantCount(s, 7)
				r.Check(s.Set(r.Ctx, 8))
				r.wantCount(s, 8)
				_ = r.Srv.Delete("/counts")
				r.Check(s.Set(r.Ctx, 9)) // makes it
				r.wantCount(s, 9)
				if rule.Fired() != 1 {
					r.Errorf("%v: the fault happened %d times", op, rule.Fired())
				}
			}
		}
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}
