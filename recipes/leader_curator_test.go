package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// What Curator's tests of the two recipes prove, and the bugs of other elections.
// The rest of both is in locktest, which runs for latch and selector. It has the
// order of start, lost answers (TestLeaderSelectorEdges, CURATOR-62, -202),
// killed sessions, and never two leaders (TestLeaderLatch.testWaiting).

// TestLeaderLatch.testCorrectWatching: when a middle participant leaves, no other
// participant leads because of that.
func TestMiddleParticipantLeaves(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		first := r.leads(r.latch(r.Connect("a"), "a"))
		ctx, cancel := context.WithCancel(r.Ctx)
		middle := r.campaign(ctx, r.latch(r.Connect("b"), "b"), 2)
		last := r.campaign(r.Ctx, r.latch(r.Connect("c"), "c"), 3)
		cancel()
		if got := <-middle; !errors.Is(got.err, context.Canceled) {
			r.Errorf("%+v", got)
		}
		time.Sleep(time.Minute)
		select {
		case got := <-last:
			r.Errorf("leads beside the first: %+v", got)
		default:
		}
		r.Check(first.Close())
		got := <-last
		r.Check(got.err)
		r.Check(got.term.Close())
	})
}

// TestLeaderLatch.testLostConnection, TestLeaderSelector.testServerDying, TestLeaderSelectorCluster
// .testLostRestart: no leader while the server is down, and one after it is back.
func TestServerGoesAndReturns(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		ctx, cancel := context.WithCancel(r.Ctx)
		var led [3]chan *recipes.Term
		done := make(chan error, len(led))
		for i := range led {
			led[i] = make(chan *recipes.Term, 10)
			e := r.latch(r.Connect(name(i)), name(i))
			go func() {
				done <- e.Run(ctx, func(ctx context.Context, term *recipes.Term) error {
					led[i] <- term
					<-ctx.Done()
					return nil
				})
			}()
			r.inElection(i + 1)
		}
		first := <-led[0]
		r.Srv.Stop()
		<-first.Context().Done()
		time.Sleep(3 * testrig.SessionTimeout)
		if len(led[0])+len(led[1])+len(led[2]) != 0 {
			r.Error("a leader without a server")
		}
		r.Srv.Resume()
		var next *recipes.Term
		select {
		case next = <-led[0]:
		case next = <-led[1]:
		case next = <-led[2]:
		case <-time.After(3 * testrig.SessionTimeout):
			r.Fatal("no participant leads")
		}
		r.Check(next.Err())
		cancel()
		for range led {
			testrig.WantErr(r.T, <-done, context.Canceled)
		}
		r.inElection(0)
	})
}

// TestLeaderLatch.testSessionInterruptionDoNotCauseBrainSplit (CURATOR-696, -498, -604):
// a participant whose session is over does not lead by its old node, though that is still
// the first in line.
func TestOldNodeDoesNotLead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		first := r.leads(r.latch(r.Connect("b"), "b"))
		waits := r.campaign(r.Ctx, r.latch(c, "a"), 2)
		r.Srv.Client("a").Partition()
		for now := range c.States(r.Ctx) {
			if now.State == client.Lost {
				break
			}
		}
		r.Srv.Client("a").Heal()
		r.Check(first.Close())
		got := <-waits
		if got.term != nil {
			r.Error("leads by a node of a lost session")
		}
		testrig.WantErr(t, got.err, client.ErrSessionLost)
		term := r.leads(r.latch(c, "a"))
		r.Check(term.Close())
	})
}

// A leader is read by a request that fails: the campaign fails or waits, and no
// second participant leads (CURATOR-346). Curator's latch resets itself, and
// fabric8 leads.
func TestNoLeaderFromFailedRead(t *testing.T) {
	t.Parallel()
	for _, op := range []zktest.Op{zktest.OpGetChildren2, zktest.OpGetData} {
		bubble(t, func(r *rig) {
			first := r.leads(r.latch(r.Connect("a"), "a"))
			e := r.latch(r.Connect("b"), "b")
			failed := r.Srv.Fail(zktest.Match{Client: "b", Op: op, Times: zktest.Always}, zktest.CodeNoAuth)
			ctx, cancel := context.WithTimeout(r.Ctx, time.Minute)
			term, err := e.Campaign(ctx)
			cancel()
			if term != nil || err == nil {
				r.Errorf("leads beside another: %v", term.Path())
			}
			if failed.Fired() == 0 {
				r.Error("nothing failed")
			}
			failed.Remove()
			r.Check(first.Close())
			r.Check(r.leads(e).Close())
			r.inElection(0)
		})
	}
}

