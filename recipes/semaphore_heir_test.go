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
	"github.com/docent-go/docent/internal/testrig"
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
				s := r.semaphore(r.Connect("a"), n)
				held := r.lease(s, n)
				for i, waits := range r.inLine(r.Ctx, s, n, 5) {
					r.Srv.ResetCounts()
					begun := time.Now()
					r.Check(held.Release(r.Ctx))
					got := <-waits
					r.Check(got.err)
					if took := time.Since(begun); took > 4*time.Millisecond {
						r.Errorf("hand-over %d took %v", i, took)
					}
					if got.lease.FencingToken() <= held.FencingToken() || got.lease.Permits() != n {
						r.Errorf("%d permits, token %d after %d", got.lease.Permits(), got.lease.FencingToken(), held.FencingToken())
					}
					if r.Srv.Count(zktest.OpMulti) != 1 || r.Srv.Count(zktest.OpDelete) != 0 {
						r.Errorf("hand-over %d: %v", i, r.Srv.Counts())
					}
					r.wantLeases(n)
					held = got.lease
				}
				r.Check(held.Close())
				r.drained()
				r.WantNoWatch()
				testrig.WantNoGoroutine(r.T, ourFrames)
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
			"reply": r.Srv.LoseReply, "request": r.Srv.DropBefore, "stalled": r.Srv.StallReply, "after": r.Srv.DropAfter,
		} {
			s := r.semaphore(r.Connect(name), 2)
			held := r.lease(s, 2)
			line := r.inLine(r.Ctx, s, 2, 3)
			for _, waits := range line {
				rule := fault(zktest.Match{Client: name, Op: zktest.OpMulti, PathPrefix: poolLeases})
				r.Check(held.Release(r.Ctx))
				got := <-waits
				r.Check(got.err)
				r.wantLeases(2)
				if rule.Fired() != 1 {
					r.Errorf("%s: the fault happened %d times", name, rule.Fired())
				}
				r.Check(got.lease.Err())
				held = got.lease
				time.Sleep(testrig.SessionTimeout)
			}
			r.Check(held.Close())
			r.drained()
		}
		testrig.WantNoGoroutine(r.T, ourFrames)
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
					s := r.semaphore(r.Connect(name(step)), 1)
					held := r.lease(s, 1)
					ctx, cancel := context.WithCancel(r.Ctx)
					waits := r.inLine(ctx, s, 1, 1)[0]
					end, over := context.WithTimeout(r.Ctx, time.Duration(step)*60*time.Microsecond)
					release, wait := r.Ctx, r.Ctx
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
						r.Check(got.lease.Err())
						r.Check(got.lease.Close())
					case who == "releaser" || !errors.Is(got.err, context.Canceled):
						r.Errorf("acquire: %v", got.err)
					}
					over()
					cancel()
					r.drained()
				}
				testrig.WantNoGoroutine(r.T, ourFrames)
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
		s := r.semaphore(r.Connect("a"), 1)
		held := r.lease(s, 1)
		first := r.inLine(r.Ctx, s, 1, 1)[0]
		ends := &endsUnseen{Context: r.Ctx}
		second := r.inLine(ends, s, 1, 1)[0]
		ends.over.Store(true)
		r.Check(held.Release(r.Ctx))
		got := <-first
		r.Check(got.err)
		if got := <-second; !errors.Is(got.err, context.DeadlineExceeded) || errors.Is(got.err, context.Canceled) {
			r.Errorf("acquire: %v, want the end of its context", got.err)
		}
		r.Check(got.lease.Close())
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
				s := r.semaphore(r.Connect("a"), 1)
				held := r.lease(s, 1)
				waits := r.inLine(r.Ctx, s, 1, 1)[0]
				r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, PathPrefix: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
					for _, name := range r.Srv.Children(deleted) {
						r.Check(r.Srv.Delete(deleted + "/" + name))
					}
				})
				err := held.Release(r.Ctx)
				got := <-waits
				if what == "lease" {
					testrig.WantErr(t, err, recipes.ErrLost, recipes.ErrNodeDeleted)
					r.Check(got.err)
					r.Check(got.lease.Close())
				} else {
					r.Check(err)
					testrig.WantErr(t, got.err, recipes.ErrNodeDeleted)
				}
				r.drained()
				r.Check(r.lease(s, 1).Close())
				testrig.WantNoGoroutine(r.T, ourFrames)
			})
		})
	}
}

