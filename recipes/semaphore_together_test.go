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
		r.check(got.err)
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
				a := r.connect("a")
				one, two := r.semaphore(a, 5), r.semaphore(a, 5, recipes.WithNodeData([]byte("two")))
				holder := r.semaphore(r.connect("b"), 5)
				if own {
					holder = r.semaphore(a, 5)
				}
				held := r.lease(holder, 5)
				line := r.behind(r.ctx, wanted{one, 1}, wanted{two, 2}, wanted{one, 1}, wanted{one, 2}, wanted{two, 1})
				r.srv.ResetCounts()
				r.check(held.Release(r.ctx))
				leases := r.granted(line[:3]...)
				r.wantTokens(leases, 0, 0)
				if n := r.srv.Count(zktest.OpMulti); own && n != 1 || !own && n != 2 {
					r.Errorf("%d transactions: %v", n, r.srv.Counts())
				}
				r.wantLeases(4)
				for i, want := range []string{"", "two", ""} {
					data, err := leases[i].Data(r.ctx)
					r.check(err)
					if n := []int{1, 2, 1}[i]; leases[i].Permits() != n || want != "" && string(data) != want {
						r.Errorf("lease %d: %d permits, %q", i, leases[i].Permits(), data)
					}
				}
				for _, waits := range line[3:] { // the last one has room, and does not overtake
					r.wantWaiting(waits)
				}
				r.check(leases[0].Release(r.ctx))
				rest := r.granted(line[3])
				r.wantWaiting(line[4])
				r.check(leases[1].Release(r.ctx))
				rest = append(rest, r.granted(line[4])...)
				r.wantTokens(rest, 1)
				for _, l := range append(rest, leases[2]) {
					r.check(l.Err())
					r.check(l.Close())
				}
				r.drained()
				if n := r.srv.WatchCount(); n != 0 {
					r.Errorf("%d watches", n)
				}
				wantNoGoroutine(r.T)
			})
		})
	}
}

// A group ends at a waiter of another client, which is not overtaken.
func TestSemaphoreTogetherOvertakesNobody(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.semaphore(r.connect("a"), 6), r.semaphore(r.connect("b"), 6)
		held := r.lease(r.semaphore(r.connect("c"), 6), 6)
		line := r.behind(r.ctx, wanted{a, 1}, wanted{a, 1}, wanted{b, 1}, wanted{a, 1}, wanted{a, 1}, wanted{b, 1})
		r.check(held.Release(r.ctx))
		leases := r.granted(line...)
		r.wantTokens(leases, 0, 1, 1, 0, 1)
		for _, l := range leases {
			r.check(l.Close())
		}
		r.drained()
		wantNoGoroutine(r.T)
	})
}

// Whatever request of a group is lost, each of it has its permits, once.
func TestSemaphoreTogetherLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.srv.LoseReply, "request": r.srv.DropBefore, "stalled": r.srv.StallReply, "after": r.srv.DropAfter,
		} {
			s := r.semaphore(r.connect(name), 4)
			held := r.lease(s, 4)
			line := r.behind(r.ctx, wanted{s, 1}, wanted{s, 2}, wanted{s, 1})
			rule := fault(zktest.Match{Client: name, Op: zktest.OpMulti, PathPrefix: poolLeases})
			r.check(held.Release(r.ctx))
			leases := r.granted(line...)
			if rule.Fired() != 1 {
				r.Errorf("%s: the fault happened %d times", name, rule.Fired())
			}
			r.wantLeases(4)
			seen := map[string]bool{}
			for i, l := range leases {
				r.check(l.Err())
				if n := []int{1, 2, 1}[i]; l.Permits() != n {
					r.Errorf("%s: %d permits for %d", name, l.Permits(), n)
				}
				for _, path := range l.Paths() {
					if seen[path] || !slices.Contains(r.srv.Children(poolLeases), strings.TrimPrefix(path, poolLeases+"/")) {
						r.Errorf("%s: %s is of two leases, or of none", name, path)
					}
					seen[path] = true
				}
			}
			for _, l := range leases {
				r.check(l.Close())
			}
			r.drained()
		}
		wantNoGoroutine(r.T)
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
						c := r.connect("a")
						s := r.semaphore(c, 3)
						holder := r.semaphore(r.connect("b"), 3)
						if own {
							holder = s
						}
						held := r.lease(holder, 3)
						line := r.behind(r.ctx, wanted{s, 1}, wanted{s, 1}, wanted{s, 1})
						r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti, PathPrefix: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
							queue := r.named(poolQueue, queueName)
							slices.SortFunc(queue, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
							node := poolQueue + "/" + queue[who]
							if what == "deleted" {
								r.check(r.srv.Delete(node))
							} else {
								r.check(r.srv.SetData(node, []byte("__REVOKE__")))
							}
						})
						r.check(held.Release(r.ctx))
						for i, waits := range line {
							got := <-waits
							if i == who && what == "deleted" {
								wantErr(t, got.err, recipes.ErrNodeDeleted)
								continue
							}
							r.check(got.err)
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
							r.check(got.lease.Close())
						}
						r.drained()
						wantNoGoroutine(r.T)
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
				s := r.semaphore(r.connect("a"), 3)
				holder := r.semaphore(r.connect("b"), 3)
				for step := range 40 {
					held := r.lease(holder, 3)
					var line []<-chan leased
					ctx, cancel := context.WithCancel(r.ctx)
					for i := range 3 {
						of := r.ctx
						if i == who {
							of = ctx
						}
						line = append(line, r.behind(of, wanted{s, 1})...)
					}
					r.check(held.Release(r.ctx))
					time.AfterFunc(time.Duration(step)*120*time.Microsecond, cancel)
					for i, waits := range line {
						got := <-waits
						switch {
						case got.err == nil:
							r.check(got.lease.Err())
							r.check(got.lease.Close())
						case i != who || !errors.Is(got.err, context.Canceled):
							r.Errorf("acquire %d: %v", i, got.err)
						}
					}
					cancel()
					r.drained()
				}
				wantNoGoroutine(r.T)
			})
		})
	}
}

