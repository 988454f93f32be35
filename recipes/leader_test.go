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

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

const leaders = "/leaders/scheduler"

func (r *rig) latch(c *client.Client, id string, opts ...recipes.ElectionOption) *recipes.Election {
	r.Helper()
	l, err := recipes.NewLeaderLatch(c, leaders, append([]recipes.ElectionOption{recipes.WithID(id)}, opts...)...)
	r.Check(err)
	return l.Election
}

func (r *rig) leads(e *recipes.Election) *recipes.Term {
	r.Helper()
	t, err := e.Campaign(r.Ctx)
	r.Check(err)
	return t
}

type campaigned struct {
	term *recipes.Term
	err  error
}

// campaign campaigns by itself, and waits until n stand in line.
func (r *rig) campaign(ctx context.Context, e *recipes.Election, n int) <-chan campaigned {
	r.Helper()
	done := make(chan campaigned, 1)
	go func() {
		t, err := e.Campaign(ctx)
		done <- campaigned{t, err}
	}()
	r.inElection(n)
	time.Sleep(100 * time.Millisecond) // the answers come, and it watches
	return done
}

func (r *rig) inElection(n int) {
	r.Helper()
	for range 1000 {
		if len(r.Srv.Children(leaders)) == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	r.Fatalf("in line: %v, want %d", r.Srv.Children(leaders), n)
}

// ids are the identities of the participants in line, in order.
func (r *rig) ids(e *recipes.Election) (all []string) {
	r.Helper()
	found, err := e.Participants(r.Ctx)
	r.Check(err)
	for _, p := range found {
		all = append(all, p.ID)
	}
	return all
}

// The nodes and their data are Curator's; the first in line leads, and the tokens of
// terms grow.
func TestLatchNodes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		one, two := r.latch(a, "one"), r.latch(b, "two")
		first := r.leads(one)
		waits := r.campaign(r.Ctx, two, 2)
		all, err := one.Participants(r.Ctx)
		r.Check(err)
		for i, want := range []string{"one", "two"} {
			p := all[i]
			if p.ID != want || p.Holder != (i == 0) || p.InDoubt || string(p.Data) != want {
				r.Errorf("participant %d: %+v", i, p)
			}
			if !strings.HasPrefix(p.Path, leaders+"/_c_") || !strings.HasSuffix(p.Path, fmt.Sprintf("-latch-%010d", i)) {
				r.Errorf("node %s", p.Path)
			}
		}
		l, err := two.Leader(r.Ctx)
		if r.Check(err); l.ID != "one" || l.Session != r.SessionID(a) || l.FencingToken != first.FencingToken() {
			r.Errorf("leader %+v", l)
		}
		r.Check(first.Release(r.Ctx))
		next := <-waits
		if r.Check(next.err); next.term.FencingToken() <= first.FencingToken() {
			r.Errorf("token %d after %d", next.term.FencingToken(), first.FencingToken())
		}
		_, err = next.term.Guard(r.Ctx, client.CreateOp("/guarded", nil))
		r.Check(err)
		r.Check(next.term.Confirm(r.Ctx))
		r.Check(next.term.Close())
		if _, err := next.term.Guard(r.Ctx, client.CreateOp("/late", nil)); !errors.Is(err, recipes.ErrReleased) {
			r.Errorf("a guard after the term: %v", err)
		}
	})
}

// An id that reads like a request to release, and paths that are none, are refused.
func TestElectionRefuses(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for _, id := range []string{"__REVOKE__", "me __REVOKE__"} {
			if _, err := recipes.NewLeaderLatch(c, leaders, recipes.WithID(id)); err == nil {
				r.Errorf("id %q was taken", id)
			}
		}
		for _, path := range []string{"", "/", "relative", "/a//b"} { // TestLeaderLatch.testRelativePath
			_, latch := recipes.NewLeaderLatch(c, path)
			_, selector := recipes.NewLeaderSelector(c, path)
			if latch == nil || selector == nil {
				r.Errorf("path %q: %v, %v", path, latch, selector)
			}
		}
		_, err := recipes.NewLeaderLatch(c, leaders, recipes.WithNodeACL())
		testrig.WantErr(t, err, client.ErrInvalidACL)
		if _, err := recipes.NewLeaderLatch(nil, leaders); err == nil {
			r.Error("no client was taken")
		}
	})
}

