package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/zktest"
)

// TestHeldLog checks which requests wait for a write that is accepted but not applied.
func TestHeldLog(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a, b := memory(t, srv.Client("a")), memory(t, srv.Client("b"))
		must(t, b, 3, body("/x", true), -101)
		srv.HoldLog()
		for _, s := range []struct {
			op int32
			p  []byte
		}{{1, ephemeral("/x")}, {3, body("/x", false)}} {
			if _, err := a.send(s.op, s.p); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if _, ok := srv.Node("/x"); ok {
			t.Error("the write has been applied")
		}
		srv.ReleaseLog()
		for _, c := range []*raw{a, a, b} {
			if got, err := c.receive(); err != nil || got.err != 0 {
				t.Errorf("answer %+v, %v", got, err)
			}
		}
	})
}

// TestCloseSessionWithWritesInFlight checks that a session takes along the
// ephemeral whose creation is still in the log when it ends.
func TestCloseSessionWithWritesInFlight(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		must(t, c, 1, ephemeral("/kept"), 0)
		srv.HoldLog()
		for _, p := range []string{"/late", "/later"} {
			if _, err := c.send(1, ephemeral(p)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.send(2, body("/kept", int32(-1))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		srv.ExpireSession(c.session)
		srv.ReleaseLog()
		time.Sleep(10 * time.Millisecond)
		if nodes := srv.Tree(); len(nodes) != 1 {
			t.Errorf("left behind:\n%s", srv.Dump())
		}
	})
}

// TestLostClientWriteInFlight cuts a client off while its create is in the log:
// it comes back before the node is there.
func TestLostClientWriteInFlight(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		link := srv.Client("a")
		c := memory(t, link)
		must(t, c, 1, create("/q"), 0)
		srv.SlowLog(time.Second)
		if _, err := c.send(1, ephemeral("/q/mine")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
		if link.Cut() != 1 {
			t.Error("no connection was cut")
		}
		d := memoryConn(t, link)
		if err := d.handshake(0, 30_000, c.session, c.password); err != nil {
			t.Fatal(err)
		}
		// One server has one log: a read waits for the writes before it.
		must(t, d, 9, body("/q"), 0)
		must(t, d, 3, body("/q/mine", false), 0)
	})
}

func TestDropLog(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, d := memory(t, srv.Client("a")), memory(t, srv.Client("b"))
		must(t, d, 1, ephemeral("/d"), 0)
		srv.HoldLog()
		if _, err := c.send(1, create("/lost")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		newcomer := memoryConn(t, srv.Client("c"))
		if err := newcomer.writeFrame(body(int32(0), int64(0), int32(9000), int64(0), nil16())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		srv.ExpireSession(d.session)
		if n := srv.DropLog(); n != 3 {
			t.Errorf("DropLog = %d, want 3", n)
		}
		srv.ReleaseLog()
		for _, lost := range []*raw{c, newcomer} {
			if _, err := lost.readFrame(); kindOfError(err) != "closed" {
				t.Errorf("lost request: %v", err)
			}
		}
		if ses := srv.Sessions(); len(ses) != 2 {
			t.Errorf("sessions %+v, want the first two", ses)
		}
		must(t, d, 3, body("/d", false), 0)
		must(t, d, 1, create("/lost"), 0)
		// The session that was to end still ends when it falls silent.
		time.Sleep(22 * time.Second)
		if len(srv.Sessions()) != 0 {
			t.Errorf("sessions %+v, want none", srv.Sessions())
		}
	})
}

// TestFailedTransactionLeavesNothingInFlight checks that what a failed
// transaction had prepared does not stand in the way of the requests behind it.
func TestFailedTransactionLeavesNothingInFlight(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		must(t, c, 1, create("/q"), 0)
		srv.HoldLog()
		for _, s := range []struct {
			op int32
			p  []byte
		}{
			{1, sequentialAt("/q/s")},
			{14, transaction(part(1, create("/m")), part(1, sequentialAt("/q/s")), part(2, body("/none", int32(-1))))},
			{1, create("/m")},
			{1, sequentialAt("/q/s")},
		} {
			if _, err := c.send(s.op, s.p); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Millisecond)
		srv.ReleaseLog()
		for _, want := range []string{"/q/s0000000000", "", "/m", "/q/s0000000001"} {
			a, err := c.receive()
			if err != nil || a.err != 0 || want != "" && pathOf(a) != want {
				t.Errorf("answer code %d, %v, %q, want %q", a.err, err, a.body, want)
			}
		}
	})
}

func TestContainerSweepInVirtualTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memoryConn(t, srv.Client("a"))
		if err := c.handshake(0, 20_000, 0, nil16()); err != nil {
			t.Fatal(err)
		}
		must(t, c, 19, body("/c", []byte{}, openACL, int32(4)), 0)
		must(t, c, 1, create("/c/k"), 0)
		must(t, c, 2, body("/c/k", int32(-1)), 0)
		must(t, c, 21, body("/t", []byte{}, openACL, int32(5), int64(3_600_000)), 0)
		if n, ok := srv.Node("/t"); !ok || n.TTL != time.Hour {
			t.Errorf("TTL node %+v", n)
		}
		if n, ok := srv.Node("/c"); !ok || !n.Container {
			t.Errorf("container %+v", n)
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if _, ok := srv.Node("/c"); ok {
			t.Error("the container is still there after a minute")
		}
		srv.JumpClock(2 * time.Hour)
		if n := srv.Sweep(); n != 1 {
			t.Errorf("Sweep = %d, want 1", n)
		}
		if nodes := srv.Tree(); len(nodes) != 1 {
			t.Errorf("left behind:\n%s", srv.Dump())
		}
	}, zktest.WithExtendedTypes())
}

// TestSweepComesAfterExpiry lets a session end at the tick at which containers
// are swept. At one instant every run would have another order.
func TestSweepComesAfterExpiry(t *testing.T) {
	t.Parallel()
	for range 20 {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			c := memoryConn(t, srv.Client("a"))
			if err := c.handshake(0, 20_000, 0, nil16()); err != nil {
				t.Fatal(err)
			}
			must(t, c, 19, body("/c", []byte{}, openACL, int32(4)), 0)
			must(t, c, 1, ephemeral("/c/k"), 0)
			time.Sleep(19*time.Second + 500*time.Millisecond)
			must(t, c, 11, nil, 0) // over at the tick of 40 s
			time.Sleep(21 * time.Second)
			if nodes := srv.Tree(); len(nodes) != 1 {
				t.Errorf("left behind:\n%s", srv.Dump())
			}
		}, zktest.WithContainerInterval(40*time.Second))
	}
}

func TestTTLNeedsExtendedTypes(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		must(t, c, 21, body("/t", []byte{}, openACL, int32(5), int64(1000)), -6)
	})
}
