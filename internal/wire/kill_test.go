package wire_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

var errKilled = errors.New("killed")

// killed ends the Link after a second of virtual time, while f is blocked, and
// checks that f returns at that very moment, and why.
func killed(t *testing.T, r *rig, f func() error) {
	t.Helper()
	start := time.Now()
	time.AfterFunc(time.Second, func() {
		synctest.Wait()
		r.link.End(errKilled)
		r.link.End(errors.New("second cause"))
	})
	err := f()
	if !errors.Is(err, errKilled) || !errors.Is(err, wire.ErrOver) {
		t.Errorf("returned %v, want ErrOver and the cause", err)
	}
	if got := time.Since(start); got != time.Second {
		t.Errorf("returned after %v, want 1s", got)
	}
	synctest.Wait()
	r.wantOver(errKilled)
}

// killCase blocks somewhere; calls are the callbacks when it is killed there.
type killCase struct {
	name   string
	change func(*wire.Config)
	block  func(*rig) error
	calls  []string
}

func killedWhileDialing() []killCase {
	untilDone := func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	}
	dialing := func(r *rig) error {
		_, err := r.link.Dial("tcp", "s:1", time.Second)
		return err
	}
	return []killCase{
		{"pace", func(cfg *wire.Config) { cfg.Pace = untilDone }, dialing, []string{"over"}},
		{"pace that returns nil", func(cfg *wire.Config) {
			cfg.Pace = func(ctx context.Context, s string) error { _ = untilDone(ctx, s); return nil }
		}, dialing, []string{"over"}},
		{"dial", func(cfg *wire.Config) {
			cfg.Dial = func(ctx context.Context, s string) (net.Conn, error) { return nil, untilDone(ctx, s) }
		}, dialing, []string{"over"}},
		{"dial that succeeds late", func(cfg *wire.Config) {
			dial := cfg.Dial
			cfg.Dial = func(ctx context.Context, s string) (net.Conn, error) {
				_ = untilDone(ctx, s)
				return dial(context.WithoutCancel(ctx), s)
			}
		}, dialing, []string{"over"}},
		{"TLS", func(cfg *wire.Config) {
			dial := cfg.Dial
			cfg.Dial = func(ctx context.Context, s string) (net.Conn, error) {
				nc, _ := dial(ctx, s)
				tc := tls.Client(nc, &tls.Config{ServerName: "s"})
				return tc, tc.HandshakeContext(ctx)
			}
		}, dialing, []string{"over"}},
	}
}

func killedWhileConnected() []killCase {
	return []killCase{
		{"handshake write", nil, func(r *rig) error {
			c, _ := r.dial()
			_, err := c.Write(connectRequest(0))
			return err
		}, []string{"down", "over"}},
		{"handshake read", nil, func(r *rig) error {
			c, p := r.dial()
			go p.swallowAll()
			_, _ = c.Write(connectRequest(0))
			_, err := c.Read(make([]byte, 4))
			return err
		}, []string{"down", "over"}},
		{"auth write", withAuth("a", "b"), func(r *rig) error {
			c, p := r.dial()
			go func() {
				_, _ = p.next()
				p.write(connectResponse(sessionID, timeout))
			}()
			_, _ = c.Write(connectRequest(0))
			_, err := c.Read(make([]byte, 4))
			return err
		}, []string{"down", "over"}},
		{"read", nil, func(r *rig) error {
			c, _ := r.establish()
			_, err := c.Read(make([]byte, 4))
			return err
		}, []string{"up", "down", "over"}},
		{"read within a frame", nil, func(r *rig) error {
			c, p := r.establish()
			go p.write(reply(1, 1, 0, "body")[:22])
			r.wantRead(c, reply(1, 1, 0, "body")[:22])
			_, err := c.Read(make([]byte, 4))
			return err
		}, []string{"up", "down", "over"}},
		{"write", nil, func(r *rig) error {
			c, _ := r.establish()
			_, err := c.Write(frame(1, 9, "/"))
			return err
		}, []string{"up", "down", "over"}},
		{"write that waits for its turn", nil, func(r *rig) error {
			c, _ := r.establish()
			go func() { _, _ = c.Write(frame(1, 9, "/")) }()
			synctest.Wait()
			_, err := c.Write(frame(2, 9, "/"))
			return err
		}, []string{"up", "down", "over"}},
		{"exchange that waits for its answer", nil, func(r *rig) error {
			_, p := r.establish()
			go p.swallowAll()
			return r.link.Do(r.t.Context(), asked(wire.OpSync, "/"))
		}, []string{"up", "down", "over"}},
		{"exchange that no peer reads", nil, func(r *rig) error {
			r.establish()
			return r.link.Do(r.t.Context(), asked(wire.OpSync, "/"))
		}, []string{"up", "down", "over"}},
		{"exchange that waits for its turn", nil, func(r *rig) error {
			c, _ := r.establish()
			go func() { _, _ = c.Write(frame(1, 9, "/")) }()
			synctest.Wait()
			return r.link.Do(r.t.Context(), asked(wire.OpSync, "/"))
		}, []string{"up", "down", "over"}},
		{"close session", nil, func(r *rig) error {
			_, p := r.establish()
			go p.swallowAll()
			return r.link.CloseSession(r.t.Context())
		}, []string{"up", "down", "over"}},
	}
}

