package wire_test

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// A server that stalls after any byte, or before TLS is done, costs the limit
// and no more, whatever deadlines go-zookeeper sets.
func TestHandshakeStall(t *testing.T) {
	t.Parallel()
	answer := connectResponse(sessionID, timeout)
	for stall := range answer {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.dial()
			go func() {
				_, _ = p.next()
				p.write(answer[:stall])
				p.swallowAll()
			}()
			start := time.Now()
			_ = c.SetWriteDeadline(start.Add(time.Hour))
			if _, err := c.Write(connectRequest(0)); err != nil {
				t.Fatal(err)
			}
			_ = c.SetWriteDeadline(time.Time{})
			_ = c.SetReadDeadline(start.Add(time.Hour))
			_ = c.SetDeadline(time.Time{})
			n, err := io.ReadFull(c, make([]byte, 4))
			if n != 0 || err == nil {
				t.Errorf("stall after %d bytes: read %d, %v", stall, n, err)
			}
			if got := time.Since(start); got != timeout/3 {
				t.Errorf("stall after %d bytes took %v, want %v", stall, got, timeout/3)
			}
			r.wantCalls("down")
			r.wantAlive()
		})
	}
}

func TestLimitCoversDialAndHandshake(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		servers    int
		dial, want time.Duration
	}{
		{0, 300 * time.Millisecond, 2 * time.Second},
		{1, 300 * time.Millisecond, 2 * time.Second},
		{2, 300 * time.Millisecond, 1800 * time.Millisecond}, // the other server may answer
		{2, 900 * time.Millisecond, 2 * time.Second},
		{5, 0, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, slowDial(tt.servers, tt.dial))
			start := time.Now()
			c, p := r.dial()
			go p.swallowAll()
			_, _ = c.Write(connectRequest(0))
			if _, err := c.Read(make([]byte, 4)); err == nil {
				t.Error("Read succeeded")
			}
			if got := time.Since(start); got != tt.want {
				t.Errorf("%d servers, dialed in %v: limit %v, want %v", tt.servers, tt.dial, got, tt.want)
			}
		})
	}
}

// With a session that could expire meanwhile, the limit covers dial and handshake.
func TestLimitWithSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slowDial(5, 900*time.Millisecond)) // the limit is a second
		c, _ := r.establish()
		_ = c.Close()
		start := time.Now()
		c, p := r.dial()
		go p.swallowAll()
		_, _ = c.Write(connectRequest(sessionID))
		if _, err := c.Read(make([]byte, 4)); err == nil {
			t.Error("Read succeeded")
		}
		if got := time.Since(start); got != time.Second {
			t.Errorf("the attempt took %v, want 1s", got)
		}
	})
}

// Dials that end at their limit count as unanswered, so those of the second round have more time.
// The deadline of a socket may come before that of the context.
func TestLateDialCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const servers = 5
		r := newRig(t, func(cfg *wire.Config) {
			cfg.Servers = func() int { return servers }
			cfg.Dial = func(ctx context.Context, _ string) (net.Conn, error) {
				end, _ := ctx.Deadline()
				time.Sleep(time.Until(end))
				return nil, os.ErrDeadlineExceeded
			}
		})
		for i := range servers + 1 {
			start := time.Now()
			_, err := r.link.Dial("tcp", "s:1", time.Hour)
			want := time.Second
			if i == servers {
				want = timeout / 3
			}
			if took := time.Since(start); err == nil || took != want {
				t.Errorf("dial %d took %v, want %v: %v", i, took, want, err)
			}
		}
	})
}

func TestDeadlinesPassThroughAfterHandshake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, set := range []string{"read", "write", "both"} {
			r := newRig(t)
			c, _ := r.establish()
			time.Sleep(timeout) // the limit of the handshake is lifted
			at := time.Now().Add(700 * time.Millisecond)
			op := c.Read
			switch set {
			case "read":
				_ = c.SetReadDeadline(at)
			case "write":
				_ = c.SetWriteDeadline(at)
				op = c.Write
			case "both":
				_ = c.SetDeadline(at)
			}
			if _, err := op(frame(1, 11)); err == nil || !time.Now().Equal(at) {
				t.Errorf("%s deadline: %v at %v, want at %v", set, err, time.Now(), at)
			}
			r.wantCalls("up", "down")
		}
	})
}
