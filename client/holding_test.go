package client_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// held is a holding on an ephemeral node, and what it was told.
type held struct {
	inside.Holding
	s    *client.Session
	path string
	at   time.Time // when Hold returned
	lost chan error
}

func (r *rig) hold(c *client.Client, path string) *held {
	r.Helper()
	s := r.Session(c)
	_, err := s.Create(r.Ctx, path, nil, client.Ephemeral())
	r.Check(err)
	return r.holdAs(s, path)
}

func (r *rig) holdAs(s *client.Session, paths ...string) *held {
	r.Helper()
	h := &held{s: s, path: paths[0], lost: make(chan error, 2)}
	var err error
	h.Holding, err = inner.Hold(r.Ctx, s, func(err error) { h.lost <- err }, paths...)
	r.Check(err)
	h.at = time.Now()
	return h
}

// keep holds a node of the test's own, which the client must not lose.
func (r *rig) keep(s *client.Session) inside.Holding {
	r.Helper()
	r.create("/held", "")
	h, err := inner.Hold(r.Ctx, s, func(err error) { r.Error(err) }, "/held")
	r.Check(err)
	return h
}

// loss waits for h to be lost.
func (r *rig) loss(h *held) error {
	r.Helper()
	select {
	case err := <-h.lost:
		return err
	case <-r.Ctx.Done():
		r.Fatalf("%s was never lost", h.path)
		return nil
	}
}

// beats counts the transactions that clients send from now on.
func (r *rig) beats() *atomic.Int32 {
	var n atomic.Int32
	r.Srv.OnRequest(func(q zktest.Request) {
		if q.Op == zktest.OpMulti {
			n.Add(1)
		}
	})
	return &n
}

// One heartbeat every sixth of the timeout, for all holds of a session together.
// There is none while nothing is held, and none right after a write was
// committed.
func TestHeartbeatCost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const timeout, period = 12 * time.Second, 2 * time.Second
		c := r.Connect("a", client.WithSessionTimeout(timeout))
		n := r.beats()
		time.Sleep(time.Minute)
		for range 20 {
			h := r.hold(c, "/short")
			time.Sleep(period - 100*time.Millisecond)
			h.Done()
			r.Check(c.Delete(r.Ctx, "/short", client.AnyVersion))
		}
		if got := n.Load(); got != 0 {
			t.Errorf("%d heartbeats for holds shorter than the period", got)
		}
		a, b := r.hold(c, "/a"), r.hold(c, "/b")
		const periods = 30
		time.Sleep(periods*period + time.Second)
		if got := n.Load(); got < periods-2 || got > periods {
			t.Errorf("%d heartbeats in %d periods", got, periods)
		}
		// The work of the session itself is proof enough.
		n.Store(0)
		for range 2 * periods {
			time.Sleep(period / 2)
			_, err := c.Set(r.Ctx, "/a", nil, client.AnyVersion)
			r.Check(err)
		}
		if got := n.Load(); got > 1 {
			t.Errorf("%d heartbeats beside other writes", got)
		}
		a.Done()
		b.Done()
		synctest.Wait()
		n.Store(0)
		time.Sleep(time.Minute)
		if got := n.Load(); got != 0 {
			t.Errorf("%d heartbeats while nothing is held", got)
		}
		for _, h := range []*held{a, b} {
			if len(h.lost) != 0 {
				t.Errorf("%s was lost: %v", h.path, <-h.lost)
			}
		}
	})
}

// In silence a holding ends its margin before the deadline, with what was known.
// The deadline is before the server's. At the deadline the session is given up,
// unless the holder has given the holding up.
func TestHoldingInSilence(t *testing.T) {
	t.Parallel()
	for _, polite := range []bool{true, false} {
		bubble(t, func(r *rig) {
			c := r.Connect("a", client.WithConnectTimeout(time.Hour))
			h := r.hold(c, "/e")
			time.Sleep(17 * time.Second)
			r.Srv.Client("a").Partition()
			err := r.loss(h)
			if polite {
				h.Done()
			}
			var e *client.LeaseExpiredError
			testrig.WantErr(t, err, client.ErrLeaseExpired)
			if !errors.As(err, &e) {
				t.Fatalf("lost: %v", err)
			}
			ended := time.Now()
			if ended != e.Deadline.Add(-e.Margin) || e.Margin != time.Second || e.Proof != "committed write" ||
				e.SentAt.Before(e.AliveAt) || e.Timeout != testrig.SessionTimeout || e.Session != h.s.ID() {
				t.Errorf("ended at %v: %+v", ended, e)
			}
			wantErrText(t, err, "a heartbeat was not answered in time", "no proof")
			testrig.WantErr(t, h.Err(), client.ErrLeaseExpired)
			if _, there := r.Srv.Node("/e"); !there {
				t.Error("the node went before the holder was told")
			}
			time.Sleep(time.Until(e.Deadline))
			synctest.Wait()
			if over := h.s.Err() != nil; over == polite {
				t.Errorf("at the deadline the session is over: %v; the holding was given up: %v", over, polite)
			} else if over {
				testrig.WantErr(t, h.s.Err(), client.ErrSessionLost, client.ErrLeaseExpired)
			}
			if _, there := r.Srv.Node("/e"); !there {
				t.Error("the node went before the deadline")
			}
			r.Srv.Client("a").Heal()
			r.Session(c)
			r.oldSessionGoneUnless(polite && h.s.Err() == nil, c, h.s)
			if len(h.lost) != 0 {
				t.Error("lost twice")
			}
		})
	}
}

