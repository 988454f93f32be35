package shared_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

const idsPath = "/ids/orders"

func (r *rig) sequence(c *client.Client, block int) *shared.Sequence {
	r.Helper()
	s, err := shared.NewSequence(c, idsPath, block)
	r.Check(err)
	return s
}

// Blocks follow each other, ids grow, and the node is a DistributedAtomicLong's: what
// is reserved by an increment is not handed out.
func TestSequence(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s, other := r.sequence(c, 3), r.sequence(c, 3)
		want := func(s *shared.Sequence, ids ...int64) {
			r.Helper()
			for _, id := range ids {
				if got, err := s.Next(r.Ctx); got != id || err != nil {
					r.Errorf("%d, %v, want %d", got, err, id)
				}
			}
		}
		want(s, 1, 2)
		if n, _ := r.Srv.Node(idsPath); !bytes.Equal(n.Data, []byte{0, 0, 0, 0, 0, 0, 0, 3}) || len(r.Srv.Children(idsPath)) != 0 {
			r.Errorf("%+v", n)
		}
		want(other, 4)
		want(s, 3, 7)
		long, err := shared.NewDistributedAtomicLong(c, idsPath)
		r.Check(err)
		v, err := long.Increment(r.Ctx)
		r.Check(err)
		if v.PostValue != 10 {
			r.Errorf("%+v", v)
		}
		want(s, 8, 9, 11)
		want(other, 5, 6, 14)
		first, last, err := s.Reserve(r.Ctx, 10)
		if first != 17 || last != 26 || err != nil {
			r.Errorf("%d to %d, %v", first, last, err)
		}
		cached, err := shared.NewCachedAtomicLong(long, 10)
		r.Check(err)
		for i := range int64(12) {
			v, err := cached.Next(r.Ctx)
			if err != nil || v.PreValue != 26+i || v.PostValue != 27+i || !v.Succeeded || (v.Stats.OptimisticTries > 0) != (i%10 == 0) {
				r.Errorf("%+v, %v", v, err)
			}
		}
		want(s, 12, 13, 47) // a process that restarts begins behind all blocks
		want(r.sequence(c, 3), 50)
		if s.Path() != idsPath {
			r.Error(s.Path())
		}
	})
}

func TestSequenceInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		if s, err := shared.NewSequence(c, idsPath, 0); s != nil || err == nil {
			r.Error("a block of none")
		}
		if s, err := shared.NewSequence(nil, idsPath, 1); s != nil || err == nil {
			r.Error("no client")
		}
		if n, err := shared.NewCachedAtomicLong(nil, 1); n != nil || err == nil {
			r.Error("no number")
		}
		long := r.long(c)
		if n, err := shared.NewCachedAtomicLong(long, 0); n != nil || err == nil {
			r.Error("a factor of 0")
		}
		for _, opt := range []shared.AtomicOption{shared.PromotedToLock[any](nil, 0, retry.None()), shared.PromotedToLock((*recipes.InterProcessMutex)(nil), 0, retry.None()), shared.WithNodeACL()} {
			if n, err := shared.NewDistributedAtomicValue(c, "/v", opt); n != nil || err == nil {
				r.Error("an invalid option")
			}
		}
		s := r.sequence(c, 3)
		if _, _, err := s.Reserve(r.Ctx, 0); err == nil {
			r.Error("reserved none")
		}
		r.Check(r.Srv.Create(idsPath, []byte{0, 0, 0, 5}))
		_, err := s.Next(r.Ctx)
		testrig.WantErr(r.T, err, shared.ErrCountData)
		for _, from := range []int64{math.MaxInt64 - 2, -7} {
			n, err := shared.NewDistributedAtomicLong(c, idsPath)
			r.Check(err)
			r.Check(r.Srv.SetData(idsPath, make([]byte, 8)))
			r.Check(n.ForceSet(r.Ctx, from))
			if id, err := s.Next(r.Ctx); err == nil || errors.Is(err, shared.ErrOverflow) != (from > 0) {
				r.Errorf("%d after %d: %v", id, from, err)
			}
			if v, err := n.Get(r.Ctx); v.PostValue != from || err != nil {
				r.Errorf("%d became %+v, %v", from, v, err)
			}
		}
	})
}

// The node is deleted and made again: a sequence that has handed out ids stops.
func TestSequenceReplaced(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.sequence(r.Connect("a"), 1)
		for range 3 {
			_, err := s.Next(r.Ctx)
			r.Check(err)
		}
		r.Check(r.Srv.Delete(idsPath))
		for range 2 {
			id, err := s.Next(r.Ctx)
			testrig.WantErr(r.T, err, shared.ErrSequenceReplaced)
			if id != 0 {
				r.Errorf("%d again", id)
			}
		}
		// In the moment between the read and the write.
		r.Check(r.Srv.Delete(idsPath))
		s = r.sequence(r.Connect("b"), 1)
		_, err := s.Next(r.Ctx)
		r.Check(err)
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpSetData, Client: "b"}, func(context.Context, zktest.Request) {
			r.Check(r.Srv.Delete(idsPath))
			r.Check(r.Srv.Create(idsPath, make([]byte, 8)))
			r.Check(r.Srv.SetData(idsPath, make([]byte, 8)))
		})
		_, err = s.Next(r.Ctx)
		testrig.WantErr(r.T, err, shared.ErrSequenceReplaced)
	})
}

// Under lost answers, lost sessions, contexts that end and processes that crash no id
// comes twice, and the ids of one sequence grow.
func TestSequenceNeverTwice(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		bubble(t, func(r *rig) {
			for _, op := range []zktest.Op{zktest.OpSetData, zktest.OpGetData, zktest.OpCreate} {
				m := zktest.Match{Op: op, Prob: 0.05, Times: zktest.Always}
				r.Srv.LoseReply(m)
				r.Srv.DropBefore(m)
				r.Srv.StallReply(zktest.Match{Op: op, Prob: 0.02, Times: zktest.Always})
			}
			var mu sync.Mutex
			given := map[int64]bool{}
			var wg sync.WaitGroup
			for i := range 3 {
				c := r.Connect(name(i))
				wg.Go(func() {
					for life := range 4 {
						block := 1 + int(seed+uint64(i)*(seed%2))%4 // often the same: then processes write equal bytes
						s := r.sequence(c, block)                   // a process that crashes leaves its block
						for range 3 {
							wg.Go(func() {
								var before int64
								for n := range 10 {
									limit := 10 * time.Second
									if (n+life)%5 == 0 {
										limit = 2 * time.Millisecond
									}
									ctx, cancel := context.WithTimeout(r.Ctx, limit)
									id, err := s.Next(ctx)
									cancel()
									if err != nil {
										continue
									}
									mu.Lock()
									if given[id] || id <= before {
										r.Errorf("seed %d: %d again, after %d", seed, id, before)
									}
									given[id] = true
									mu.Unlock()
									before = id
								}
							})
						}
						time.Sleep(500 * time.Millisecond)
						if life == 2 {
							r.Srv.ExpireSession(r.SessionID(c))
						}
					}
				})
			}
			wg.Wait()
			if len(given) < 40 {
				r.Errorf("only %d ids", len(given))
			}
		})
	}
}
