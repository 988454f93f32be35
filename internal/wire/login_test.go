package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// handshakeLogin is a mechanism whose server answers "who" to nothing, and "proof" to "me".
type handshakeLogin struct{ sent int }

func (*handshakeLogin) Name() string { return "TEST with s:1" }

func (l *handshakeLogin) Next(token []byte) (answer []byte, proven bool, err error) {
	l.sent++
	switch {
	case l.sent == 1 && token == nil:
		return []byte{}, false, nil
	case l.sent == 2 && string(token) == "who":
		return []byte("me"), false, nil
	case l.sent == 3 && string(token) == "proof":
		return nil, true, nil
	}
	return nil, false, fmt.Errorf("unusable token %q", token)
}

func (*handshakeLogin) Refused() string { return "the password" }

func withLogin(cfg *wire.Config) {
	cfg.Login = func(context.Context, string) (wire.Login, error) { return &handshakeLogin{}, nil }
}

// token is a reply to a token: text, or null.
func token(xid, code int, text any) []byte {
	switch v := text.(type) {
	case nil:
		return reply(xid, 0, code, -1)
	default:
		return reply(xid, 0, code, v)
	}
}

// admit answers a handshake and the login behind it.
func (p *peer) admit(id int64) {
	_, _ = p.next()
	p.write(connectResponse(id, timeout))
	p.expect(frame(1, 102, ""))
	p.write(token(1, 0, "who"))
	p.expect(frame(2, 102, "me"))
	p.write(token(2, 0, "proof"))
}

// try dials, and reads until the connection fails or the ConnectResponse is there.
func (r *rig) try() error {
	c, err := r.link.Dial("tcp", "s:1", time.Second)
	if err != nil {
		return err
	}
	if _, err := c.Write(connectRequest(r.link.SessionID())); err != nil {
		return err
	}
	_, err = io.ReadFull(c, make([]byte, len(connectResponse(sessionID, timeout))))
	return err
}

// The login comes behind every handshake and before anything else, and go-zookeeper and the
// client hear of no connection before it has succeeded.
func TestLoginComesFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, withLogin, withAuth("digest", "user:secret"))
	for i := range 3 {
		c, p := r.dial()
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.admit(sessionID)
			r.mu.Lock()
			if len(r.ups) != i {
				t.Errorf("connection %d: up %d times before the login has ended", i, len(r.ups))
			}
			r.mu.Unlock()
			p.expect(frame(-4, 100, 0, "digest", "user:secret"))
			if i != 1 {
				p.write(reply(-4, 0, 0))
				p.write(reply(7, 1, 0))
			}
		}()
		if _, err := c.Write(connectRequest(r.link.SessionID())); err != nil {
			t.Fatal(err)
		}
		answer := connectResponse(sessionID, timeout)
		r.wantRead(c, answer[:1]) // the Link may fail between two reads: then go-zookeeper still gets the rest
		if i == 1 {
			r.link.DropLive(time.Now(), errors.New("dropped"))
		}
		r.wantRead(c, answer[1:])
		if i == 1 {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("a dropped connection delivers more than the ConnectResponse")
			}
			_ = p.conn.Close()
		} else {
			r.wantRead(c, reply(7, 1, 0))
		}
		<-done
		_ = c.Close()
	}
	r.wantAlive()
}

