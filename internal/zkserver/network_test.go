package zkserver_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

func TestPartitionHealsWithoutLoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		link := srv.Client("a")
		a, b := memory(t, link), memory(t, srv.Client("b"))
		link.Partition()
		if _, err := a.send(1, create("/held")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		must(t, b, 3, body("/held", false), -101)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := link.DialContext(ctx, "", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial in a partition: %v, want a timeout", err)
		}
		link.Heal()
		if got, err := a.receive(); err != nil || got.err != 0 {
			t.Errorf("after healing: %+v, %v", got, err)
		}
	})
}

func TestPartitionExpires(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a := memoryConn(t, srv.Client("a"))
		if err := a.handshake(0, 6000, 0, nil16()); err != nil {
			t.Fatal(err)
		}
		must(t, a, 1, ephemeral("/e"), 0)
		last := time.Now()
		srv.Client("a").Partition()
		b := memory(t, srv.Client("b"))
		must(t, b, 4, body("/e", true), 0)
		ev, err := b.receive()
		if err != nil || ev.xid != -1 {
			t.Fatalf("event %+v, %v", ev, err)
		}
		// Within one tick after the timeout, plus a latency each way.
		if took := time.Since(last); took < 6*time.Second-time.Millisecond || took > 7*time.Second+2*time.Millisecond {
			t.Errorf("expired after %v", took)
		}
		_ = a.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := a.receive(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the partitioned client heard %v", err)
		}
		_ = a.SetReadDeadline(time.Time{})
		srv.Client("a").Heal()
		if _, err := a.receive(); kindOfError(err) != "closed" {
			t.Errorf("after healing: %v, want the end of the stream", err)
		}
		if n := srv.ExpiredCount(); n != 1 {
			t.Errorf("ExpiredCount = %d, want 1", n)
		}
	})
}

func TestOneWayPartitionKeepsSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		link := srv.Client("a")
		c := memory(t, link)
		link.PartitionReplies()
		for range 20 {
			if err := c.sendXid(-2, 11, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
		}
		if len(srv.Sessions()) != 1 {
			t.Error("the session is gone, though its pings arrived")
		}
		link.Heal()
		for range 20 {
			if a, err := c.receive(); err != nil || a.xid != -2 {
				t.Fatalf("held answer %+v, %v", a, err)
			}
		}
	})
}

func TestRequestsLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		link := srv.Client("a")
		c := memory(t, link)
		must(t, c, 3, body("/x", true), -101)
		link.PartitionRequests()
		if err := srv.Create("/x", nil); err != nil {
			t.Fatal(err)
		}
		if ev, err := c.receive(); err != nil || ev.xid != -1 {
			t.Errorf("event %+v, %v", ev, err)
		}
		for range 10 {
			if err := c.sendXid(-2, 11, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
		}
		if _, err := c.receive(); kindOfError(err) != "closed" || len(srv.Sessions()) != 0 {
			t.Errorf("%v, sessions %v, want the session expired", err, srv.Sessions())
		}
	})
}

func TestRefuseHangAccept(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		link := srv.Client("a")
		srv.Refuse()
		if _, err := link.Dial("", "", time.Second); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v, want a refusal", err)
		}
		srv.HangHandshake()
		c := memoryConn(t, link)
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		err := c.handshake(0, 9000, 0, nil16())
		if !errors.Is(err, os.ErrDeadlineExceeded) || len(srv.Sessions()) != 0 {
			t.Errorf("hanging handshake: %v, sessions %v", err, srv.Sessions())
		}
		_ = c.SetReadDeadline(time.Time{})
		srv.Accept()
		if _, err := c.readFrame(); err != nil {
			t.Errorf("after Accept: %v", err)
		}
	})
}

