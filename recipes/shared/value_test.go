package shared_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/zktest"
)

const valuePath = "/values/config"

func (r *rig) value(c *client.Client, seed string) *shared.SharedValue {
	r.Helper()
	s, err := shared.NewSharedValue(c, valuePath, []byte(seed))
	r.Check(err)
	return s
}

// The node holds the bytes, and the first client makes it with the seed
// (TestSharedCount's cases, of the mechanism that both have).
func TestSharedValue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		seed := []byte("seed")
		a, err := shared.NewSharedValue(r.Connect("a"), valuePath, seed)
		r.Check(err)
		seed[0] = 'X' // it keeps no slice of the caller
		b := r.value(r.Connect("b"), "other")
		prev, err := a.Get(r.Ctx)
		r.Check(err)
		if string(prev.Value) != "seed" || prev.Version != 0 || a.Path() != valuePath {
			r.Errorf("%+v", prev)
		}
		if n, _ := r.Srv.Node(valuePath); string(n.Data) != "seed" || n.Stat.EphemeralOwner != 0 || n.Container {
			r.Errorf("%+v", n)
		}
		r.Check(b.Set(r.Ctx, []byte("mine")))
		set, err := a.TrySet(r.Ctx, prev, []byte("stale"))
		r.Check(err)
		if set {
			r.Error("set over what another client wrote")
		}
		for _, v := range [][]byte{nil, {}, []byte("x"), bytes.Repeat([]byte("y"), 1000)} {
			prev, err := b.Get(r.Ctx)
			r.Check(err)
			set, err := b.TrySet(r.Ctx, prev, v)
			r.Check(err)
			now, err := a.Get(r.Ctx)
			r.Check(err)
			if !set || !bytes.Equal(now.Value, v) || now.Version != prev.Version+1 {
				r.Errorf("%v: %+v", set, now)
			}
		}
	})
}

// A follower hears of each value once, after lost connections and sessions too.
// It also does after the node was deleted, where Curator's goes blind.
func TestSharedValueFollowed(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		a, b := r.value(c, "1"), r.value(r.Connect("b"), "2")
		var mu sync.Mutex
		var got []string
		stop := a.Listen(r.Ctx, func(now shared.VersionedValue) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, string(now.Value))
		})
		for i, trouble := range []func(){
			func() {}, func() { r.Srv.CutAll() }, func() { r.Srv.ExpireSession(r.SessionID(c)) }, func() { r.Check(r.Srv.Delete(valuePath)) },
		} {
			trouble()
			time.Sleep(5 * time.Second)
			r.Check(b.Set(r.Ctx, fmt.Append(nil, "v", i)))
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		stop()
		if !slices.Equal(got, []string{"1", "v0", "v1", "v2", "v3"}) {
			r.Errorf("followed %v", got)
		}
		for now, err := range a.Changes(r.Ctx) {
			if string(now.Value) != "v3" || err != nil {
				r.Errorf("%+v, %v", now, err)
			}
			break
		}
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// An atomic value is set by the bytes that it has, and only then
// (TestDistributedAtomicLong.testCompareAndSetWithFreshInstance, testForceSet).
func TestDistributedAtomicValue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		n, err := shared.NewDistributedAtomicValue(c, valuePath)
		r.Check(err)
		is := func(v shared.AtomicValue[[]byte], err error, ok bool, pre, post string) {
			r.Helper()
			r.Check(err)
			if v.Succeeded != ok || string(v.PreValue) != pre || string(v.PostValue) != post {
				r.Errorf("%v, %q, %q; want %v, %q, %q", v.Succeeded, v.PreValue, v.PostValue, ok, pre, post)
			}
		}
		v, err := n.Get(r.Ctx)
		is(v, err, true, "", "")
		v, err = n.CompareAndSet(r.Ctx, nil, []byte("one"))
		is(v, err, false, "", "")
		v, err = n.TrySet(r.Ctx, []byte("one"))
		is(v, err, true, "", "one")
		v, err = n.CompareAndSet(r.Ctx, []byte("one"), []byte("two"))
		is(v, err, true, "one", "two")
		v, err = n.CompareAndSet(r.Ctx, []byte("one"), []byte("three"))
		is(v, err, false, "two", "")
		r.Check(n.ForceSet(r.Ctx, []byte("four")))
		fresh, err := shared.NewDistributedAtomicValue(r.Connect("b"), valuePath)
		r.Check(err)
		v, err = fresh.CompareAndSet(r.Ctx, []byte("four"), nil)
		is(v, err, true, "four", "")
		v, err = n.CompareAndSet(r.Ctx, []byte("four"), []byte("five"))
		is(v, err, false, "", "")
		if first, err := n.Initialize(r.Ctx, nil); first || err != nil {
			r.Errorf("%v, %v", first, err)
		}
		integer, err := shared.NewDistributedAtomicInteger(c, "/values/integer")
		r.Check(err)
		if first, err := integer.Initialize(r.Ctx, -1); !first || err != nil {
			r.Errorf("%v, %v", first, err)
		}
		if n, _ := r.Srv.Node("/values/integer"); !bytes.Equal(n.Data, []byte{255, 255, 255, 255}) {
			r.Errorf("% x", n.Data)
		}
		for _, f := range []func() (shared.AtomicValue[int32], error){
			func() (shared.AtomicValue[int32], error) { return integer.Decrement(r.Ctx) },
			func() (shared.AtomicValue[int32], error) { return integer.CompareAndSet(r.Ctx, -2, 7) },
			func() (shared.AtomicValue[int32], error) { return integer.TrySet(r.Ctx, 9) },
		} {
			if v, err := f(); err != nil || !v.Succeeded {
				r.Errorf("%+v, %v", v, err)
			}
		}
		r.Check(integer.ForceSet(r.Ctx, 10))
		if v, err := integer.Get(r.Ctx); v.PostValue != 10 || err != nil || integer.Path() != "/values/integer" || n.Path() != valuePath {
			r.Errorf("%+v, %v", v, err)
		}
	})
}

// Without the right to make children a mark is refused, and WithoutMark works. A
// version of -1 stands for any and is refused.
func TestAtomicRights(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		acl := shared.WithNodeACL(zk.ACL{Perms: zk.PermRead | zk.PermWrite, Scheme: "world", ID: "anyone"})
		r.Check(r.Srv.Create("/counts", nil))
		marked, plain := r.long(c, acl), r.long(c, acl, shared.WithoutMark())
		_, err := plain.Increment(r.Ctx)
		r.Check(err)
		_, err = marked.Increment(r.Ctx)
		testrig.WantErr(r.T, err, zk.ErrNoAuth)
		if client.UnknownOutcome(err) {
			r.Error(err)
		}
		r.Check(r.Srv.SetVersion(longPath, -1))
		_, err = plain.Increment(r.Ctx)
		if err == nil || errors.Is(err, shared.ErrContended) {
			r.Errorf("at version -1: %v", err)
		}
		r.Check(plain.ForceSet(r.Ctx, 5))
		_, err = plain.Increment(r.Ctx)
		r.Check(err)
		r.wantLong(plain, 6)
		r.Srv.Fail(zktest.Match{Op: zktest.OpGetData}, zktest.CodeNoAuth)
		_, err = plain.Get(r.Ctx)
		testrig.WantErr(r.T, err, zk.ErrNoAuth)
	})
}
