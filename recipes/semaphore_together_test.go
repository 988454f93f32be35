package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// behind lets acquires of so many permits wait one behind the other, each of its value.
func (r *rig) behind(ctx context.Context, line ...wanted) (all []<-chan leased) {
	r.Helper()
	for _, w := range line {
		all = append(all, acquireLease(ctx, w.of, w.n))
		time.Sleep(100 * time.Millisecond)
	}
	for _, waits := range all {
		r.wantWaiting(waits)
	}
	return all
}

// wanted is what one acquire wants.
type wanted struct {
	of *recipes.InterProcessSemaphoreV2
	n  int
}

// granted are the leases that the acquires have got.
func (r *rig) granted(all ...<-chan leased) (leases []*recipes.Lease) {
	r.Helper()
	for _, waits := range all {
		got := <-waits
		r.Check(got.err)
		leases = append(leases, got.lease)
	}
	return leases
}

// wantTokens checks that the leases were made one after the other, or together where
// the step is 0.
func (r *rig) wantTokens(leases []*recipes.Lease, steps ...int64) {
	r.Helper()
	for i, step := range steps {
		a, b := leases[i].FencingToken(), leases[i+1].FencingToken()
		if step == 0 && a != b || step > 0 && a >= b {
			r.Errorf("lease %d has token %d, and the next one %d", i, a, b)
		}
	}
}

// As long as there is room, waiters of one client that stand behind each other are
// granted in one transaction. They may wait with different values.
func TestSemaphoreTogether(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]bool{"release of another client": false, "hand-over": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				a := r.Connect("a")
				one, two := r.semaphore(a, 5), r.semaphore(a, 5, recipes.WithNodeData([]byte("two")))
				holder := r.semaphore(r.Connect("b"), 5)
				if own {
					holder = r.semaphore(a, 5)
				}
				held := r.lease(holder, 5)
				line := r.behind(r.Ctx, wanted{one, 1}, wanted{two, 2}, wanted{one, 1}, wanted{one, 2}, wanted{two, 1})
				r.Srv.ResetCounts()
				r.Check(held.Release(r.Ctx))
				leases := r.granted(line[:3]...)
				r.wantTokens(leases, 0, 0)
				if n := r.Srv.Count(zktest.OpMulti); own && n != 1 || !own && n != 2 {
					r.Errorf("%d transactions: %v", n, r.Srv.Counts())
				}
				r.wantLeases(4)
				for i, want := range []string{"", "two", ""} {
					data, err := leases[i].Data(r.Ctx)
					r.Check(err)
					if n := []int{1, 2, 1}[i]; leases[i].Permits() != n || want != "" && string(data) != want {
						r.Errorf("lease %d: %d permits, %q", i, leases[i].Permits(), data)
					}
				}
				for _, waits := range line[3:] { // the last one has room, and does not overtake
					r.wantWaiting(waits)
				}
				r.Check(leases[0].Release(r.Ctx))
				rest := r.granted(line[3])
				r.wantWaiting(line[4])
				r.Check(leases[1].Release(r.Ctx))
				rest = append(rest, r.granted(line[4])...)
				r.wantTokens(rest, 1)
				for _, l := range append(rest, leases[2]) {
					r.Check(l.Err())
					r.Check(l.Close())
				}
				r.drained()
				r.WantNoWatch()
				testrig.WantNoGoroutine(r.T, ourFrames)
			})
		})
	}
}

