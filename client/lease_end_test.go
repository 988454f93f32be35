package client_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
)

const leaseEndTimeout = 15 * time.Second // its margin is 1.5 s

// forward sets the time of day forward, so that h has less than nothing left,
// and waits for h to hear of it. It returns when the node of h may go.
func (m *suspended) forward(r *rig, h *held, tooFar time.Duration) time.Time {
	r.Helper()
	margin := leaseEndTimeout / 10
	m.step.Add(int64(time.Until(h.Deadline()) - margin + tooFar))
	var e *client.LeaseExpiredError
	if err := r.loss(h); !errors.As(err, &e) {
		r.Fatalf("lost: %v", err)
	}
	return e.Promised
}

func (r *rig) there(path string) bool {
	_, there := r.Srv.Node(path)
	return there
}

// A holder that is slow to stop costs its own node, and not the session. The
// session's lease was proved once more: by the next holding, or by a heartbeat if
// there is none.
func TestSlowHolderCostsItsOwnNode(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"something else is held": true, "nothing else is held": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var m suspended
				c := r.Connect("a", m.clock(), client.WithSessionTimeout(leaseEndTimeout))
				slow := r.hold(c, "/slow")
				_, err := slow.s.Create(r.Ctx, "/waiter", nil, client.Ephemeral())
				r.Check(err)
				time.Sleep(9 * time.Second) // no heartbeat is on its way
				deadline := m.forward(r, slow, 100*time.Millisecond)
				var other *held
				if again {
					other = r.hold(c, "/other")
				}
				time.Sleep(time.Until(deadline) - time.Millisecond)
				if !r.there("/slow") {
					t.Error("the node went before its deadline")
				}
				time.Sleep(100 * time.Millisecond)
				if r.there("/slow") {
					t.Error("the node still blocks every waiter")
				}
				time.Sleep(time.Minute)
				r.Check(slow.s.Err())
				if !r.there("/waiter") {
					t.Error("another node of the session went")
				}
				if again {
					r.Check(other.Err())
				}
				testrig.WantErr(t, slow.Err(), client.ErrLeaseExpired)
				slow.Done()
				r.Check(slow.s.Err())
			})
		})
	}
}

// A holding that is given up in time costs nothing at all: its holder removes
// the node.
func TestPunctualHolderKeepsItsNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var m suspended
		c := r.Connect("a", m.clock(), client.WithSessionTimeout(leaseEndTimeout))
		h := r.hold(c, "/e")
		time.Sleep(9 * time.Second)
		m.forward(r, h, 100*time.Millisecond)
		h.Done()
		n := r.beats()
		time.Sleep(time.Minute)
		r.Check(h.s.Err())
		if !r.there("/e") {
			t.Error("the node went")
		}
		if n.Load() > 1 { // that of the moment of the loss
			t.Errorf("%d heartbeats for a holding that was given up", n.Load())
		}
	})
}

// A node that is held again stays, although an earlier holding of it was not
// given up.
func TestNodeHeldAnewStays(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var m suspended
		c := r.Connect("a", m.clock(), client.WithSessionTimeout(leaseEndTimeout))
		slow := r.hold(c, "/e")
		time.Sleep(9 * time.Second)
		m.forward(r, slow, 100*time.Millisecond)
		anew := r.holdAs(slow.s, "/e")
		time.Sleep(time.Minute)
		r.Check(anew.Err())
		if !r.there("/e") {
			t.Error("the node went")
		}
	})
}

// The session is not given up for a holding that was lost earlier before the
// deadline of one that was lost later.
func TestSessionIsGivenUpAtTheLastDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var m suspended
		c := r.Connect("a", m.clock(), client.WithSessionTimeout(leaseEndTimeout), client.WithConnectTimeout(time.Hour))
		first := r.hold(c, "/first")
		time.Sleep(9 * time.Second)
		d1 := m.forward(r, first, 500*time.Millisecond)
		second := r.hold(c, "/second")
		r.Srv.Client("a").Partition()
		var e *client.LeaseExpiredError
		if err := r.loss(second); !errors.As(err, &e) {
			r.Fatalf("lost: %v", err)
		}
		d2 := e.Promised
		if !d2.After(d1.Add(time.Second / 10)) {
			r.Fatalf("deadlines %v and %v show nothing", d1, d2)
		}
		time.Sleep(time.Until(d2) - time.Millisecond)
		if second.s.Context().Err() != nil {
			t.Errorf("the session was given up before the deadline: %v", context.Cause(second.s.Context()))
		}
		time.Sleep(2 * time.Millisecond)
		testrig.WantErr(t, second.s.Err(), client.ErrSessionLost, client.ErrLeaseExpired)
		r.Srv.Client("a").Heal()
	})
}

// stuck is a connection whose Write blocks while the gate is shut, whichever side
// closes it. With slowClose its Close blocks as well.
type stuck struct {
	net.Conn
	gate      *gate
	slowClose bool
}

type gate struct{ shut atomic.Pointer[chan struct{}] }

