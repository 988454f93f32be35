package recipes_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// A waiter lists the leases as it joins, before the transaction of the acquire ahead. By the
// moment in which it looks at that list, the acquire ahead holds and has left the queue. So the
// waiter is the first, and its list is older than the leases of the hold. It lists again.
func TestSemaphoreOldList(t *testing.T) {
	t.Parallel()
	for n, limit := range map[int]int{1: 1, 3: 4} {
		t.Run(fmt.Sprintf("%d of %d", n, limit), func(t *testing.T) {
			t.Parallel()
			bubbleWith(t, func(r *rig) {
				h, err := r.semaphore(r.connect("before"), limit).Acquire(r.ctx, n) // makes the directories
				r.check(err)
				r.check(h.Release(r.ctx))

				const trip, look = 2 * time.Millisecond, 50 * time.Millisecond
				creates := func(op, path string) bool { return op == "create" && strings.HasPrefix(path, poolQueue+"/") }
				var joins atomic.Int64
				s := r.semaphore(r.connect("a", client.WithObserver(client.Observer{
					Operation: func(ctx context.Context, op client.OperationInfo) (context.Context, func(client.OperationResult)) {
						if !creates(op.Op, op.Path) {
							return ctx, nil
						}
						slow := joins.Add(1)%2 == 0
						return ctx, func(client.OperationResult) {
							if slow {
								time.Sleep(look) // as a busy machine would
							}
						}
					},
				})), limit)
				const tries = 4 // at first the lists tell the places, and later the numbers
				for i := range tries {
					rule := r.srv.Delay(zktest.Match{Client: "a", Nth: 2, Where: func(q zktest.Request) bool {
						return creates(q.Op.String(), q.Path)
					}}, 5*trip) // the transaction comes behind it
					held := make(chan *recipes.Lease)
					ctx, cancel := context.WithTimeout(r.ctx, 200*time.Millisecond)
					for range 2 {
						go func() {
							h, err := s.Acquire(ctx, n)
							if err != nil {
								wantErr(t, err, context.DeadlineExceeded)
							}
							held <- h
						}()
						time.Sleep(trip)
					}
					holds := slices.DeleteFunc([]*recipes.Lease{<-held, <-held}, func(h *recipes.Lease) bool { return h == nil })
					cancel()
					if len(holds) != 1 {
						t.Errorf("try %d: %d holds of %d permits, and there are %d", i, len(holds), n, limit)
					}
					if got, want := joins.Load(), int64(2*(i+1)); got != want || rule.Fired() != 1 {
						t.Errorf("try %d: %d joins, want %d", i, got, want)
					}
					rule.Remove()
					for _, h := range holds {
						r.check(h.Release(r.ctx))
					}
				}
			}, zktest.WithLatency(time.Millisecond, time.Millisecond))
		})
	}
}