// A term is one campaign's: a campaign inside it is refused at once, for a selector
// a mutex too.
func TestCampaignWithinTerm(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s, err := recipes.NewLeaderSelector(c, dir)
		r.Check(err)
		term, err := s.TryCampaign(r.Ctx)
		r.Check(err)
		_, err = s.Campaign(term.Context())
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		_, err = r.mutex(c).Acquire(term.Context())
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		_, err = s.TryCampaign(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrBusy)
		r.Check(term.Close())
		h := r.held(r.mutex(c))
		_, err = s.Campaign(h.Context())
		testrig.WantErr(t, err, recipes.ErrWouldDeadlock)
		r.Check(h.Close())
		r.empty()
	})
}

// A latch refuses the path of a lock, and a lock that of a latch. A selector stands in
// one line with mutexes.
func TestMixingElections(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		latch, err := recipes.NewLeaderLatch(c, dir)
		r.Check(err)
		selector, err := recipes.NewLeaderSelector(c, dir)
		r.Check(err)
		rw, err := recipes.NewInterProcessReadWriteLock(c, dir)
		r.Check(err)
		sem, err := recipes.NewInterProcessSemaphoreV2(c, dir, 1)
		r.Check(err)
		got := func(h recipes.AnyHold, err error) func() {
			r.Helper()
			r.Check(err)
			return func() { r.Check(h.Close()) }
		}
		refused := func(what string, err error) {
			r.Helper()
			if !errors.Is(err, recipes.ErrForeignLock) {
				r.Errorf("%s: %v", what, err)
			}
		}
		done := got(latch.Campaign(r.Ctx))
		_, err = r.mutex(c).Acquire(r.Ctx)
		refused("mutex beside latch", err)
		_, err = selector.TryCampaign(r.Ctx)
		refused("selector beside latch", err)
		_, err = rw.ReadLock().Acquire(r.Ctx)
		refused("reader beside latch", err)
		_, err = sem.Acquire(r.Ctx, 1)
		refused("semaphore beside latch", err)
		done()
		for what, take := range map[string]func() (recipes.AnyHold, error){
			"mutex":    func() (recipes.AnyHold, error) { return r.mutex(c).Acquire(r.Ctx) },
			"selector": func() (recipes.AnyHold, error) { return selector.Campaign(r.Ctx) },
			"writer":   func() (recipes.AnyHold, error) { return rw.WriteLock().Acquire(r.Ctx) },
			"permit":   func() (recipes.AnyHold, error) { return sem.Acquire(r.Ctx, 1) },
		} {
			done := got(take())
			_, err := latch.Campaign(r.Ctx)
			refused("latch beside "+what, err)
			done()
			time.Sleep(10 * time.Second)
			for _, of := range []string{"/locks", "/leases"} { // until a sweep
				_ = r.Srv.Delete(dir + of)
			}
		}
		done = got(selector.Campaign(r.Ctx))
		_, err = r.mutex(c).TryAcquire(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrBusy)
		done()
	})
}

// fn runs once for each term, participants lead in turns (TestLeaderSelector
// .testRotatingLeadership: 5 selectors, 3 rounds), and what fn fails with ends Run.
func TestRunRotates(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const participants, rounds = 5, 3
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		stop := errors.New("enough")
		h := r.leads(r.latch(r.Connect("first"), "first"))
		for i := range participants {
			e := r.latch(r.Connect(name(i)), name(i))
			turns := 0
			all.Go(func() {
				err := e.Run(r.Ctx, func(ctx context.Context, term *recipes.Term) error {
					time.Sleep(10 * time.Millisecond) // the work: longer than it takes to stand in line again
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
					if turns++; turns == rounds {
						return stop
					}
					return nil
				})
				if !errors.Is(err, stop) {
					r.Errorf("Run: %v", err)
				}
			})
			r.inElection(i + 2)
		}
		r.Check(h.Release(r.Ctx))
		all.Wait()
		for round := range rounds {
			now := slices.Sorted(slices.Values(order[round*participants : (round+1)*participants]))
			if !slices.Equal(now, []int{0, 1, 2, 3, 4}) {
				r.Errorf("round %d: %v", round, order)
			}
		}
		r.inElection(0)
	})
}

