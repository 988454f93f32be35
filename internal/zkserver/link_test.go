package zkserver_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// TestLinkIsANetConn checks what net.Conn promises and clients rely on.
func TestLinkIsANetConn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memoryConn(t, srv.Client("a"))
		var ne net.Error
		_ = c.SetDeadline(time.Now().Add(3 * time.Second))
		start := time.Now()
		if _, err := c.Read(make([]byte, 1)); !errors.As(err, &ne) || !ne.Timeout() || time.Since(start) != 3*time.Second {
			t.Errorf("read: %v after %v", err, time.Since(start))
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %v", err)
		}
		_ = c.SetDeadline(time.Time{})
		if n, err := c.Read(nil); n != 0 || err != nil {
			t.Errorf("empty read: %d, %v", n, err)
		}
		// A deadline that is set during a read counts.
		time.AfterFunc(2*time.Second, func() { _ = c.SetReadDeadline(time.Now()) })
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		_ = c.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Second, func() { _ = c.Close() })
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read from a closed link: %v", err)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write to a closed link: %v", err)
		}
		if err := c.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second close: %v", err)
		}
		if c.LocalAddr().Network() != "zktest" || c.RemoteAddr().String() == "" {
			t.Errorf("addresses %v, %v", c.LocalAddr(), c.RemoteAddr())
		}
	})
}

func TestLatencyIsWithinBoundsAndOrdered(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		link := srv.Client("slow")
		link.SetLatency(10*time.Millisecond, 30*time.Millisecond)
		start := time.Now()
		c := memory(t, link)
		// Dial, request, answer.
		if took := time.Since(start); took < 30*time.Millisecond || took > 91*time.Millisecond {
			t.Errorf("session after %v", took)
		}
		start = time.Now()
		for range 50 {
			if _, err := c.send(3, body("/", false)); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(start) != 0 {
			t.Error("a write took time")
		}
		for i := range int32(50) {
			if a, err := c.receive(); err != nil || a.xid != i+1 {
				t.Fatalf("answer %d: %+v, %v", i, a, err)
			}
		}
		if took := time.Since(start); took < 20*time.Millisecond || took > 61*time.Millisecond {
			t.Errorf("pipelined answers after %v", took)
		}
	})
}

// TestCloseFreesEverybody closes a server whose clients wait in every way. The
// bubble fails if a goroutine is left.
func TestCloseFreesEverybody(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		reading, frozen := memory(t, srv.Client("a")), memory(t, srv.Client("b"))
		srv.Client("b").Partition()
		srv.HangHandshake()
		hanging := memoryConn(t, srv.Client("c"))
		if err := hanging.writeFrame(body(int32(0), int64(0), int32(9000), int64(0), nil16())); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 4)
		for _, c := range []*raw{reading, frozen, hanging} {
			go func() {
				_, err := c.readFrame()
				done <- err
			}()
		}
		go func() {
			_, err := srv.Client("b").DialContext(t.Context(), "", "")
			done <- err
		}()
		time.Sleep(time.Second)
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		for range 4 {
			if err := <-done; err == nil {
				t.Error("a client got an answer from a closed server")
			}
		}
		if _, err := reading.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("read after Close: %v", err)
		}
		if err := srv.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

// TestCloseWithLatentTraffic closes a server while frames are on their way.
func TestCloseWithLatentTraffic(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		srv.SlowLog(time.Minute)
		srv.DelayReply(zktest.Match{Op: zktest.OpExists, Times: zktest.Always}, time.Minute)
		for range 10 {
			if _, err := c.send(1, sequentialAt("/s")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.send(3, body("/", false)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Millisecond)
	})
}