func (r *rig) oldSessionGoneUnless(alive bool, c *client.Client, s *client.Session) {
	if !alive {
		r.oldSessionGone(c, s)
	}
}

// A heartbeat finds that another client deleted a node. The holdings that rely on
// the node end, and no others.
func TestHeartbeatFindsADeletedNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		a, b := r.hold(c, "/a"), r.hold(c, "/b")
		s := r.Session(c)
		_, err := s.Create(r.Ctx, "/c", nil, client.Ephemeral())
		r.Check(err)
		both := r.holdAs(s, "/c", "/b")
		time.Sleep(10 * time.Second)
		deleted := time.Now()
		r.Check(r.Srv.Delete("/b"))
		for _, h := range []*held{b, both} {
			testrig.WantErr(t, r.loss(h), zk.ErrNoNode)
			testrig.WantErr(t, h.Err(), zk.ErrNoNode)
		}
		if took := time.Since(deleted); took > testrig.SessionTimeout/6+10*time.Millisecond {
			t.Errorf("found after %v", took)
		}
		time.Sleep(time.Minute)
		if len(a.lost) != 0 || a.Err() != nil || a.s.Err() != nil {
			t.Errorf("the other holding ended: %v, %v", a.Err(), a.s.Err())
		}
	})
}

// A node that may not be read does not count as lost. The log complains of it
// once, and the holder of another node still hears of its loss.
func TestHeartbeatOfAnUnreadableNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var log bytes.Buffer
		c := r.Connect("a", client.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		s := r.Session(c)
		_, err := s.Create(r.Ctx, "/secret", nil, client.Ephemeral(), client.ACL(zk.WorldACL(zk.PermDelete)...))
		r.Check(err)
		secret := r.holdAs(s, "/secret")
		time.Sleep(time.Minute)
		b := r.hold(c, "/b")
		time.Sleep(10 * time.Second)
		r.Check(r.Srv.Delete("/b"))
		deleted := time.Now()
		testrig.WantErr(t, r.loss(b), zk.ErrNoNode)
		if took := time.Since(deleted); took > testrig.SessionTimeout/6+10*time.Millisecond {
			t.Errorf("found after %v", took)
		}
		time.Sleep(time.Minute)
		if len(secret.lost) != 0 || secret.Err() != nil {
			t.Errorf("lost: %v", secret.Err())
		}
		r.Check(c.CloseContext(r.Ctx))
		if n := strings.Count(log.String(), "may not be read"); n != 1 {
			t.Errorf("complained %d times", n)
		}
	})
}

// With more nodes than fit into one heartbeat each gets its turn.
func TestHeartbeatsTakeTurns(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		var all []*held
		for i := range 200 {
			all = append(all, r.hold(c, "/n"+string(rune('a'+i%26))+strings.Repeat("x", i/26)))
		}
		r.Check(r.Srv.Delete(all[150].path))
		begun := time.Now()
		testrig.WantErr(t, r.loss(all[150]), zk.ErrNoNode)
		if took := time.Since(begun); took > 4*testrig.SessionTimeout/6 {
			t.Errorf("found after %v", took)
		}
	})
}