// Run goes on after a lost session, whatever fn returns then, and ends with its context.
func TestRunGoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		e := r.latch(c, "a")
		ctx, cancel := context.WithCancel(r.Ctx)
		var tokens []int64
		err := e.Run(ctx, func(work context.Context, term *recipes.Term) error {
			tokens = append(tokens, term.FencingToken())
			switch len(tokens) {
			case 1:
				r.Srv.ExpireSession(r.SessionID(c))
			case 2:
				r.Check(r.Srv.Delete(term.Path()))
			default:
				cancel()
			}
			<-work.Done()
			return work.Err()
		})
		testrig.WantErr(t, err, context.Canceled)
		if len(tokens) != 3 || !slices.IsSorted(tokens) || tokens[0] == tokens[1] || tokens[1] == tokens[2] {
			r.Errorf("tokens %v", tokens)
		}
		r.inElection(0)
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// Run pauses between campaigns that fail, by its policy, and does not make a hot loop of
// a missing right, as Curator's autoRequeue does.
func TestRunPauses(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		e := r.latch(r.Connect("a"), "a", recipes.WithCampaignRetry(retry.NTimes(3, time.Second)))
		r.Srv.Fail(zktest.Match{Client: "a", Op: zktest.OpCreate, Times: zktest.Always}, zktest.CodeNoAuth)
		begun := time.Now()
		err := e.Run(r.Ctx, func(context.Context, *recipes.Term) error { return errors.New("led") })
		testrig.WantErr(t, err, client.ErrNoAuth)
		if took := time.Since(begun); took < 3*time.Second {
			r.Errorf("gave up after %v", took)
		}
	})
}

// Run ends at once with what no other try can change.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		e := r.latch(c, "a")
		led := func(context.Context, *recipes.Term) error { return errors.New("led") }
		term := r.leads(e)
		testrig.WantErr(t, e.Run(term.Context(), led), recipes.ErrWouldDeadlock)
		r.Check(term.Close())
		r.Check(c.Close())
		testrig.WantErr(t, e.Run(r.Ctx, led), client.ErrClosed)
	})
}

// When its context ends Run returns an error that matches that of the context, unless the
// function has returned one of its own.
func TestRunContextEnds(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		e := r.latch(r.Connect("a"), "a")
		own, stopped := errors.New("own"), errors.New("stopped")
		for _, tt := range []struct {
			returns func(ctx context.Context) error
			want    error
		}{
			{func(context.Context) error { return nil }, context.Canceled},
			{func(ctx context.Context) error { return ctx.Err() }, context.Canceled},
			{context.Cause, stopped},
			{func(context.Context) error { return own }, own},
		} {
			ctx, stop := context.WithCancelCause(r.Ctx)
			err := e.Run(ctx, func(work context.Context, _ *recipes.Term) error {
				stop(stopped)
				<-work.Done()
				return tt.returns(work)
			})
			testrig.WantErr(t, err, tt.want)
		}
	})
}

// A leader whose node is deleted by hand steps down, and the next one leads. Curator's
// latch has two leaders then.
func TestLeaderNodeDeleted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		one, two := r.latch(r.Connect("a"), "one"), r.latch(r.Connect("b"), "two")
		first := r.leads(one)
		waits := r.campaign(r.Ctx, two, 2)
		r.Check(r.Srv.Delete(first.Path()))
		<-first.Context().Done()
		testrig.WantErr(t, first.Err(), recipes.ErrLost, recipes.ErrNodeDeleted)
		next := <-waits
		r.Check(next.err)
		testrig.WantErr(t, first.Release(r.Ctx), recipes.ErrLost)
		r.Check(next.term.Close())
		r.inElection(0)
	})
}

// If its node is deleted while it waits, a participant stands in line again,
// behind the others. That also holds if the directory is removed with all nodes
// (CURATOR-724).
func TestParticipantNodeDeleted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		one, two, three := r.latch(r.Connect("a"), "one"), r.latch(r.Connect("b"), "two"), r.latch(r.Connect("c"), "three")
		first := r.leads(one)
		second := r.campaign(r.Ctx, two, 2)
		third := r.campaign(r.Ctx, three, 3)
		all, err := one.Participants(r.Ctx)
		r.Check(err)
		r.Check(r.Srv.Delete(all[1].Path))
		r.Check(first.Release(r.Ctx))
		next := <-third
		r.Check(next.err)
		r.inElection(2)
		for _, n := range r.Srv.Children(leaders) {
			r.Check(r.Srv.Delete(leaders + "/" + n))
		}
		r.Check(r.Srv.Delete(leaders))
		<-next.term.Context().Done()
		testrig.WantErr(t, next.term.Close(), recipes.ErrLost)
		last := <-second
		if r.Check(last.err); last.term.FencingToken() <= next.term.FencingToken() {
			r.Error("an older token in the new directory")
		}
		r.Check(last.term.Close())
		r.inElection(0)
	})
}

// The rights are missing: the error says so, and no node remains (TestLeaderAcls).
func TestCampaignNoAuth(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		e := r.latch(r.Connect("a"), "a", recipes.WithNodeACL(zk.DigestACL(zk.PermAll, "other", "secret")...))
		term, err := e.Campaign(r.Ctx)
		if err == nil {
			err = term.Close()
		}
		testrig.WantErr(t, err, client.ErrNoAuth)
	})
}