// A waiter that a hand-over has failed to serve takes its permits alone, also if there is
// room for the waiter behind it by then.
func TestSemaphoreHandOverRefusedWithRoomForMore(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.Connect("a"), 2)
		held, other := r.lease(s, 1), r.lease(s, 1)
		line := r.inLine(r.Ctx, s, 1, 2)
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, PathPrefix: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
			for _, name := range r.Srv.Children(poolLeases) {
				r.Check(r.Srv.Delete(poolLeases + "/" + name))
			}
		})
		testrig.WantErr(t, held.Release(r.Ctx), recipes.ErrLost, recipes.ErrNodeDeleted)
		leases := r.granted(line...)
		r.wantTokens(leases, 1)
		r.wantLeases(2)
		testrig.WantErr(t, other.Release(r.Ctx), recipes.ErrLost)
		for _, l := range leases {
			r.Check(l.Close())
		}
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// A session that is over hands nothing over, and neither does a hold that is lost while
// its session goes on at the server.
func TestSemaphoreHandOverAfterTheEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.semaphore(c, 1)
		held := r.lease(s, 1)
		waits := r.inLine(r.Ctx, s, 1, 1)[0]
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpMulti, PathPrefix: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
			r.Srv.ExpireSession(r.SessionID(c))
		})
		err := held.Release(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrLost, client.ErrSessionLost)
		testrig.WantErr(t, (<-waits).err, client.ErrSessionLost)
		r.drained()

		held = r.lease(s, 1)
		waits = r.inLine(r.Ctx, s, 1, 1)[0]
		r.Srv.Freeze()
		<-held.Context().Done() // no proof
		testrig.WantErr(t, held.Err(), recipes.ErrLost)
		r.Srv.ResetCounts()
		r.Srv.Thaw()
		testrig.WantErr(t, held.Close(), recipes.ErrLost)
		if n := r.Srv.Count(zktest.OpMulti); n != 0 {
			r.Errorf("handed over after its end: %v", r.Srv.Counts())
		}
		if got := <-waits; got.err == nil {
			r.Check(got.lease.Err())
			r.Check(got.lease.Close())
		} else {
			testrig.WantErr(t, got.err, client.ErrSessionLost)
		}
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// A request to release that a waiter for permits was sent is in its leases after a
// hand-over, too.
func TestSemaphoreHandOverAsked(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.Connect("a"), 1)
		held := r.lease(s, 1)
		waits := r.inLine(r.Ctx, s, 1, 1)[0]
		r.Check(r.Srv.SetData(poolQueue+"/"+r.named(poolQueue, queueName)[0], []byte("__REVOKE__")))
		r.Check(held.Release(r.Ctx))
		got := <-waits
		r.Check(got.err)
		select {
		case <-got.lease.Revoked():
		case <-time.After(time.Second):
			r.Error("the request to release is lost")
		}
		r.Check(got.lease.Close())
		r.drained()
	})
}

// Waiters of one value and of other clients are served in the order in which they came,
// or together. That does not depend on the client that releases. There are never too many
// holders.
func TestSemaphoreHandOverOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		all := []*recipes.InterProcessSemaphoreV2{r.semaphore(r.Connect("a"), 4), r.semaphore(r.Connect("b"), 4)}
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
				r.Check(l.Release(r.Ctx))
			})
			time.Sleep(20 * time.Millisecond)
		}
		for _, l := range held {
			mu.Lock()
			out -= l.Permits()
			mu.Unlock()
			r.Check(l.Release(r.Ctx))
			time.Sleep(50 * time.Millisecond)
		}
		wg.Wait()
		if !slices.IsSorted(tokens[:]) {
			r.Errorf("order %v", tokens)
		}
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// A server that does not answer the transaction of a hand-over is what the errors of the
// releaser and of the waiter name. Nobody holds, so "waiting behind" would be wrong.
func TestSemaphoreHandOverUnanswered(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.Connect("a"), 1)
		held := r.lease(s, 1)
		ctx := r.Within(5 * time.Second)
		waits := r.inLine(ctx, s, 1, 1)[0]
		r.Srv.DelayReply(zktest.Match{Op: zktest.OpMulti}, testrig.SessionTimeout)
		for _, err := range []error{held.Release(ctx), (<-waits).err} {
			testrig.WantErr(t, err, context.DeadlineExceeded)
			if text := fmt.Sprint(err); !strings.Contains(text, "the transaction that") || !strings.Contains(text, "has no answer yet") {
				r.Errorf("%v", err)
			}
		}
		time.Sleep(testrig.SessionTimeout)
		r.drained()
		testrig.WantNoGoroutine(t, ourFrames)
	})
}