func TestFreezeAndPause(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		link := srv.Client("a")
		c := memory(t, link)
		srv.Freeze()
		d := memoryConn(t, link)
		_ = d.SetReadDeadline(time.Now().Add(time.Second))
		if err := d.handshake(0, 9000, 0, nil16()); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("handshake with a frozen server: %v", err)
		}
		srv.Thaw()
		must(t, c, 1, create("/a"), 0)

		_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
		link.Pause()
		if _, err := c.send(3, body("/a", false)); err != nil {
			t.Fatal(err)
		}
		resumed := make(chan time.Duration, 1)
		start := time.Now()
		go func() {
			_ = link.Gate(t.Context())
			resumed <- time.Since(start)
		}()
		time.AfterFunc(9*time.Second, link.Resume)
		if a, err := c.receive(); err != nil || a.err != 0 {
			t.Errorf("after the pause: %+v, %v", a, err)
		}
		if took := <-resumed; took != 9*time.Second {
			t.Errorf("Gate opened after %v", took)
		}
		if _, err := c.receive(); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) < 11*time.Second-time.Millisecond {
			t.Errorf("deadline after %v: %v", time.Since(start), err)
		}
	})
}

func TestStopKeepsSessions(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memoryConn(t, srv.Client("a"))
		if err := c.handshake(0, 4000, 0, nil16()); err != nil {
			t.Fatal(err)
		}
		must(t, c, 1, ephemeral("/e"), 0)
		srv.Stop()
		if _, err := c.receive(); kindOfError(err) != "closed" {
			t.Errorf("stopped server: %v", err)
		}
		if _, err := srv.Client("a").Dial("", "", 0); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v", err)
		}
		time.Sleep(time.Hour)
		srv.Resume()
		time.Sleep(3 * time.Second)
		d := memoryConn(t, srv.Client("a"))
		if err := d.handshake(0, 4000, c.session, c.password); err != nil {
			t.Errorf("reattach: %v", err)
		}
		must(t, d, 3, body("/e", false), 0)
		time.Sleep(6 * time.Second)
		if _, ok := srv.Node("/e"); ok {
			t.Error("the session does not expire any more")
		}
	})
}

func TestExpireAndMove(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		must(t, c, 1, ephemeral("/e"), 0)
		if !srv.ExpireSession(c.session) || srv.ExpireSession(c.session) {
			t.Error("ExpireSession does not tell a live session")
		}
		if _, err := c.receive(); kindOfError(err) != "closed" {
			t.Errorf("expired: %v", err)
		}
		d := memoryConn(t, srv.Client("a"))
		if err := d.handshake(0, 9000, c.session, c.password); !errors.Is(err, errRefused) {
			t.Errorf("reattach: %v", err)
		}
		m := memory(t, srv.Client("a"))
		srv.MoveSession(m.session)
		if _, _, err := m.call(1, create("/m")); kindOfError(err) != "closed" {
			t.Errorf("moved session: %v", err)
		}
		if len(srv.Tree()) != 1 {
			t.Errorf("left behind:\n%s", srv.Dump())
		}
	})
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.SetReadOnly(true)
		c := memoryConn(t, srv.Client("a"))
		if err := c.handshake(0, 9000, 0, nil16()); kindOfError(err) != "closed" {
			t.Errorf("a client that needs writes: %v", err)
		}
		c = memoryConn(t, srv.Client("a"))
		if err := c.writeFrame(body(int32(0), int64(0), int32(9000), int64(0), nil16(), true)); err != nil {
			t.Fatal(err)
		}
		if p, err := c.readFrame(); err != nil || p[len(p)-1] != 1 {
			t.Errorf("handshake %x, %v, want the read-only byte", p, err)
		}
		must(t, c, 3, body("/", false), 0)
		must(t, c, 1, create("/a"), -119)
	})
}

func TestEventsLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a := memory(t, srv.Client("a"))
		must(t, a, 3, body("/x", true), -101)
		srv.DelayEvents(4 * time.Second)
		start := time.Now()
		if err := srv.Create("/x", nil); err != nil {
			t.Fatal(err)
		}
		ev, err := a.receive()
		if took := time.Since(start); err != nil || ev.xid != -1 || took < 4*time.Second {
			t.Errorf("event %+v after %v, %v", ev, took, err)
		}
	})
}