// A group ends at a waiter of another client, which is not overtaken.
func TestSemaphoreTogetherOvertakesNobody(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.semaphore(r.Connect("a"), 6), r.semaphore(r.Connect("b"), 6)
		held := r.lease(r.semaphore(r.Connect("c"), 6), 6)
		line := r.behind(r.Ctx, wanted{a, 1}, wanted{a, 1}, wanted{b, 1}, wanted{a, 1}, wanted{a, 1}, wanted{b, 1})
		r.Check(held.Release(r.Ctx))
		leases := r.granted(line...)
		r.wantTokens(leases, 0, 1, 1, 0, 1)
		for _, l := range leases {
			r.Check(l.Close())
		}
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// Whatever request of a group is lost, each of it has its permits, once.
func TestSemaphoreTogetherLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.Srv.LoseReply, "request": r.Srv.DropBefore, "stalled": r.Srv.StallReply, "after": r.Srv.DropAfter,
		} {
			s := r.semaphore(r.Connect(name), 4)
			held := r.lease(s, 4)
			line := r.behind(r.Ctx, wanted{s, 1}, wanted{s, 2}, wanted{s, 1})
			rule := fault(zktest.Match{Client: name, Op: zktest.OpMulti, PathPrefix: poolLeases})
			r.Check(held.Release(r.Ctx))
			leases := r.granted(line...)
			if rule.Fired() != 1 {
				r.Errorf("%s: the fault happened %d times", name, rule.Fired())
			}
			r.wantLeases(4)
			seen := map[string]bool{}
			for i, l := range leases {
				r.Check(l.Err())
				if n := []int{1, 2, 1}[i]; l.Permits() != n {
					r.Errorf("%s: %d permits for %d", name, l.Permits(), n)
				}
				for _, path := range l.Paths() {
					if seen[path] || !slices.Contains(r.Srv.Children(poolLeases), strings.TrimPrefix(path, poolLeases+"/")) {
						r.Errorf("%s: %s is of two leases, or of none", name, path)
					}
					seen[path] = true
				}
			}
			for _, l := range leases {
				r.Check(l.Close())
			}
			r.drained()
		}
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// If the node of one of a group is deleted or written to, nothing happens at first, and
// each of the group goes on alone: no one is told of what another one met.
func TestSemaphoreTogetherRefused(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		for who, name := range []string{"the first", "in the middle", "the last"} {
			for _, what := range []string{"deleted", "asked"} {
				t.Run(fmt.Sprintf("%s %s %v", name, what, own), func(t *testing.T) {
					t.Parallel()
					bubble(t, func(r *rig) {
						c := r.Connect("a")
						s := r.semaphore(c, 3)
						holder := r.semaphore(r.Connect("b"), 3)
						if own {
							holder = s
						}
						held := r.lease(holder, 3)
						line := r.behind(r.Ctx, wanted{s, 1}, wanted{s, 1}, wanted{s, 1})
						r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti, PathPrefix: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
							queue := r.named(poolQueue, queueName)
							slices.SortFunc(queue, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
							node := poolQueue + "/" + queue[who]
							if what == "deleted" {
								r.Check(r.Srv.Delete(node))
							} else {
								r.Check(r.Srv.SetData(node, []byte("__REVOKE__")))
							}
						})
						r.Check(held.Release(r.Ctx))
						for i, waits := range line {
							got := <-waits
							if i == who && what == "deleted" {
								testrig.WantErr(t, got.err, recipes.ErrNodeDeleted)
								continue
							}
							r.Check(got.err)
							select {
							case <-got.lease.Revoked():
								if i != who {
									r.Errorf("lease %d was asked for", i)
								}
							case <-time.After(time.Second):
								if i == who {
									r.Errorf("the request to release lease %d is lost", i)
								}
							}
							r.Check(got.lease.Close())
						}
						r.drained()
						testrig.WantNoGoroutine(r.T, ourFrames)
					})
				})
			}
		}
	}
}

// One of a group gives up while the transaction is under way. Nothing of it is left behind,
// and the others have what they want.
func TestSemaphoreTogetherGivenUp(t *testing.T) {
	t.Parallel()
	for who, name := range []string{"the first", "in the middle", "the last"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				s := r.semaphore(r.Connect("a"), 3)
				holder := r.semaphore(r.Connect("b"), 3)
				for step := range 40 {
					held := r.lease(holder, 3)
					var line []<-chan leased
					ctx, cancel := context.WithCancel(r.Ctx)
					for i := range 3 {
						of := r.Ctx
						if i == who {
							of = ctx
						}
						line = append(line, r.behind(of, wanted{s, 1})...)
					}
					r.Check(held.Release(r.Ctx))
					time.AfterFunc(time.Duration(step)*120*time.Microsecond, cancel)
					for i, waits := range line {
						got := <-waits
						switch {
						case got.err == nil:
							r.Check(got.lease.Err())
							r.Check(got.lease.Close())
						case i != who || !errors.Is(got.err, context.Canceled):
							r.Errorf("acquire %d: %v", i, got.err)
						}
					}
					cancel()
					r.drained()
				}
				testrig.WantNoGoroutine(r.T, ourFrames)
			})
		})
	}
}