// If a waiter is granted a lock long after it made its node, it has to prove the
// session first. It also finds out if the node is gone.
func TestHoldProvesAnOldNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		for _, p := range []string{"/a", "/b"} {
			_, err := s.Create(r.Ctx, p, nil, client.Ephemeral())
			r.Check(err)
		}
		h := r.holdAs(s, "/a")
		h.Done()
		time.Sleep(time.Minute)
		if d := time.Until(h.Deadline()); d > -40*time.Second {
			t.Errorf("nothing was proved for a minute, and the deadline is in %v", d)
		}
		n := r.beats()
		h = r.holdAs(s, "/a")
		if left := time.Until(h.Deadline()); left < testrig.SessionTimeout/2 || n.Load() != 1 {
			t.Errorf("%v to the deadline after %d transactions", left, n.Load())
		}
		h.Done()
		time.Sleep(time.Minute)
		r.Check(r.Srv.Delete("/b"))
		_, err := inner.Hold(r.Ctx, s, func(error) { t.Error("lost was called") }, "/b")
		testrig.WantErr(t, err, zk.ErrNoNode)
		time.Sleep(time.Minute)
		r.Srv.Client("a").Freeze()
		_, err = inner.Hold(r.Within(time.Second), s, func(error) { t.Error("lost was called") }, "/a")
		testrig.WantErr(t, err, context.DeadlineExceeded)
		r.Srv.Client("a").Thaw()
	})
}

// While a heartbeat is not answered the lease is in jeopardy, and the
// connection is given up for another in time to save the hold.
func TestJeopardy(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		h := r.hold(c, "/e")
		time.Sleep(10 * time.Second)
		calm := h.Jeopardy()
		begun := time.Now()
		rule := r.Srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Times: 1})
		r.await("jeopardy", calm)
		if took := time.Since(begun); took > testrig.SessionTimeout/2 {
			t.Errorf("in jeopardy after %v", took)
		}
		if rule.Fired() == 0 {
			t.Error("no heartbeat was lost")
		}
		<-h.Jeopardy() // still
		time.Sleep(testrig.SessionTimeout)
		select {
		case <-h.Jeopardy():
			t.Error("in jeopardy for good")
		default:
		}
		if len(h.lost) != 0 || r.Session(c).ID() != h.s.ID() {
			t.Errorf("one answer less cost the hold: %v", h.Err())
		}
		// A connection that ends is a doubt at once.
		calm = h.Jeopardy()
		r.Srv.Client("a").Cut()
		synctest.Wait()
		r.await("jeopardy", calm)
	})
}

// A heartbeat goes past requests that wait for one another.
func TestHeartbeatPassesAStuckQueue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		h := r.hold(c, "/e")
		n := r.beats()
		// Thousands of requests that the server takes its time to answer.
		r.Srv.DelayReply(zktest.Match{Op: zktest.OpExists}, time.Millisecond)
		for range 2000 {
			go func() { _, _, _ = c.Exists(r.Ctx, "/e") }()
		}
		time.Sleep(20 * time.Second)
		if len(h.lost) != 0 || n.Load() < 8 {
			t.Errorf("lost %d, %d heartbeats", len(h.lost), n.Load())
		}
	})
}

// A server that grants less later may end the session earlier.
func TestDeadlineFollowsTheLeastTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithSessionTimeout(30*time.Second))
		h := r.hold(c, "/e")
		before := h.Deadline()
		r.Srv.SetSessionTimeouts(time.Second, 8*time.Second)
		r.Srv.Client("a").Cut()
		r.Session(c)
		time.Sleep(time.Second)
		if d := h.Deadline(); h.s.Timeout() != 8*time.Second || d.After(before.Add(-10*time.Second)) {
			t.Errorf("timeout %v, deadline moved by %v", h.s.Timeout(), d.Sub(before))
		}
	})
}

// Close ends the session, and with it the heartbeats, while something is held. The
// holder is told once.
func TestCloseWhileHolding(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		h := r.hold(c, "/e")
		time.Sleep(10 * time.Second)
		r.Check(c.CloseContext(r.Ctx))
		testrig.WantErr(t, h.Err(), client.ErrClosed)
		synctest.Wait()
		testrig.WantErr(t, r.loss(h), client.ErrClosed)
		time.Sleep(time.Minute)
		if len(h.lost) != 0 {
			t.Errorf("lost again: %v", <-h.lost)
		}
	})
}

// Close tells holders before a server hears of the end of the session: when a holder has been
// told, its node still stands.
func TestCloseTellsHoldersFirst(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		_, err := s.Create(r.Ctx, "/held", nil, client.Ephemeral())
		r.Check(err)
		told := false
		_, err = inner.Hold(r.Ctx, s, func(err error) {
			if !errors.Is(err, client.ErrClosed) {
				r.Errorf("lost: %v", err)
			}
			time.Sleep(time.Second)                  // a server would have ended the session meanwhile
			told = r.Srv.Create("/held", nil) != nil // the node stands
		}, "/held")
		r.Check(err)
		r.Check(c.Close())
		if !told {
			r.Error("the node was gone before its holder had been told")
		}
	})
}