// A login that ends without the proof of the server, or with a refusal, is none. It ends a Link
// without a session for good.
func TestRefusedLogins(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		play  func(p *peer)
		text  string
		again bool // the next connection may do better
	}{
		{"refused", func(p *peer) { p.write(token(1, -115, nil)) }, "the server refused it (code -115): the password", false},
		{"refused by one that requires a login", func(p *peer) { p.write(token(1, -124, nil)) }, "refused it (code -124)", false},
		{"refused without a token", func(p *peer) { p.write(reply(1, 0, -115)) }, "refused it (code -115)", false},
		{"refused at the end", func(p *peer) { p.write(token(1, 0, "who")); _, _ = p.next(); p.write(token(2, -115, nil)) }, "refused it", false},
		{"null at once", func(p *peer) { p.write(token(1, 0, nil)) }, `unusable token ""`, false},
		{"empty at once", func(p *peer) { p.write(token(1, 0, "")) }, `unusable token ""`, false},
		{"null for the proof", func(p *peer) { p.write(token(1, 0, "who")); _, _ = p.next(); p.write(token(2, 0, nil)) }, `unusable token ""`, false},
		{"empty for the proof", func(p *peer) { p.write(token(1, 0, "who")); _, _ = p.next(); p.write(token(2, 0, "")) }, `unusable token ""`, false},
		{"wrong proof", func(p *peer) { p.write(token(1, 0, "who")); _, _ = p.next(); p.write(token(2, 0, "other")) }, `unusable token "other"`, false},
		{"another code", func(p *peer) { p.write(token(1, -1, nil)) }, "code -1", true},
		{"another xid", func(p *peer) { p.write(token(9, 0, "who")) }, "xid 9", true},
		{"an event", func(p *peer) { p.write(reply(-1, -1, 0, 1, 3, "/a")) }, "xid -1", true},
		{"a longer token than there is", func(p *peer) { p.write(reply(1, 0, 0, 100)) }, "token of 100 bytes", true},
		{"a token of negative length", func(p *peer) { p.write(reply(1, 0, 0, -2)) }, "token of -2 bytes", true},
		{"no token", func(p *peer) { p.write(reply(1, 0, 0)) }, "no token", true},
		{"a short reply", func(p *peer) { p.write(frame(1)) }, "reply of 4 bytes", true},
		{"a huge reply", func(p *peer) { p.write([]byte{0x7f, 0xff, 0xff, 0xff}) }, "reply of 2147483647 bytes", true},
	} {
		for _, known := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, known %v", tt.name, known), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, withLogin, withAuth("digest", "user:secret"))
				id := int64(0)
				if known {
					go func() {
						p := <-r.peers
						p.admit(sessionID)
						_, _ = p.next()
					}()
					if err := r.try(); err != nil {
						t.Fatal(err)
					}
					r.cut()
					id = sessionID
				}
				go func() {
					p := <-r.peers
					_, _ = p.next()
					p.write(connectResponse(sessionID, timeout))
					p.expect(frame(1, 102, ""))
					tt.play(p)
					if b, err := p.next(); err == nil {
						t.Errorf("the client sent %x behind a login that has failed", b)
					}
				}()
				err := r.try()
				if err == nil || !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), "TEST with s:1") {
					t.Errorf("%v, want %q", err, tt.text)
				}
				if errors.Is(err, wire.ErrAuthFailed) == tt.again {
					t.Errorf("%v: refused, want %v", err, !tt.again)
				}
				if refusal := r.link.Refusal(); (refusal == nil) != tt.again {
					t.Errorf("refusal %v", refusal)
				}
				ups := 0
				if known {
					ups = 1
				}
				r.mu.Lock()
				if len(r.ups) != ups {
					t.Errorf("OnUp %d times, want %d", len(r.ups), ups)
				}
				r.mu.Unlock()
				if got := r.link.SessionID(); got != id {
					t.Errorf("session %#x, want %#x", got, id)
				}
				unused := r.link.Unused()
				if tt.again || known {
					r.wantAlive()
					if unused.ID != 0 {
						t.Errorf("unused session %#x", unused.ID)
					}
					return
				}
				r.wantOver(wire.ErrAuthFailed)
				if unused.ID != sessionID || string(unused.Password) != password || unused.Timeout != timeout || r.link.Server() != "s:1" {
					t.Errorf("unused session %+v of %q", unused, r.link.Server())
				}
			})
		}
	}
}