// The session ends with the transaction of a group: each of it hears of that, and nothing
// is left.
func TestSemaphoreTogetherSessionLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.semaphore(c, 3)
		held := r.lease(r.semaphore(r.Connect("b"), 3), 3)
		line := r.behind(r.Ctx, wanted{s, 1}, wanted{s, 1}, wanted{s, 1})
		r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti, PathPrefix: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
			r.Srv.ExpireSession(r.SessionID(c))
		})
		r.Check(held.Release(r.Ctx))
		for _, waits := range line {
			testrig.WantErr(t, (<-waits).err, client.ErrSessionLost)
		}
		r.drained()
		leases := []*recipes.Lease{r.lease(s, 3)}
		r.Check(leases[0].Close())
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// Each of a group is told that it has come to the front, as a waiter that is granted alone.
func TestSemaphoreTogetherTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var mu sync.Mutex // guards places
		places := map[string]client.QueuePlace{}
		c := r.Connect("a", client.WithObserver(client.Observer{
			Lock: func(context.Context, client.LockInfo) (context.Context, client.LockHooks) {
				return nil, client.LockHooks{Queued: func(now client.QueuePlace) {
					mu.Lock()
					defer mu.Unlock()
					places[now.Node] = now
				}}
			},
		}))
		s := r.semaphore(c, 3)
		held := r.lease(r.semaphore(r.Connect("b"), 3), 3)
		line := r.behind(r.Ctx, wanted{s, 1}, wanted{s, 1}, wanted{s, 1})
		r.Check(held.Release(r.Ctx))
		leases := r.granted(line...)
		r.wantTokens(leases, 0, 0)
		mu.Lock()
		defer mu.Unlock()
		if len(places) != len(line) {
			r.Errorf("%d waiters were told of their places", len(places))
		}
		for node, last := range places {
			if last.Ahead != 0 || last.Behind != "" {
				r.Errorf("%s: %+v", node, last)
			}
		}
		for _, l := range leases {
			r.Check(l.Close())
		}
	})
}

// The answer to a hand-over is lost, and an operator deletes one or all of the new leases
// before the client looks for them. The release has succeeded all the same. The waiters are
// told that a node of theirs was deleted, and nothing of the group is left.
func TestSemaphoreTogetherTorn(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 2} {
		t.Run(fmt.Sprint(most, " deleted"), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				s := r.semaphore(r.Connect("a"), 2)
				held := r.lease(s, 2)
				old := r.named(poolLeases, leaseName)
				line := r.behind(r.Ctx, wanted{s, 1}, wanted{s, 1})
				lost := r.Srv.LoseReply(zktest.Match{Client: "a", Op: zktest.OpMulti, PathPrefix: poolLeases})
				deleted := 0
				r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
					for _, name := range r.named(poolLeases, leaseName) {
						if !slices.Contains(old, name) && deleted < most {
							r.Check(r.Srv.Delete(poolLeases + "/" + name))
							deleted++
						}
					}
				})
				r.Check(held.Release(r.Ctx))
				for _, waits := range line {
					testrig.WantErr(t, (<-waits).err, recipes.ErrNodeDeleted)
				}
				if lost.Fired() != 1 || deleted != most {
					r.Errorf("%d replies lost, %d leases deleted", lost.Fired(), deleted)
				}
				r.Check(r.lease(s, 2).Close())
				r.drained()
				testrig.WantNoGoroutine(r.T, ourFrames)
			})
		})
	}
}

// A context that ends while the transaction of a group is under way ends a wait. The
// error says behind which contender.
func TestSemaphoreTogetherWaitError(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.Connect("a"), 2)
		held := r.lease(r.semaphore(r.Connect("b"), 2), 2)
		first := r.behind(r.Ctx, wanted{s, 1})[0]
		ctx, cancel := context.WithCancel(r.Ctx)
		second := r.behind(ctx, wanted{s, 1})[0]
		stalled := r.Srv.StallReply(zktest.Match{Client: "a", Op: zktest.OpMulti, PathPrefix: poolLeases})
		r.Check(held.Release(r.Ctx))
		time.Sleep(100 * time.Millisecond)
		cancel()
		var said *recipes.WaitError
		if err := (<-second).err; !errors.Is(err, context.Canceled) || !errors.As(err, &said) {
			r.Errorf("the wait ended with %v", err)
		}
		if stalled.Fired() != 1 {
			r.Errorf("%d transactions", stalled.Fired())
		}
		got := <-first
		r.Check(got.err)
		r.Check(got.lease.Close())
		r.drained()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}