func TestKillSwitch(t *testing.T) {
	t.Parallel()
	for _, tt := range append(killedWhileDialing(), killedWhileConnected()...) {
		synctest.Test(t, func(t *testing.T) {
			t.Log(tt.name)
			changes := []func(*wire.Config){}
			if tt.change != nil {
				changes = append(changes, tt.change)
			}
			r := newRig(t, changes...)
			killed(t, r, func() error { return tt.block(r) })
			r.wantCalls(tt.calls...)
			r.link.Wait()
			if len(r.peers) > 0 { // dialed and given up: closed, not leaked
				p := <-r.peers
				p.swallowAll()
			}
		})
	}
}

func TestEndWithoutCause(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.link.End(nil)
	r.wantOver(wire.ErrOver)
	r.wantCalls("over")
}

// While an earlier callback runs elsewhere, OnUp waits for it and go-zookeeper
// waits for OnUp.
func TestAnswerWaitsForOnUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := newRig(t, func(cfg *wire.Config) {
			onDown := cfg.OnDown
			cfg.OnDown = func(s string, err error) {
				<-release
				onDown(s, err)
			}
		})
		c, _ := r.establish()
		go func() { _ = c.Close() }()
		synctest.Wait()
		c, p := r.dial()
		go func() {
			_, _ = p.next()
			p.write(connectResponse(sessionID, timeout))
		}()
		_, _ = c.Write(connectRequest(sessionID))
		time.AfterFunc(time.Second, func() { close(release) })
		start := time.Now()
		r.wantRead(c, connectResponse(sessionID, timeout))
		if took := time.Since(start); took != time.Second {
			t.Errorf("the answer was delivered after %v, want 1s", took)
		}
		r.wantCalls("up", "down", "up")
	})
}

// Callbacks may call the Link; what they cause is delivered after them.
func TestCallbacksKeepTheirOrder(t *testing.T) {
	t.Parallel()
	var r *rig
	r = newRig(t, func(cfg *wire.Config) {
		onUp := cfg.OnUp
		cfg.OnUp = func(h wire.Handshake) {
			r.link.End(errKilled)
			onUp(h)
		}
	})
	c, p := r.dial()
	go func() {
		_, _ = p.next()
		p.write(connectResponse(sessionID, timeout))
	}()
	_, _ = c.Write(connectRequest(0))
	if n, err := c.Read(make([]byte, 4)); n != 0 || !errors.Is(err, errKilled) {
		t.Errorf("Read = %d, %v", n, err)
	}
	r.wantCalls("up", "down", "over")
	r.wantOver(errKilled)
}

func TestEndRacesWithEverything(t *testing.T) {
	t.Parallel()
	for range 200 {
		r := newRig(t, withAuth("a", "b"))
		go func() {
			p := <-r.peers
			_, _ = p.next()
			_, _ = p.conn.Write(connectResponse(sessionID, timeout))
			p.swallowAll()
		}()
		c, err := r.link.Dial("tcp", "s:1", 0)
		if err != nil {
			t.Fatal(err)
		}
		go r.link.End(errKilled)
		go func() { _ = r.link.CloseSession(t.Context()) }()
		go func() { _ = r.link.Do(t.Context(), asked(wire.OpSync, "/"), checks("/a")) }()
		_, _ = c.Write(connectRequest(0))
		_, _ = c.Read(make([]byte, 44))
		_, _ = c.Write(frame(1, 9, "/"))
		_ = c.Close()
		<-r.link.Over()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, errKilled) {
			t.Errorf("Read = %v", err)
		}
	}
}
