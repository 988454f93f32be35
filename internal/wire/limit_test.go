package wire_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
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
		{2, 300 * time.Millisecond, 1500 * time.Millisecond}, // the other server may answer
		{2, 900 * time.Millisecond, 1900 * time.Millisecond}, // a second is left for the handshake
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