// The session ends with the transaction of a group: each of it hears of that, and nothing
// is left.
func TestSemaphoreTogetherSessionLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		s := r.semaphore(c, 3)
		held := r.lease(r.semaphore(r.connect("b"), 3), 3)
		line := r.behind(r.ctx, wanted{s, 1}, wanted{s, 1}, wanted{s, 1})
		r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpMulti, PathPrefix: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
			r.srv.ExpireSession(r.session(c))
		})
		r.check(held.Release(r.ctx))
		for _, waits := range line {
			wantErr(t, (<-waits).err, client.ErrSessionLost)
		}
		r.drained()
		leases := []*recipes.Lease{r.lease(s, 3)}
		r.check(leases[0].Close())
		r.drained()
		wantNoGoroutine(r.T)
	})
}

// Each of a group is told that it has come to the front, as a waiter that is granted alone.
func TestSemaphoreTogetherTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var mu sync.Mutex // guards places
		places := map[string]client.QueuePlace{}
		c := r.connect("a", client.WithObserver(client.Observer{
			Lock: func(context.Context, client.LockInfo) (context.Context, client.LockHooks) {
				return nil, client.LockHooks{Queued: func(now client.QueuePlace) {
					mu.Lock()
					defer mu.Unlock()
					places[now.Node] = now
				}}
			},
		}))
		s := r.semaphore(c, 3)
		held := r.lease(r.semaphore(r.connect("b"), 3), 3)
		line := r.behind(r.ctx, wanted{s, 1}, wanted{s, 1}, wanted{s, 1})
		r.check(held.Release(r.ctx))
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
			r.check(l.Close())
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
				s := r.semaphore(r.connect("a"), 2)
				held := r.lease(s, 2)
				old := r.named(poolLeases, leaseName)
				line := r.behind(r.ctx, wanted{s, 1}, wanted{s, 1})
				lost := r.srv.LoseReply(zktest.Match{Client: "a", Op: zktest.OpMulti, PathPrefix: poolLeases})
				deleted := 0
				r.srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetChildren2, Path: poolLeases, Times: 1}, func(context.Context, zktest.Request) {
					for _, name := range r.named(poolLeases, leaseName) {
						if !slices.Contains(old, name) && deleted < most {
							r.check(r.srv.Delete(poolLeases + "/" + name))
							deleted++
						}
					}
				})
				r.check(held.Release(r.ctx))
				for _, waits := range line {
					wantErr(t, (<-waits).err, recipes.ErrNodeDeleted)
				}
				if lost.Fired() != 1 || deleted != most {
					r.Errorf("%d replies lost, %d leases deleted", lost.Fired(), deleted)
				}
				r.check(r.lease(s, 2).Close())
				r.drained()
				wantNoGoroutine(r.T)
			})
		})
	}
}

// A context that ends while the transaction of a group is under way ends a wait. The
// error says behind which contender.
func TestSemaphoreTogetherWaitError(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.semaphore(r.connect("a"), 2)
		held := r.lease(r.semaphore(r.connect("b"), 2), 2)
		first := r.behind(r.ctx, wanted{s, 1})[0]
		ctx, cancel := context.WithCancel(r.ctx)
		second := r.behind(ctx, wanted{s, 1})[0]
		stalled := r.srv.StallReply(zktest.Match{Client: "a", Op: zktest.OpMulti, PathPrefix: poolLeases})
		r.check(held.Release(r.ctx))
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
		r.check(got.err)
		r.check(got.lease.Close())
		r.drained()
		wantNoGoroutine(r.T)
	})
}