// TestLeaderLatch.testLeadershipElectionWhenNodeDisappearsAfterChildrenAreRetrieved
// (CURATOR-645): the predecessor leaves between the list and the watch.
func TestPredecessorVanishes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		first := r.leads(r.latch(r.Connect("a"), "a"))
		r.Srv.BeforeReply(zktest.Match{Client: "b", Op: zktest.OpGetChildren2}, func(context.Context, zktest.Request) {
			if err := r.Srv.Delete(first.Path()); err != nil {
				r.Error(err)
			}
		})
		term := r.leads(r.latch(r.Connect("b"), "b"))
		<-first.Context().Done()
		r.Check(term.Close())
		testrig.WantErr(t, first.Close(), recipes.ErrLost)
		r.inElection(0)
	})
}

// TestLeaderLatch.testNoServerAtStart, testProperCloseWithoutConnectionEstablished: a
// campaign begins before there is a server, and ends by its context or leads later.
func TestNoServerAtStart(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Srv.Stop()
		c := r.Connect("a", client.WithLazyConnect())
		e := r.latch(c, "a")
		_, err := e.Campaign(r.Within(time.Second))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		done := make(chan campaigned, 1)
		go func() {
			term, err := e.Campaign(r.Ctx)
			done <- campaigned{term, err}
		}()
		time.Sleep(time.Minute)
		r.Srv.Resume()
		got := <-done
		r.Check(got.err)
		r.Check(got.term.Close())
		r.inElection(0)
	})
}

// TestLeaderLatch.testSessionErrorPolicy, testErrorPolicies: a lost connection alone ends no
// term, and the line is the same after it.
func TestBlipEndsNoTerm(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		term := r.leads(r.latch(r.Connect("a"), "a"))
		waits := r.campaign(r.Ctx, r.latch(r.Connect("b"), "b"), 2)
		before := r.Srv.Children(leaders)
		r.Srv.CutAll()
		time.Sleep(5 * time.Second)
		r.Check(term.Err())
		if after := r.Srv.Children(leaders); len(after) != len(before) || after[0] != before[0] || after[1] != before[1] {
			r.Errorf("in line: %v, then %v", before, after)
		}
		r.Check(term.Close())
		got := <-waits
		r.Check(got.err)
		r.Check(got.term.Close())
	})
}

// TestLeaderSelector.testKillSessionThenCloseShouldElectNewLeader, testLeaderNodeDeleteOnInterrupt;
// classicswarm #2654, helix #2815: the next one leads and the old one knows, also when its
// client is closed at once.
func TestKilledLeaderCloses(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		term := r.leads(r.latch(c, "a"))
		waits := r.campaign(r.Ctx, r.latch(r.Connect("b"), "b"), 2)
		r.Srv.ExpireSession(r.SessionID(c))
		r.Check(c.Close())
		testrig.WantErr(t, term.Err(), recipes.ErrLost)
		got := <-waits
		r.Check(got.err)
		r.inElection(1)
		r.Check(got.term.Close())
	})
}

// TestLeaderSelector.testInterruptLeadership: a term is ended from outside, and the
// participant stands in line again.
func TestInterruptLeadership(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		e := r.latch(r.Connect("a"), "a")
		terms := make(chan *recipes.Term)
		ctx, cancel := context.WithCancel(r.Ctx)
		done := make(chan error, 1)
		go func() {
			done <- e.Run(ctx, func(ctx context.Context, term *recipes.Term) error {
				terms <- term
				<-ctx.Done()
				return nil
			})
		}()
		first := <-terms
		r.Check(first.Close())
		second := <-terms
		if second.FencingToken() <= first.FencingToken() || second.Path() == first.Path() {
			r.Error("the same term again")
		}
		cancel()
		testrig.WantErr(t, <-done, context.Canceled)
		r.inElection(0)
	})
}

// TestLeaderSelector.testRaceAtStateChanged: the session is lost between the grant and the
// function. The function is not run, or knows.
func TestLostBeforeTheFunction(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.Srv.BeforeReply(zktest.Match{Client: "a", Op: zktest.OpCreate, PathPrefix: leaders + "/", Nth: 2},
			func(_ context.Context, q zktest.Request) { r.Srv.ExpireSession(q.Session) })
		err := r.latch(c, "a").Do(r.Ctx, func(ctx context.Context, term *recipes.Term) error {
			if _, there := r.Srv.Node(term.Path()); !there {
				<-ctx.Done() // it is told
			}
			return nil
		})
		if err != nil && !errors.Is(err, recipes.ErrLost) && !errors.Is(err, client.ErrSessionLost) {
			r.Error(err)
		}
		r.inElection(0)
	})
}

// etcd #19597: a campaign whose session is over is no zombie that leads later. etcd #22123:
// a release whose request failed leaves nothing behind.
func TestReleaseFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		term := r.leads(r.latch(r.Connect("a"), "a"))
		waits := r.campaign(r.Ctx, r.latch(r.Connect("b"), "b"), 2)
		r.Srv.Client("a").Partition()
		testrig.WantErr(t, term.Release(r.Within(time.Second)), context.DeadlineExceeded)
		testrig.WantErr(t, term.Err(), recipes.ErrReleased)
		r.Srv.Client("a").Heal()
		got := <-waits
		r.Check(got.err)
		r.Check(got.term.Close())
		r.inElection(0)
	})
}
