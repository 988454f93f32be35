package shared_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/zktest"
)

// A value that is too large is the error of its own operation. The others that go in
// the same write are done.
func TestAtomicMergedTooLarge(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]shared.AtomicOption{nil, {shared.WithoutMark()}} {
		bubble(t, func(r *rig) {
			n, err := shared.NewDistributedAtomicValue(r.Connect("a"), longPath, opts...)
			r.Check(err)
			_, err = n.TrySet(r.Ctx, []byte("x"))
			r.Check(err)
			for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpSetData} {
				r.Srv.Delay(zktest.Match{Op: op}, time.Second)
			}
			large := make([]byte, 3<<20)
			var wg sync.WaitGroup
			for _, v := range [][]byte{[]byte("first"), []byte("small"), large, large} {
				wg.Go(func() {
					if got, err := n.TrySet(r.Ctx, v); got.Succeeded != (len(v) < 10) || errors.Is(err, client.ErrTooLarge) != (len(v) > 10) || got.Succeeded != (err == nil) {
						r.Errorf("%d bytes: %v, %v", len(v), got.Succeeded, err)
					}
				})
				time.Sleep(time.Millisecond)
			}
			wg.Wait()
			r.Srv.Delay(zktest.Match{Op: zktest.OpMulti}, time.Second)
			r.Srv.Delay(zktest.Match{Op: zktest.OpSetData}, time.Second)
			wg.Go(func() { _, err := n.TrySet(r.Ctx, []byte("small")); r.Check(err) })
			time.Sleep(time.Millisecond)
			wg.Go(func() {
				if v, err := n.CompareAndSet(r.Ctx, []byte("other"), nil); v.Succeeded || err != nil || string(v.PreValue) != "small" {
					r.Errorf("it has compared with %q, %v", v.PreValue, err)
				}
			})
			time.Sleep(time.Millisecond)
			wg.Go(func() { _, err := n.TrySet(r.Ctx, large); testrig.WantErr(r.T, err, client.ErrTooLarge) })
			wg.Wait()
			if v, err := n.Get(r.Ctx); string(v.PostValue) != "small" || err != nil {
				r.Errorf("%d bytes, %v", len(v.PostValue), err)
			}
			if _, err := n.TrySet(r.Ctx, large); !errors.Is(err, client.ErrTooLarge) || client.UnknownOutcome(err) {
				r.Error(err)
			}
			r.rested()
		})
	}
}
