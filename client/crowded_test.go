package client_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// A waiter becomes a holder while a former hold of its session lingers. If its
// lease cannot be proved again soon enough, the new holder is told in time.
func TestHoldBesideALingeringOne(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{4 * time.Second, 5 * time.Second, 6 * time.Second} {
		for wait := time.Millisecond; wait < 2*time.Second; wait += 20 * time.Millisecond {
			bubble(t, func(r *rig) {
				var m suspended
				c := r.Connect("a", m.clock(), client.WithSessionTimeout(timeout))
				slow := r.hold(c, "/slow")
				_, err := slow.s.Create(r.Ctx, "/b", nil, client.Ephemeral()) // waits in line until later
				r.Check(err)
				time.Sleep(9 * time.Second)
				_, margin, _, _, _ := client.Terms(client.LeasePolicy{}, timeout)
				m.step.Add(int64(time.Until(slow.Deadline()) - margin + 50*time.Millisecond))
				_ = slow.Err() // asks the clocks
				testrig.WantErr(t, r.loss(slow), client.ErrLeaseExpired)
				time.Sleep(wait)
				h, err := inner.Hold(r.Ctx, slow.s, func(why error) {
					var e *client.LeaseExpiredError
					if !errors.As(why, &e) {
						t.Errorf("lost: %v", why)
					} else if late := time.Since(e.Deadline.Add(-e.Margin)); late > time.Millisecond {
						t.Errorf("timeout %v, %v after the former: told %v late", timeout, wait, late)
					}
				}, "/b")
				r.Check(err)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				h.Done()
			})
		}
	}
}

// slowLine is an uplink of so many bytes in a second.
type slowLine struct {
	net.Conn
	rate int
	mu   sync.Mutex // guards nothing: writes are one behind the other
}

func (s *slowLine) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for done := 0; done < len(p); {
		n := min(64<<10, len(p)-done)
		time.Sleep(time.Duration(n) * time.Second / time.Duration(s.rate))
		if m, err := s.Conn.Write(p[done : done+n]); err != nil {
			return done + m, err
		}
		done += n
	}
	return len(p), nil
}

// The requests that one user has queued cost no holder its lock: a heartbeat
// passes them.
func TestHeartbeatPassesABacklog(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		dial := r.Srv.Client("a").DialContext
		var dials atomic.Int32
		c := r.Connect("a", client.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			nc, err := dial(ctx, network, addr)
			return &slowLine{Conn: nc, rate: 2 << 20}, err
		}))
		r.create("/bulk", "")
		h := r.hold(c, "/e")
		var wg sync.WaitGroup
		for range 60 {
			wg.Go(func() { // refused, so they prove nothing
				_, err := c.Set(r.Ctx, "/bulk", make([]byte, 900_000), 77)
				testrig.WantErr(t, err, zk.ErrBadVersion)
			})
		}
		wg.Wait()
		r.Check(h.Err())
		if n := dials.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// The node of a released lock is deleted at once, although the client still
// searches for nodes that other callers gave up. The search lists a directory
// once.
func TestReleasedNodeWaitsForNoSearch(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithSessionTimeout(40*time.Second))
		s := r.Session(c)
		r.create("/q", "")
		_, err := s.Create(r.Ctx, "/z-lock", nil, client.Ephemeral())
		r.Check(err)
		r.Srv.Freeze()
		var wg sync.WaitGroup
		for range 250 {
			wg.Go(func() {
				_, err := inner.CreateAndList(r.Within(100*time.Millisecond), s, newNode{Dir: "/q", Prefix: "lock-", List: true})
				testrig.WantErr(t, err, context.DeadlineExceeded)
			})
		}
		wg.Wait()
		r.Check(inner.DeleteInBackground(s, "/z-lock", nil))
		time.Sleep(time.Second)
		r.Srv.Client("a").Cut()
		r.Srv.Thaw()
		for c.State() != client.Connected {
			time.Sleep(time.Millisecond)
		}
		r.Srv.ResetCounts()
		time.Sleep(time.Second)
		if _, there := r.Srv.Node("/z-lock"); there {
			t.Error("the released node is still there a second after the reconnection")
		}
		time.Sleep(10 * time.Second)
		if left := r.named("/q"); len(left) != 0 {
			t.Errorf("%d nodes are left", len(left))
		}
		if n := r.Srv.Count(zktest.OpGetChildren2); n > 2 {
			t.Errorf("%d lists", n)
		}
	}, zktest.WithLatency(25*time.Millisecond, 26*time.Millisecond))
}

// Requests that were sent before Close are answered, and nothing is sent after
// it. A server that closes a connection with unread requests would drop the
// answers.
func TestNothingIsSentBehindClose(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				for {
					_, _, err := c.Get(r.Ctx, "/")
					if err == nil {
						continue
					}
					testrig.WantErr(t, err, client.ErrClosed)
					return
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		r.Check(c.CloseContext(r.Ctx))
		wg.Wait()
		closed := false
		for _, q := range r.Srv.Log() {
			if closed {
				t.Fatalf("behind the close: %v", q)
			}
			closed = q.Op == zktest.OpCloseSession
		}
		if !closed {
			t.Error("not closed")
		}
	})
}

// A context that ends while the answer arrives leaves the answer to no caller.
func TestContextEndsWithTheAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/d", "")
		var wg sync.WaitGroup
		for i := range 400 {
			ctx := r.Within(time.Duration(i) * 10 * time.Microsecond)
			wg.Go(func() {
				for _, err := range []error{
					func() error { _, err := c.Create(ctx, "/d/n", nil); return err }(),
					func() error { _, err := c.Set(ctx, "/d", nil, client.AnyVersion); return err }(),
					func() error { _, err := c.SetACL(ctx, "/d", zk.WorldACL(zk.PermAll), client.AnyVersion); return err }(),
				} {
					if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, zk.ErrNodeExists) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// An empty ACL in a transaction is refused at once, like everywhere.
func TestEmptyACLInATransaction(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		begun := time.Now()
		_, err := c.Multi(r.Ctx, client.CreateOp("/n", nil, client.ACL()))
		testrig.WantErr(t, err, zk.ErrInvalidACL)
		wantOutcome(t, err, client.OutcomeNeverSent)
		if took := time.Since(begun); took != 0 {
			t.Errorf("refused after %v", took)
		}
	})
}
