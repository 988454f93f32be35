package wire_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// A peer that reads nothing, or stops within a frame, keeps no caller beyond the
// end of its context, to the moment. It costs no caller the connection.
func TestBlockedWriteKeepsNobody(t *testing.T) {
	t.Parallel()
	for _, read := range []int{0, 1, 5, 12} { // bytes of the first frame
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.establish()
			seen := r.view(c)
			first, second, third := asked(wire.OpSync, "/1"), asked(wire.OpSync, "/2"), asked(wire.OpSync, "/3")
			begun := time.Now()
			for i, x := range []*wire.Exchange{first, second} {
				after := time.Duration(i+1) * time.Second
				ctx, cancel := context.WithTimeout(t.Context(), after)
				defer cancel()
				done := r.do(ctx, x)
				synctest.Wait()
				if i == 0 {
					_, _ = io.ReadFull(p.conn, make([]byte, read))
				}
				go func() {
					if err := <-done; !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != after {
						t.Errorf("Do = %v after %v, want the end of its context after %v", err, time.Since(begun), after)
					}
				}()
			}
			time.Sleep(time.Hour)
			wantFate(t, "being written", first, true, false)
			wantFate(t, "waiting", second, false, false)
			r.wantCalls("up")
			r.wantPending("while it is being written", 0, 0)

			// The rest of the frame is not lost, and what comes next begins behind it.
			rest := make([]byte, len(request(1, first))-read)
			if _, err := io.ReadFull(p.conn, rest); err != nil || string(rest) != string(request(1, first)[read:]) {
				t.Errorf("server received %x, %v", rest, err)
			}
			done := r.do(t.Context(), third)
			p.expect(request(2, third))
			p.write(reply(ownXid(1), 1, 0, "/1"))
			p.write(reply(ownXid(2), 1, 0, "/3"))
			if err := <-done; err != nil || third.Reply.Path != "/3" {
				t.Errorf("Do = %v, %+v", err, third.Reply)
			}
			seen.want(t)
			r.wantCalls("up")
		})
	}
}

// stuck is a connection whose Write does not return when it is closed, as that
// of some tunnels.
type stuck struct {
	net.Conn
	release chan struct{}
}

func (s stuck) Write(p []byte) (int, error) {
	<-s.release
	return s.Conn.Write(p)
}

// Neither the end of the context nor that of the connection waits for such a
// Write.
func TestWriteThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		close(release)
		var now *stuck
		r := newRig(t, func(cfg *wire.Config) {
			dial := cfg.Dial
			cfg.Dial = func(ctx context.Context, server string) (net.Conn, error) {
				nc, err := dial(ctx, server)
				now = &stuck{nc, release}
				return now, err
			}
		})
		c, _ := r.establish()
		r.view(c)
		now.release = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		given, lost := asked(wire.OpSync, "/1"), asked(wire.OpSync, "/2")
		done := r.do(t.Context(), lost)
		synctest.Wait()
		if err := r.link.Do(ctx, given); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("Do = %v after %v", err, time.Since(begun))
		}
		_ = c.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) || time.Since(begun) != time.Second {
			t.Errorf("Do = %v after %v", err, time.Since(begun))
		}
		wantFate(t, "waiting", given, false, false)
		wantFate(t, "being written", lost, true, false) // the peer may have it
		close(now.release)
	})
}

// lame is a connection that takes its time to fail again.
type lame struct {
	net.Conn
	failed bool
}

func (l *lame) Write(p []byte) (int, error) {
	if l.failed {
		time.Sleep(time.Second)
	}
	n, err := l.Conn.Write(p)
	l.failed = err != nil
	return n, err
}

// A connection that fails takes with it what was written; what still waited is
// known not to have been sent.
func TestQueueOfALostConnection(t *testing.T) {
	t.Parallel()
	const rounds, waiting = 40, 5 // the end and the writer's turn come at the same moment
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(cfg *wire.Config) {
				dial := cfg.Dial
				cfg.Dial = func(ctx context.Context, server string) (net.Conn, error) {
					nc, err := dial(ctx, server)
					return &lame{Conn: nc}, err
				}
			})
			c, p := r.establish()
			if round%2 == 0 {
				go func() { _, _ = c.Write(frame(1, 9, "/raw")) }()
			} else {
				r.do(t.Context(), asked(wire.OpSync, "/other"))
			}
			synctest.Wait()
			var xs []*wire.Exchange
			var dones []<-chan error
			for range waiting {
				x, y := asked(wire.OpDelete, "/a"), asked(wire.OpDelete, "/b")
				xs, dones = append(xs, x, y), append(dones, r.do(t.Context(), x, y))
			}
			synctest.Wait()
			r.wantPending("waiting", 1, 2*waiting)
			_ = p.conn.Close()
			for _, done := range dones {
				if err := <-done; err == nil {
					t.Error("Do succeeded")
				}
			}
			sent := 0
			for _, x := range xs {
				if x.Sent() {
					sent++
				}
			}
			if sent > 0 {
				t.Errorf("%d requests that waited count as sent", sent)
			}
		})
	}
}