func (g *gate) close() (open func()) {
	ch := make(chan struct{})
	g.shut.Store(&ch)
	return func() {
		g.shut.Store(nil)
		close(ch)
	}
}

func (g *gate) pass() {
	if ch := g.shut.Load(); ch != nil {
		<-*ch
	}
}

func (s stuck) Write(p []byte) (int, error) {
	s.gate.pass()
	return s.Conn.Write(p)
}

func (s stuck) Close() error {
	if s.slowClose {
		s.gate.pass()
	}
	return s.Conn.Close()
}

// A connection that cannot be moved, by closing it neither, does not keep a
// holder from hearing in time that its lease is over.
func TestStuckConnectionDoesNotDelayTheLoss(t *testing.T) {
	t.Parallel()
	for name, slowClose := range map[string]bool{"Write": false, "Write and Close": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var g gate
				link := r.Srv.Client("a")
				c := r.Connect("a", client.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
					nc, err := link.DialContext(ctx, network, addr)
					if err != nil {
						return nil, err
					}
					return stuck{nc, &g, slowClose}, nil
				}))
				h := r.hold(c, "/e")
				time.Sleep(4 * time.Second) // no heartbeat is on its way
				calm := h.Jeopardy()
				open := g.close()
				defer open()
				end := h.Deadline().Add(-time.Second) // the margin
				select {
				case err := <-h.lost:
					testrig.WantErr(t, err, client.ErrLeaseExpired)
					wantErrText(t, err, "a heartbeat was not answered in time", "no proof")
				case <-h.s.Context().Done():
					r.Fatalf("the session was over first: %v", h.s.Err())
				case <-r.Ctx.Done():
					r.Fatal("no observer was told")
				}
				if late := time.Since(end); late != 0 {
					t.Errorf("told %v late", late)
				}
				r.await("jeopardy", calm)
			})
		})
	}
}

// A connection that is stuck for good does not keep heartbeats from the next.
func TestHeartbeatsGoOnBesideAStuckConnection(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var first gate
		var dials atomic.Int32
		link := r.Srv.Client("a")
		c := r.Connect("a", client.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := link.DialContext(ctx, network, addr)
			if err != nil || dials.Add(1) > 1 {
				return nc, err
			}
			return stuck{nc, &first, false}, nil
		}))
		h := r.hold(c, "/e")
		time.Sleep(4 * time.Second)
		open := first.close()
		defer open()
		time.Sleep(time.Minute)
		if err := h.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		if dials.Load() < 2 {
			t.Error("there was no other connection")
		}
	})
}

// The clocks are compared within a second also before the first heartbeat.
func TestSuspensionCountsForYoungHolds(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{0, 100 * time.Millisecond, 900 * time.Millisecond, 1500 * time.Millisecond, 4900 * time.Millisecond} {
		t.Run(age.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var m suspended
				c := r.Connect("a", m.clock(), client.WithSessionTimeout(40*time.Second)) // a heartbeat every 5 s
				h := r.hold(c, "/e")
				time.Sleep(age)
				m.slept.Store(int64(time.Hour))
				woke := time.Now()
				testrig.WantErr(t, r.loss(h), client.ErrLeaseExpired)
				if took := time.Since(woke); took > time.Second {
					t.Errorf("told %v after waking up", took)
				}
			})
		})
	}
}

// While a hold is young nothing runs for it, and nothing does after it.
func TestYoungHoldStartsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var readings atomic.Int32
		c := r.Connect("a", client.WithClock(time.Now, func() time.Duration {
			readings.Add(1)
			return 0
		}))
		s := r.Session(c)
		_, err := s.Create(r.Ctx, "/e", nil, client.Ephemeral())
		r.Check(err)
		time.Sleep(10 * time.Millisecond) // the client has asked the server what it is
		synctest.Wait()
		before := len(testrig.Goroutines(r.T, ourFrames))
		h := r.holdAs(s, "/e")
		readings.Store(0)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if now := len(testrig.Goroutines(r.T, ourFrames)); now != before {
			t.Errorf("%d goroutines more", now-before)
		}
		h.Done()
		time.Sleep(2 * time.Second)      // no ping is due
		if n := readings.Load(); n > 3 { // the session reads them once a second
			t.Errorf("the clocks were read %d times", n)
		}
	})
}

// After a reconnection no holder has to wait for the next heartbeat, although one
// has just failed for want of a connection.
func TestReconnectionProvesAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		h := r.hold(c, "/e")
		link := r.Srv.Client("a")
		const firstBeat = testrig.SessionTimeout / 6
		time.Sleep(firstBeat - 100*time.Millisecond)
		link.Refuse()
		link.Cut()
		time.Sleep(200 * time.Millisecond)
		link.Accept()
		r.Session(c)
		<-h.Jeopardy() // until the next proof
		time.Sleep(50 * time.Millisecond)
		select {
		case <-h.Jeopardy():
			t.Error("nothing was proved")
		default:
		}
		r.Check(h.Err())
	})
}
