package recipes_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// A crowd in one process stands in the window of the queue, whatever the recipe is. So a
// goroutine of another process has its turn after at most 70 grants from when its node is there.
func TestCrowdBesideOne(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]struct {
		dirs []string // that of the queue first
		of   func(r *rig, c *client.Client) contending
	}{
		"mutex": {[]string{dir}, func(r *rig, c *client.Client) contending { return each(r.mutex(c)) }},
		"write lock": {[]string{dir}, func(r *rig, c *client.Client) contending {
			l, err := recipes.NewInterProcessReadWriteLock(c, dir)
			r.Check(err)
			return each(l.WriteLock())
		}},
		"semaphore mutex": {[]string{poolQueue, poolLeases}, func(r *rig, c *client.Client) contending {
			m, err := recipes.NewInterProcessSemaphoreMutex(c, pool)
			r.Check(err)
			return each(m)
		}},
		"semaphore":  {[]string{poolQueue, poolLeases}, func(r *rig, c *client.Client) contending { return onePermit(r.semaphore(c, 1)) }},
		"multi-lock": {[]string{"/x", "/y"}, func(r *rig, c *client.Client) contending { return each(r.multi(c, "/x", "/y")) }},
		"latch": {[]string{dir}, func(r *rig, c *client.Client) contending {
			e, err := recipes.NewLeaderLatch(c, dir)
			r.Check(err)
			return campaigning(e.Election)
		}},
		"selector": {[]string{dir}, func(r *rig, c *client.Client) contending {
			e, err := recipes.NewLeaderSelector(c, dir)
			r.Check(err)
			return campaigning(e.Election)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				alone := r.Connect("other")
				crowd, other := kind.of(r, r.Connect("crowd")), kind.of(r, alone)
				b, over := r.beside(kind.dirs[0], alone), make(chan struct{})
				var all sync.WaitGroup
				for range crowdBeside {
					all.Go(func() { b.contend(crowd, over) })
				}
				time.Sleep(50 * time.Millisecond)
				for range turnsBeside {
					b.turn(other, false)
				}
				if line := len(r.Srv.Children(kind.dirs[0])); line > 66 {
					t.Errorf("%d nodes in the queue", line)
				}
				close(over)
				all.Wait()
				r.nothingIn(kind.dirs...)
				testrig.WantNoGoroutine(t, ourFrames)
			})
		})
	}
}

// campaigning acquires leadership.
func campaigning(e *recipes.Election) contending {
	return func(ctx context.Context) (recipes.AnyHold, error) { return e.Campaign(ctx) }
}

// At most 64 campaigns of a client stand in line. Others wait in the process, say behind whom,
// and come in as soon as one leaves, is deleted, or is lost with its session.
func TestElectionWindow(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const window, all = 64, 70
		e := r.latch(r.Connect("a"), "a")
		first := r.leads(e)
		ended := make(chan campaigned, all)
		for range all {
			go func() {
				term, err := e.Campaign(r.Ctx)
				ended <- campaigned{term, err}
			}()
		}
		time.Sleep(time.Second)
		r.inElection(window)
		line, err := e.Participants(r.Ctx)
		r.Check(err)
		if last := line[len(line)-1]; last.WaitingBehind != 1+all-window {
			t.Errorf("%d campaigns wait without a node", last.WaitingBehind)
		}
		ctx, cancel := context.WithTimeout(r.Ctx, time.Second)
		defer cancel()
		_, err = e.Campaign(ctx)
		testrig.WantErr(t, err, context.DeadlineExceeded)
		var wait *recipes.WaitError
		if !errors.As(err, &wait) || !wait.SameClient {
			t.Errorf("a campaign without a node ends with %v", err)
		}
		begun := time.Now()
		_, err = e.TryCampaign(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrBusy)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("TryCampaign has waited %v", took)
		}
		nested, err := e.Campaign(first.Context())
		if nested != nil || !errors.Is(err, recipes.ErrWouldDeadlock) {
			t.Errorf("a campaign of the leader ends with %v", err)
		}

		// The node of a leader and that of a waiter are deleted: two others come in, and the
		// waiter stands behind all.
		r.Check(r.Srv.Delete(line[0].Path))
		r.Check(r.Srv.Delete(line[5].Path))
		<-first.Context().Done()
		second := <-ended
		r.Check(second.err)
		time.Sleep(time.Second)
		r.inElection(window)

		// The session is lost: those that had a place fail, and the rest come in.
		r.Srv.ExpireSession(r.Srv.Sessions()[0].ID)
		failed := 0
		for range all - 1 { // in no order: one of the rest may lead before the last of the others is told
			c := <-ended
			if c.err == nil {
				r.Check(c.term.Release(r.Ctx))
				continue
			}
			testrig.WantErr(t, c.err, client.ErrSessionLost)
			failed++
		}
		if failed != window-1 {
			t.Errorf("%d campaigns had a place in line, want %d", failed, window-1)
		}
		r.inElection(0)
	})
}