// Old servers hang up instead of refusing, and so does a server that is being stopped. Some
// hang-ups in a row count as a refusal.
func TestHangUpsInTheLogin(t *testing.T) {
	t.Parallel()
	r := newRig(t, withLogin)
	hangUp := func() {
		p := <-r.peers
		_, _ = p.next()
		p.write(connectResponse(sessionID, timeout))
		_, _ = p.next()
		_ = p.conn.Close()
	}
	for range 2 {
		go hangUp()
		if err := r.try(); err == nil || errors.Is(err, wire.ErrAuthFailed) || !strings.Contains(err.Error(), "the server closed the connection") {
			t.Errorf("hung up once: %v", err)
		}
	}
	go func() {
		p := <-r.peers
		p.admit(sessionID)
	}()
	if err := r.try(); err != nil {
		t.Fatal(err)
	}
	r.wantAlive()
	r = newRig(t, withLogin)
	for range 3 {
		r.wantAlive()
		go hangUp()
		_ = r.try()
	}
	r.wantOver(wire.ErrAuthFailed)
	if text := r.link.Cause().Error(); !strings.Contains(text, "3 times in a row") {
		t.Error(text)
	}
}

// A server that is silent in the login costs no more than the time for a handshake.
func TestSilenceInTheLogin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withLogin)
		go func() {
			p := <-r.peers
			_, _ = p.next()
			p.write(connectResponse(sessionID, timeout))
			_, _ = p.next()
			p.write(token(1, 0, "who"))
			p.swallowAll()
		}()
		began := time.Now()
		err := r.try()
		if took := time.Since(began); took != 2*time.Second || !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "i/o timeout") {
			t.Errorf("after %v: %v", took, err)
		}
		r.mu.Lock()
		if text := r.downs[0].Error(); !strings.HasPrefix(text, "login: ") {
			t.Error(text)
		}
		r.mu.Unlock()
		r.wantAlive()
	})
}

// What a mechanism does before the dial has its own time, as much as the dial and the
// handshake. Its failure is the end of the attempt, and no refusal unless it says so.
func TestLoginBeginsBeforeTheDial(t *testing.T) {
	t.Parallel()
	errKDC := errors.New("no ticket")
	synctest.Test(t, func(t *testing.T) {
		delay := 1900 * time.Millisecond
		r := newRig(t, func(cfg *wire.Config) {
			cfg.Login = func(ctx context.Context, server string) (wire.Login, error) {
				select {
				case <-time.After(delay):
					return &handshakeLogin{}, nil
				case <-ctx.Done():
					return nil, fmt.Errorf("%w from %s: %w: %w", errKDC, server, io.EOF, context.Cause(ctx))
				}
			}
		}, slowDial(1, 1500*time.Millisecond))
		began := time.Now()
		go func() {
			p := <-r.peers
			p.admit(sessionID)
		}()
		if err := r.try(); err != nil || time.Since(began) != 3400*time.Millisecond {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		r.cut()
		delay, began = time.Hour, time.Now()
		for range 5 { // none is a refusal, and none a hang-up in a login
			if err := r.try(); !errors.Is(err, errKDC) || errors.Is(err, wire.ErrAuthFailed) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		}
		if took := time.Since(began); took != 5*2*time.Second || r.dials.Load() != 1 {
			t.Errorf("5 attempts took %v, and there were %d dials", took, r.dials.Load())
		}
		r.wantAlive()
		ended := make(chan error)
		go func() { ended <- r.try() }()
		synctest.Wait()
		r.link.End(errKilled)
		if err := <-ended; !errors.Is(err, errKilled) {
			t.Errorf("ended in Begin: %v", err)
		}
	})
	for _, known := range []bool{false, true} {
		var refuse bool
		r := newRig(t, func(cfg *wire.Config) {
			cfg.Login = func(context.Context, string) (wire.Login, error) {
				if refuse {
					return nil, fmt.Errorf("%w: wrong keytab", wire.ErrAuthFailed)
				}
				return &handshakeLogin{}, nil
			}
		})
		if known {
			go func() { (<-r.peers).admit(sessionID) }()
			if err := r.try(); err != nil {
				t.Fatal(err)
			}
			r.cut()
		}
		refuse = true
		if err := r.try(); !errors.Is(err, wire.ErrAuthFailed) || !errors.Is(r.link.Refusal(), wire.ErrAuthFailed) {
			t.Errorf("%v, refusal %v", err, r.link.Refusal())
		}
		if known {
			r.wantAlive()
		} else {
			r.wantOver(wire.ErrAuthFailed)
		}
	}
}

// An answer that no server would take is not sent.
func TestTokenThatIsTooLarge(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *wire.Config) {
		cfg.MaxRequest = 1024
		cfg.Login = func(context.Context, string) (wire.Login, error) { return &huge{}, nil }
	})
	go func() {
		p := <-r.peers
		_, _ = p.next()
		p.write(connectResponse(sessionID, timeout))
		if b, err := p.next(); err == nil {
			t.Errorf("sent %d bytes", len(b))
		}
	}()
	if err := r.try(); !errors.Is(err, wire.ErrFrameTooLarge) || errors.Is(err, wire.ErrAuthFailed) {
		t.Error(err)
	}
	r.wantAlive()
}

