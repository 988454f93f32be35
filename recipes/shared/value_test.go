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
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/zktest"
)

const valuePath = "/values/config"

func (r *rig) value(c *client.Client, seed string) *shared.SharedValue {
	r.Helper()
	s, err := shared.NewSharedValue(c, valuePath, []byte(seed))
	r.check(err)
	return s
}

// The node holds the bytes, and the first client makes it with the seed
// (TestSharedCount's cases, of the mechanism that both have).
func TestSharedValue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		seed := []byte("seed")
		a, err := shared.NewSharedValue(r.connect("a"), valuePath, seed)
		r.check(err)
		seed[0] = 'X' // it keeps no slice of the caller
		b := r.value(r.connect("b"), "other")
		prev, err := a.Get(r.ctx)
		r.check(err)
		if string(prev.Value) != "seed" || prev.Version != 0 || a.Path() != valuePath {
			r.Errorf("%+v", prev)
		}
		if n, _ := r.srv.Node(valuePath); string(n.Data) != "seed" || n.Stat.EphemeralOwner != 0 || n.Container {
			r.Errorf("%+v", n)
		}
		r.check(b.Set(r.ctx, []byte("mine")))
		set, err := a.TrySet(r.ctx, prev, []byte("stale"))
		r.check(err)
		if set {
			r.Error("set over what another client wrote")
		}
		for _, v := range [][]byte{nil, {}, []byte("x"), bytes.Repeat([]byte("y"), 1000)} {
			prev, err := b.Get(r.ctx)
			r.check(err)
			set, err := b.TrySet(r.ctx, prev, v)
			r.check(err)
			now, err := a.Get(r.ctx)
			r.check(err)
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
		c := r.connect("a")
		a, b := r.value(c, "1"), r.value(r.connect("b"), "2")
		var mu sync.Mutex
		var got []string
		stop := a.Listen(r.ctx, func(now shared.VersionedValue) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, string(now.Value))
		})
		for i, trouble := range []func(){
			func() {}, func() { r.srv.CutAll() }, func() { r.srv.ExpireSession(r.session(c)) }, func() { r.check(r.srv.Delete(valuePath)) },
		} {
			trouble()
			time.Sleep(5 * time.Second)
			r.check(b.Set(r.ctx, fmt.Append(nil, "v", i)))
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		stop()
		if !slices.Equal(got, []string{"1", "v0", "v1", "v2", "v3"}) {
			r.Errorf("followed %v", got)
		}
		for now, err := range a.Changes(r.ctx) {
			if string(now.Value) != "v3" || err != nil {
				r.Errorf("%+v, %v", now, err)
			}
			break
		}
		wantNoGoroutine(r.T)
	})
}

// An atomic value is set by the bytes that it has, and only then
// (TestDistributedAtomicLong.testCompareAndSetWithFreshInstance, testForceSet).
func TestDistributedAtomicValue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		n, err := shared.NewDistributedAtomicValue(c, valuePath)
		r.check(err)
		is := func(v shared.AtomicValue[[]byte], err error, ok bool, pre, post string) {
			r.Helper()
			r.check(err)
			if v.Succeeded != ok || string(v.PreValue) != pre || string(v.PostValue) != post {
				r.Errorf("%v, %q, %q; want %v, %q, %q", v.Succeeded, v.PreValue, v.PostValue, ok, pre, post)
			}
		}
		v, err := n.Get(r.ctx)
		is(v, err, true, "", "")
		v, err = n.CompareAndSet(r.ctx, nil, []byte("one"))
		is(v, err, false, "", "")
		v, err = n.TrySet(r.ctx, []byte("one"))
		is(v, err, true, "", "one")
		v, err = n.CompareAndSet(r.ctx, []byte("one"), []byte("two"))
		is(v, err, true, "one", "two")
		v, err = n.CompareAndSet(r.ctx, []byte("one"), []byte("three"))
		is(v, err, false, "two", "")
		r.check(n.ForceSet(r.ctx, []byte("four")))
		fresh, err := shared.NewDistributedAtomicValue(r.connect("b"), valuePath)
		r.check(err)
		v, err = fresh.CompareAndSet(r.ctx, []byte("four"), nil)
		is(v, err, true, "four", "")
		v, err = n.CompareAndSet(r.ctx, []byte("four"), []byte("five"))
		is(v, err, false, "", "")
		if first, err := n.Initialize(r.ctx, nil); first || err != nil {
			r.Errorf("%v, %v", first, err)
		}
		integer, err := shared.NewDistributedAtomicInteger(c, "/values/integer")
		r.check(err)
		if first, err := integer.Initialize(r.ctx, -1); !first || err != nil {
			r.Errorf("%v, %v", first, err)
		}
		if n, _ := r.srv.Node("/values/integer"); !bytes.Equal(n.Data, []byte{255, 255, 255, 255}) {
			r.Errorf("% x", n.Data)
		}
		for _, f := range []func() (shared.AtomicValue[int32], error){
			func() (shared.AtomicValue[int32], error) { return integer.Decrement(r.ctx) },
			func() (shared.AtomicValue[int32], error) { return integer.CompareAndSet(r.ctx, -2, 7) },
			func() (shared.AtomicValue[int32], error) { return integer.TrySet(r.ctx, 9) },
		} {
			if v, err := f(); err != nil || !v.Succeeded {
				r.Errorf("%+v, %v", v, err)
			}
		}
		r.check(integer.ForceSet(r.ctx, 10))
		if v, err := integer.Get(r.ctx); v.PostValue != 10 || err != nil || integer.Path() != "/values/integer" || n.Path() != valuePath {
			r.Errorf("%+v, %v", v, err)
		}
	})
}

// Without the right to make children a mark is refused, and WithoutMark works. A
// version of -1 stands for any and is refused.
func TestAtomicRights(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		acl := shared.WithNodeACL(zk.ACL{Perms: zk.PermRead | zk.PermWrite, Scheme: "world", ID: "anyone"})
		r.check(r.srv.Create("/counts", nil))
		marked, plain := r.long(c, acl), r.long(c, acl, shared.WithoutMark())
		_, err := plain.Increment(r.ctx)
		r.check(err)
		_, err = marked.Increment(r.ctx)
		wantErr(r.T, err, zk.ErrNoAuth)
		if client.UnknownOutcome(err) {
			r.Error(err)
		}
		r.check(r.srv.SetVersion(longPath, -1))
		_, err = plain.Increment(r.ctx)
		if err == nil || errors.Is(err, shared.ErrContended) {
			r.Errorf("at version -1: %v", err)
		}
		r.check(plain.ForceSet(r.ctx, 5))
		_, err = plain.Increment(r.ctx)
		r.check(err)
		r.wantLong(plain, 6)
		r.srv.Fail(zktest.Match{Op: zktest.OpGetData}, zktest.CodeNoAuth)
		_, err = plain.Get(r.ctx)
		wantErr(r.T, err, zk.ErrNoAuth)
	})
}
