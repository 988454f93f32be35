package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// inLine lets so many acquires of n permits each wait for what the lease has.
func (r *rig) inLine(ctx context.Context, s *recipes.InterProcessSemaphoreV2, n, many int) (all []<-chan leased) {
	r.Helper()
	for range many {
		all = append(all, acquireLease(ctx, s, n))
		time.Sleep(100 * time.Millisecond)
	}
	r.wantWaiting(all[0])
	return all
}

// A release hands its permits to the next waiter of the same value in one transaction,
// and to the one behind it without another list.
func TestSemaphoreHandOver(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				s := r.semaphore(r.connect("a"), n)
				held := r.lease(s, n)
				for i, waits := range r.inLine(r.ctx, s, n, 5) {
					r.srv.ResetCounts()
					begun := time.Now()
					r.check(held.Release(r.ctx))
					got := <-waits
					r.check(got.err)
					if took := time.Since(begun); took > 4*time.Millisecond {
						r.Errorf("hand-over %d took %v", i, took)
					}
					if got.lease.FencingToken() <= held.FencingToken() || got.lease.Permits() != n {
						r.Errorf("%d permits, token %d after %d", got.lease.Permits(), got.lease.FencingToken(), held.FencingToken())
					}
					if r.srv.Count(zktest.OpMulti) != 1 || r.srv.Count(zktest.OpDelete) != 0 {
						r.Errorf("hand-over %d: %v", i, r.srv.Counts())
					}
					r.wantLeases(n)
					held = got.lease
				}
				r.check(held.Close())
				r.drained()
				if n := r.srv.WatchCount(); n != 0 {
					r.Errorf("%d watches", n)
				}
				wantNoGoroutine(r.T)
			})
		})
	}
}

// Whatever request of a hand-over is lost, one lease stands behind it and the release
// has succeeded.
func TestSemaphoreHandOverLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.srv.LoseReply, "request": r.srv.DropBefore, "stalled": r.srv.StallReply, "after": r.srv.DropAfter,
		} {
			s := r.semaphore(r.connect(name), 2)
			held := r.lease(s, 2)
			line := r.inLine(r.ctx, s, 2, 3)
			for _, waits := range line {
				rule := fault(zktest.Match{Client: name, Op: zktest.OpMulti, PathPrefix: poolLeases})
				r.check(held.Release(r.ctx))
				got := <-waits
				r.check(got.err)
				r.wantLeases(2)
				if rule.Fired() != 1 {
					r.Errorf("%s: the fault happened %d times", name, rule.Fired())
				}
				r.check(got.lease.Err())
				held = got.lease
				time.Sleep(sessionTimeout)
			}
			r.check(held.Close())
			r.drained()
		}
		wantNoGoroutine(r.T)
	})
}

// The releaser or the waiter gives up while the transaction is under way: nothing is left
// behind, and the other one has what it wants.
func TestSemaphoreHandOverGivenUp(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"releaser", "waiter", "both"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				for step := range 40 {
					s := r.semaphore(r.connect(name(step)), 1)
					held := r.lease(s, 1)
					ctx, cancel := context.WithCancel(r.ctx)
					waits := r.inLine(ctx, s, 1, 1)[0]
					end, over := context.WithTimeout(r.ctx, time.Duration(step)*60*time.Microsecond)
					release, wait := r.ctx, r.ctx
					if who != "waiter" {
						release = end
					}
					if who != "releaser" {
						wait = end
					}
					context.AfterFunc(wait, cancel)
					err := held.Release(release)
					if err != nil && (who == "waiter" || !errors.Is(err, context.DeadlineExceeded)) {
						r.Errorf("release: %v", err)
					}
					got := <-waits
					switch {
					case got.err == nil:
						r.check(got.lease.Err())
						r.check(got.lease.Close())
					case who == "releaser" || !errors.Is(got.err, context.Canceled):
						r.Errorf("acquire: %v", got.err)
					}
					over()
					cancel()
					r.drained()
				}
				wantNoGoroutine(r.T)
			})
		})
	}
}

// endsUnseen is a context that has ended, and nobody was woken by that yet.
type endsUnseen struct {
	context.Context

	over atomic.Bool
}

// Err is as of a deadline that has passed.
func (c *endsUnseen) Err() error {
	if c.over.Load() {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

// A waiter's context ends in the moment in which the waiter ahead is served. Its acquire ends
// with the error of its own context, and not of one that it does not know.
func TestSemaphoreCalledAsItsContextEnds(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 1)
		held := r.lease(s, 1)
		first := r.inLine(r.ctx, s, 1, 1)[0]
		ends := &endsUnseen{Context: r.ctx}
		second := r.inLine(ends, s, 1, 1)[0]
		ends.over.Store(true)
		r.check(held.Release(r.ctx))
		got := <-first
		r.check(got.err)
		if got := <-second; !errors.Is(got.err, context.DeadlineExceeded) || errors.Is(got.err, context.Canceled) {
			r.Errorf("acquire: %v, want the end of its context", got.err)
		}
		r.check(got.lease.Close())
		r.drained()
	})
}

// A hand-over that finds one of its nodes deleted changes nothing: the release and the
// waiter each learn what is theirs.
func TestSemaphoreHandOverRefused(t *testing.T) {
	t.Parallel()
	for what, deleted := range map[string]string{"lease": poolLeases, "place": poolQueue} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				s := r.semaphore(r.connect("a"), 1)
				held := r.lease(s, 1)
				waits := r.inLine(r.ctx, s, 1, 1)[0]
				r.srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, PathPrefix: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
					for _, name := range r.srv.Children(deleted) {
						r.check(r.srv.Delete(deleted + "/" + name))
					}
				})
				err := held.Release(r.ctx)
				got := <-waits
				if what == "lease" {
					wantErr(t, err, recipes.ErrLost, recipes.ErrNodeDeleted)
					r.check(got.err)
					r.check(got.lease.Close())
				} else {
					r.check(err)
					wantErr(t, got.err, recipes.ErrNodeDeleted)
				}
				r.drained()
				r.check(r.lease(s, 1).Close())
				wantNoGoroutine(r.T)
			})
		})
	}
}