type huge struct{ handshakeLogin }

func (*huge) Next([]byte) ([]byte, bool, error) { return make([]byte, 1024), false, nil }

// The replies to tokens say nothing about transactions: their zxid is 0. The session stays the
// newest that was seen.
func TestLoginKeepsTheZxid(t *testing.T) {
	t.Parallel()
	r := newRig(t, withLogin)
	for _, want := range []int64{0, 77} {
		c, p := r.dial()
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, _ := p.next()
			if string(got[8:16]) != string(frame(want)[4:]) {
				t.Errorf("asked with zxid %x, want %d", got[8:16], want)
			}
			p.write(connectResponse(sessionID, timeout))
			_, _ = p.next()
			p.write(token(1, 0, "who"))
			_, _ = p.next()
			p.write(token(2, 0, "proof"))
			p.write(reply(7, 77, 0))
		}()
		if _, err := c.Write(connectRequest(r.link.SessionID())); err != nil {
			t.Fatal(err)
		}
		r.wantRead(c, connectResponse(sessionID, timeout))
		r.wantRead(c, reply(7, 77, 0))
		<-done
		_ = c.Close()
	}
}

// A session can be ended on servers that take nothing from clients without a login.
func TestEndSessionLogsIn(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	p := &peer{t: t, conn: far}
	go func() {
		p.admit(sessionID)
		p.expect(frame(ownXid(1), -11))
		p.write(reply(ownXid(1), 9, 0))
	}()
	if err := wire.EndSession(t.Context(), near, sessionID, []byte(password), timeout, &handshakeLogin{}); err != nil {
		t.Error(err)
	}
	near, far = net.Pipe()
	p = &peer{t: t, conn: far}
	go func() {
		_, _ = p.next()
		p.write(connectResponse(sessionID, timeout))
		_, _ = p.next()
		p.write(reply(ownXid(1), 0, -124))
		_ = p.conn.Close()
	}()
	if err := wire.EndSession(t.Context(), near, sessionID, []byte(password), timeout, nil); !errors.Is(err, wire.ErrLoginWanted) {
		t.Error(err)
	}
}

// Logins leave nothing behind.
func TestThousandLogins(t *testing.T) { //nolint:paralleltest // measures the heap and the goroutines of the process
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withLogin)
		served := make(chan struct{})
		go func() {
			defer close(served)
			for p := range r.peers {
				p.admit(sessionID)
				p.swallowAll()
			}
		}()
		var before runtime.MemStats
		goroutines := 0
		for i := range 1000 {
			if err := r.try(); err != nil {
				t.Fatal(err)
			}
			if i == 10 {
				synctest.Wait()
				runtime.GC()
				runtime.ReadMemStats(&before)
				goroutines = runtime.NumGoroutine()
			}
		}
		synctest.Wait()
		r.mu.Lock()
		r.ups, r.downs, r.calls = nil, nil, nil
		r.mu.Unlock()
		var after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
			t.Errorf("the heap has grown by %d bytes", grown)
		}
		if n := runtime.NumGoroutine(); n > goroutines+5 { // timers and the runtime have some
			t.Errorf("%d goroutines, and %d before", n, goroutines)
		}
		if r.dials.Load() != 1000 {
			t.Errorf("%d dials", r.dials.Load())
		}
		_ = r.last.conn.Close()
		close(r.peers)
		<-served
	})
}
