package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// slowly is the key under which a context has the time by which its goroutine comes late to each
// answer about the queue, as on a busy machine.
type slowly struct{}

// An acquire lists the leases as it joins, or as it looks at the queue, before the transaction of
// the one ahead. By the moment in which it acts on the answer, that one holds and has left the
// queue. So it is the first, and its list is older than the leases of the hold. It lists again.
func TestSemaphoreOldList(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		n, limit    int
		try         bool
		ahead, late time.Duration // what holds up the one ahead, and how late the other one is
	}{
		"1 of 1":         {1, 1, false, 100 * ms, 150 * ms},
		"3 of 4":         {3, 4, false, 100 * ms, 150 * ms},
		"1 of 1, at try": {1, 1, true, 310 * ms, 150 * ms}, // it looks, joins, and looks again
		"3 of 4, at try": {3, 4, true, 310 * ms, 150 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a", client.WithObserver(client.Observer{
					Operation: func(ctx context.Context, op client.OperationInfo) (context.Context, func(client.OperationResult)) {
						d, late := ctx.Value(slowly{}).(time.Duration)
						if !late || !strings.HasPrefix(op.Path, poolQueue) {
							return ctx, nil
						}
						return ctx, func(client.OperationResult) { time.Sleep(d) }
					},
				}))
				s := r.semaphore(c, tt.limit)
				acquire := s.Acquire
				if tt.try {
					acquire = s.TryAcquire
				}
				h, err := s.Acquire(r.Ctx, tt.n) // makes the directories
				r.Check(err)
				r.Check(h.Release(r.Ctx))
				const tries = 4 // at first the lists tell the places, and later the numbers
				for i := range tries {
					other := make(chan error)
					begin := func() {
						ctx, cancel := context.WithTimeout(context.WithValue(r.Ctx, slowly{}, tt.late), 2*time.Second)
						defer cancel()
						h, err := acquire(ctx, tt.n)
						if err == nil {
							err = fmt.Errorf("try %d: two hold %d permits each, and there are %d", i, tt.n, tt.limit)
							r.Check(h.Release(r.Ctx))
						} else if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, recipes.ErrBusy) {
							err = nil
						}
						other <- err
					}
					if tt.try { // it has to find the queue empty at first
						go begin()
						time.Sleep(20 * ms)
					}
					held := make(chan *recipes.Lease)
					go func() {
						h, err := s.Acquire(context.WithValue(r.Ctx, slowly{}, tt.ahead), tt.n)
						r.Check(err)
						held <- h
					}()
					if !tt.try {
						time.Sleep(20 * ms)
						go begin()
					}
					h := <-held
					r.Check(<-other)
					r.Check(h.Release(r.Ctx))
					time.Sleep(10 * ms)
				}
			})
		})
	}
}