// A waiter that a hand-over has failed to serve takes its permits alone, also if there is
// room for the waiter behind it by then.
func TestSemaphoreHandOverRefusedWithRoomForMore(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 2)
		held, other := r.lease(s, 1), r.lease(s, 1)
		line := r.inLine(r.ctx, s, 1, 2)
		r.srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, PathPrefix: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
			for _, name := range r.srv.Children(poolLeases) {
				r.check(r.srv.Delete(poolLeases + "/" + name))
			}
		})
		wantErr(t, held.Release(r.ctx), recipes.ErrLost, recipes.ErrNodeDeleted)
		leases := r.granted(line...)
		r.wantTokens(leases, 1)
		r.wantLeases(2)
		wantErr(t, other.Release(r.ctx), recipes.ErrLost)
		for _, l := range leases {
			r.check(l.Close())
		}
		r.drained()
		wantNoGoroutine(r.T)
	})
}

// A session that is over hands nothing over, and neither does a hold that is lost while
// its session goes on at the server.
func TestSemaphoreHandOverAfterTheEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		s := r.semaphore(c, 1)
		held := r.lease(s, 1)
		waits := r.inLine(r.ctx, s, 1, 1)[0]
		r.srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, PathPrefix: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
			r.srv.ExpireSession(r.session(c))
		})
		err := held.Release(r.ctx)
		wantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
		wantErr(t, (<-waits).err, client.ErrSessionLost)
		r.drained()

		held = r.lease(s, 1)
		waits = r.inLine(r.ctx, s, 1, 1)[0]
		r.srv.Freeze()
		<-held.Context().Done() // no proof
		wantErr(t, held.Err(), recipes.ErrLost)
		r.srv.ResetCounts()
		r.srv.Thaw()
		wantErr(t, held.Close(), recipes.ErrLost)
		if n := r.srv.Count(zktest.OpMulti); n != 0 {
			r.Errorf("handed over after its end: %v", r.srv.Counts())
		}
		if got := <-waits; got.err == nil {
			r.check(got.lease.Err())
			r.check(got.lease.Close())
		} else {
			wantErr(t, got.err, client.ErrSessionLost)
		}
		r.drained()
		wantNoGoroutine(r.T)
	})
}

// A request to release that a waiter for permits was sent is in its leases after a
// hand-over, too.
func TestSemaphoreHandOverAsked(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 1)
		held := r.lease(s, 1)
		waits := r.inLine(r.ctx, s, 1, 1)[0]
		r.check(r.srv.SetData(poolQueue+"/"+r.named(poolQueue, queueName)[0], []byte("__REVOKE__")))
		r.check(held.Release(r.ctx))
		got := <-waits
		r.check(got.err)
		select {
		case <-got.lease.Revoked():
		case <-time.After(time.Second):
			r.Error("the request to release is lost")
		}
		r.check(got.lease.Close())
		r.drained()
	})
}

// Waiters of one value and of other clients are served in the order in which they came,
// or together. That does not depend on the client that releases. There are never too many
// holders.
func TestSemaphoreHandOverOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		all := []*recipes.InterProcessSemaphoreV2{r.semaphore(r.connect("a"), 4), r.semaphore(r.connect("b"), 4)}
		held := []*recipes.Lease{r.lease(all[0], 2), r.lease(all[0], 1), r.lease(all[1], 1)}
		var mu sync.Mutex // guards the two
		var tokens [24]int64
		out := 4
		var wg sync.WaitGroup
		for i := range tokens {
			wg.Go(func() {
				n := 1 + i*7%4
				l := r.lease(all[i*5%3%2], n)
				mu.Lock()
				tokens[i] = l.FencingToken()
				if out += n; out > 4 {
					r.Errorf("%d of 4", out)
				}
				mu.Unlock()
				time.Sleep(time.Duration(1+i%3) * 100 * time.Millisecond)
				mu.Lock()
				out -= n
				mu.Unlock()
				r.check(l.Release(r.ctx))
			})
			time.Sleep(20 * time.Millisecond)
		}
		for _, l := range held {
			mu.Lock()
			out -= l.Permits()
			mu.Unlock()
			r.check(l.Release(r.ctx))
			time.Sleep(50 * time.Millisecond)
		}
		wg.Wait()
		if !slices.IsSorted(tokens[:]) {
			r.Errorf("order %v", tokens)
		}
		r.drained()
		wantNoGoroutine(r.T)
	})
}

// A server that does not answer the transaction of a hand-over is what the errors of the
// releaser and of the waiter name. Nobody holds, so "waiting behind" would be wrong.
func TestSemaphoreHandOverUnanswered(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 1)
		held := r.lease(s, 1)
		ctx := r.within(5 * time.Second)
		waits := r.inLine(ctx, s, 1, 1)[0]
		r.srv.DelayReply(zktest.Match{Op: zktest.OpMulti}, sessionTimeout)
		for _, err := range []error{held.Release(ctx), (<-waits).err} {
			wantErr(t, err, context.DeadlineExceeded)
			if text := fmt.Sprint(err); !strings.Contains(text, "the transaction that") || !strings.Contains(text, "has no answer yet") {
				r.Errorf("%v", err)
			}
		}
		time.Sleep(sessionTimeout)
		r.drained()
		wantNoGoroutine(t)
	})
}
